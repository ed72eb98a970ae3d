//! A queue's definition: its service level, and how its relays treat messages. Text is a JSON object (or a
//! TOML table) with the fields of [`Sla`] and of this at one level.

mod schema;

use std::collections::BTreeMap;

use quelea_elastic_proto::Named;
use quelea_elastic_proto::frame::{Acknowledge, SlowPolicy};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::directory::limits::{RING_BYTES_MAX, RING_BYTES_MIN};
use crate::plan::Policy;
use crate::sla::{Sla, SlaError};

/// What a queue is meant to be.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    /// What it promises, and what it may cost.
    pub sla: Sla,
    /// Which rules scale it.
    pub policy: Policy,
    /// When a message is done.
    pub acknowledge: Acknowledge,
    /// Listeners that are too slow and say nothing else.
    pub slow: SlowPolicy,
    /// A listener's ring in a relay.
    pub ring_bytes_max: u64,
    /// The durable queue that keeps the messages, empty if none.
    pub keep: String,
    /// What a move does about a listener that does not come along.
    pub relocation: Relocation,
}

/// What a move of a producer does when a listener has not answered by the deadline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Relocation {
    /// It goes on: that listener sees a GAP when it comes.
    #[default]
    Prompt,
    /// It is given up: the producer stays where it is.
    Strict,
}

/// A definition that contradicts itself or names what there is not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {text}")]
pub struct DefinitionError {
    /// The field that is wrong; empty if the whole is no JSON object.
    pub field: String,
    /// Names the limit and the value.
    pub text: String,
}

impl Default for Definition {
    fn default() -> Self {
        Self {
            sla: Sla::default(),
            policy: Policy::Steady,
            acknowledge: Acknowledge::Relayed,
            slow: SlowPolicy::DropOldest,
            ring_bytes_max: 8 << 20,
            keep: String::new(),
            relocation: Relocation::Prompt,
        }
    }
}

impl Named for Policy {
    const FIELD: &'static str = "policy";
    const NAMES: &'static [(&'static str, Self)] =
        &[("steady", Self::Steady), ("paper", Self::Paper)];
}

impl Named for Relocation {
    const FIELD: &'static str = "relocation";
    const NAMES: &'static [(&'static str, Self)] =
        &[("prompt", Self::Prompt), ("strict", Self::Strict)];
}

impl Definition {
    /// Reads a JSON object; fields that it does not name keep their defaults.
    ///
    /// # Errors
    /// Names the field that is unknown, of the wrong type, outside its limits, or contradicts another.
    pub fn parse(text: &[u8]) -> Result<Self, DefinitionError> {
        Self::parse_over(&Self::default(), text)
    }

    /// Reads a JSON object as [`Self::parse`] does, but fields that are not named are those of
    /// `base`.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn parse_over(base: &Self, text: &[u8]) -> Result<Self, DefinitionError> {
        let object: Map<String, Value> = serde_json::from_slice(text)
            .map_err(|error| DefinitionError::new("", &format!("no JSON object: {error}")))?;
        Self::over(base, object)
    }

    /// Puts the fields of `object` over those of `base`.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn over(base: &Self, object: Map<String, Value>) -> Result<Self, DefinitionError> {
        let definition = Self::from_object(base, object)?;
        definition.validate()?;
        Ok(definition)
    }

    /// Returns it as JSON, with all fields, in a fixed order.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut object = match serde_json::to_value(&self.sla) {
            Ok(Value::Object(object)) => object,
            _ => Map::new(),
        };
        object.insert("policy".into(), self.policy.as_str().into());
        object.insert("acknowledge".into(), self.acknowledge.as_str().into());
        object.insert("slow".into(), self.slow.as_str().into());
        object.insert("ring_bytes_max".into(), self.ring_bytes_max.into());
        object.insert("keep".into(), self.keep.clone().into());
        object.insert("relocation".into(), self.relocation.as_str().into());
        Value::Object(object)
    }

    /// Checks that its fields are within their limits and go together.
    ///
    /// # Errors
    /// Names the field, the limit and the value.
    pub fn validate(&self) -> Result<(), DefinitionError> {
        self.sla.validate()?;
        if !(RING_BYTES_MIN..=RING_BYTES_MAX).contains(&self.ring_bytes_max) {
            return Err(DefinitionError::new(
                "ring_bytes_max",
                &format!(
                    "must be from {RING_BYTES_MIN} to {RING_BYTES_MAX}, is {}",
                    self.ring_bytes_max
                ),
            ));
        }
        if self.keep.len() > quelea_elastic_proto::limits::QUEUE_NAME_BYTES_MAX {
            return Err(DefinitionError::new(
                "keep",
                &format!("a queue's name has at most 255 bytes, this one {}", self.keep.len()),
            ));
        }
        if self.acknowledge == Acknowledge::Stored && self.keep.is_empty() {
            return Err(DefinitionError::new(
                "acknowledge",
                "\"stored\" needs `keep` to name the durable queue",
            ));
        }
        Ok(())
    }

    /// Checks that the budget pays for what always runs, at a provider's price.
    ///
    /// # Errors
    /// As [`Sla::validate_cost`].
    pub fn validate_cost(&self, relay_cost_per_hour_micros: u64) -> Result<(), DefinitionError> {
        Ok(self.sla.validate_cost(relay_cost_per_hour_micros)?)
    }

    /// Checks that there is a keeper for what it says is to be kept.
    ///
    /// # Errors
    /// Names `keep`, if it is not empty and the directory has no keeper.
    pub fn validate_keeper(&self, keeper: &str) -> Result<(), DefinitionError> {
        if self.keep.is_empty() || !keeper.is_empty() {
            return Ok(());
        }
        let text = format!(
            "{:?} cannot be kept: this directory has no keeper (bridge.keep_listen and bridge.keep_advertise \
             are both empty)",
            self.keep
        );
        Err(DefinitionError::new("keep", &text))
    }

    fn from_object(base: &Self, mut object: Map<String, Value>) -> Result<Self, DefinitionError> {
        let mut definition = base.clone();
        let known = base.to_json();
        if let Some(unknown) = object.keys().find(|field| known.get(field).is_none()) {
            let fields: Vec<&str> =
                known.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
            let text = format!("there is no such field; there are {}", fields.join(", "));
            return Err(DefinitionError::new(unknown, &text));
        }
        if let Some(value) = object.remove("policy") {
            definition.policy = named(&value)?;
        }
        if let Some(value) = object.remove("acknowledge") {
            definition.acknowledge = named(&value)?;
        }
        if let Some(value) = object.remove("slow") {
            definition.slow = named(&value)?;
        }
        if let Some(value) = object.remove("relocation") {
            definition.relocation = named(&value)?;
        }
        if let Some(value) = object.remove("ring_bytes_max") {
            definition.ring_bytes_max = value.as_u64().ok_or_else(|| {
                DefinitionError::new("ring_bytes_max", &format!("must be a number, is {value}"))
            })?;
        }
        if let Some(value) = object.remove("keep") {
            let text = value.as_str().ok_or_else(|| {
                DefinitionError::new("keep", &format!("must be a queue's name, is {value}"))
            })?;
            text.clone_into(&mut definition.keep);
        }
        definition.sla = sla_over(&base.sla, object)?;
        Ok(definition)
    }
}

/// Puts the fields of `object` over those of `base`, one by one, so that an error names its field.
fn sla_over(base: &Sla, object: Map<String, Value>) -> Result<Sla, DefinitionError> {
    let mut whole = match serde_json::to_value(base) {
        Ok(Value::Object(whole)) => whole,
        _ => Map::new(),
    };
    for (field, value) in object {
        let mut one = Map::new();
        one.insert(field.clone(), value.clone());
        serde_json::from_value::<Sla>(Value::Object(one))
            .map_err(|error| DefinitionError::new(&field, &error.to_string()))?;
        whole.insert(field, value);
    }
    serde_json::from_value(Value::Object(whole))
        .map_err(|error| DefinitionError::new("", &error.to_string()))
}

impl From<SlaError> for DefinitionError {
    fn from(error: SlaError) -> Self {
        Self { field: error.field.to_owned(), text: error.to_string() }
    }
}

impl DefinitionError {
    pub(super) fn new(field: &str, text: &str) -> Self {
        Self { field: field.to_owned(), text: text.to_owned() }
    }
}

fn named<T: Named>(value: &Value) -> Result<T, DefinitionError> {
    value.as_str().and_then(|name| T::parse(name).ok()).ok_or_else(|| {
        let known = T::names().join(", ");
        DefinitionError::new(T::FIELD, &format!("must be one of {known}, is {value}"))
    })
}

impl Serialize for Definition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_json().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Definition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let object: BTreeMap<String, Value> = BTreeMap::deserialize(deserializer)?;
        let definition = Self::from_object(&Self::default(), object.into_iter().collect())
            .map_err(D::Error::custom)?;
        definition.validate().map_err(D::Error::custom)?;
        Ok(definition)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_field_is_answered_with_all_that_there_are() {
        let error = Definition::parse(b"{\"relays_mix\": 1}").unwrap_err();
        assert_eq!(error.field, "relays_mix");
        let all = Definition::default().to_json();
        for field in all.as_object().expect("it is an object").keys() {
            assert!(error.text.contains(field), "{field} is missing in {:?}", error.text);
        }
    }
}
