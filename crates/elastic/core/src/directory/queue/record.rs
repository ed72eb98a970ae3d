//! A queue's record in the metadata store: what is wanted, never what is measured. Written before what it
//! promises is carried out, so that a new owner finds every relay that may run.
//!
//! A JSON object. `v` is the layout's version; `relays[].state` is a number: 1 starting, 2 up, 3 draining,
//! 4 stopping. A reader refuses a version that it does not know, and ignores fields that it does not know; but for the
//! definition's, without which it would not do what the queue's owner wants: so the later ones are written only if they
//! say something.

use bytes::Bytes;
use quelea_elastic_proto::{RelayId, Time};
use serde::{Deserialize, Serialize, Serializer};

use crate::directory::limits::RECORD_BYTES_MAX;
use crate::directory::queue::relay::{Relay, RelayPhase};
use crate::directory::{Definition, DefinitionError, Settings};

/// The layout that is written.
const VERSION: u32 = 1;

/// Bytes of a record without its definition and its relays: seven names and four numbers.
const FRAME_BYTES_MAX: usize = 256;
/// Bytes of a relay's entry without its three texts: five names and two numbers.
const ENTRY_BYTES_MAX: usize = 80;
/// Room that is kept for the handle and the address of a relay that has not reported them: a process's or a pod's name,
/// and a host's with its port.
const TEXTS_BYTES: usize = 192;

/// A queue's record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::directory) struct Record {
    v: u32,
    pub(super) generation: u64,
    /// The number of the next relay: none is ever given out twice.
    pub(super) next_relay: u64,
    #[serde(serialize_with = "for_earlier_versions")]
    pub(super) definition: Definition,
    pub(super) relays: Vec<RelayRecord>,
    /// Spent in the hour in which it was written, in millionths.
    pub(super) spent_this_hour_micros: u64,
    /// The queue is to be no more.
    pub(super) deleting: bool,
    /// It was made on first use, and was not defined since. Earlier versions did not say so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) first_use: bool,
}

/// Fields of a definition that the first program with this layout does not know.
const LATER_FIELDS: [&str; 11] = [
    "memory_percent_max",
    "network_percent_max",
    "throughput_per_s_min",
    "throughput_producers",
    "throughput_listeners",
    "throughput_payload_bytes",
    "priorities",
    "scale_in_after_ms",
    "scale_in_after_out_ms",
    "scale_in_apart_ms",
    "scale_in_idle_ms",
];

/// Writes a definition for earlier versions, too: while directories are replaced one by one, an
/// earlier one takes over what a later one has written. It refuses a field that it does not know,
/// so one that says no more than its absence is left out.
fn for_earlier_versions<S: Serializer>(
    definition: &Definition,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let (mut written, default) = (definition.to_json(), Definition::default().to_json());
    if let Some(fields) = written.as_object_mut() {
        fields.retain(|name, value| {
            !LATER_FIELDS.contains(&name.as_str()) || default.get(name) != Some(value)
        });
    }
    written.serialize(serializer)
}

/// A relay in a record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct RelayRecord {
    pub(super) id: u64,
    pub(super) state: u8,
    pub(super) request: String,
    pub(super) handle: String,
    pub(super) address: String,
}

/// Why a record cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::directory) enum RecordError {
    /// It is no such JSON object.
    #[error("it is not readable: {0}")]
    Unreadable(String),
    /// A later version of the program wrote it.
    #[error("its version v = {found} is not known here (this program writes {VERSION})")]
    Version {
        /// The record's.
        found: u32,
    },
    /// A relay's state has no meaning.
    #[error("relay {relay} has state = {state}, which is none of 1 to 4")]
    State {
        /// Which.
        relay: u64,
        /// The number.
        state: u8,
    },
    /// It is too long.
    #[error("it has {0} bytes, more than {RECORD_BYTES_MAX}")]
    Length(usize),
}

impl Record {
    pub(super) fn new(generation: u64, next_relay: u64, definition: Definition) -> Self {
        let (relays, spent_this_hour_micros, deleting) = (Vec::new(), 0, false);
        Self {
            v: VERSION,
            generation,
            next_relay,
            definition,
            relays,
            spent_this_hour_micros,
            deleting,
            first_use: false,
        }
    }

    pub(in crate::directory) fn parse(text: &[u8]) -> Result<Self, RecordError> {
        if text.len() > RECORD_BYTES_MAX {
            return Err(RecordError::Length(text.len()));
        }
        #[derive(Deserialize)]
        struct Version {
            v: u32,
        }
        let unreadable = |error: serde_json::Error| RecordError::Unreadable(error.to_string());
        let Version { v: found } = serde_json::from_slice(text).map_err(unreadable)?;
        if found != VERSION {
            return Err(RecordError::Version { found });
        }
        let record: Self = serde_json::from_slice(text).map_err(unreadable)?;
        for relay in &record.relays {
            if !(1..=4).contains(&relay.state) {
                return Err(RecordError::State { relay: relay.id, state: relay.state });
            }
        }
        Ok(record)
    }

    /// Returns for how many relays there is room in the record of a queue with this name.
    pub(super) fn room_for(definition: &Definition, queue: &str) -> usize {
        // As long as a request can be.
        let request = format!("{queue}/{}/{}", u64::MAX, u64::MAX);
        let left = RECORD_BYTES_MAX.saturating_sub(Self::bytes_without_relays(definition));
        left / RelayRecord::bytes_reserved(&request, "", "")
    }

    /// Returns how many bytes a record has at most without its relays.
    pub(super) fn bytes_without_relays(definition: &Definition) -> usize {
        FRAME_BYTES_MAX + definition.to_json().to_string().len()
    }

    pub(super) fn to_bytes(&self) -> Bytes {
        serde_json::to_vec(self).expect("numbers and texts can always be written").into()
    }
}

impl Definition {
    /// Checks that a directory can hold to it: all that depends on its settings and the queue's
    /// name.
    ///
    /// # Errors
    /// As [`validate_cost`](Self::validate_cost), [`validate_keeper`](Self::validate_keeper) and
    /// [`validate_record`](Self::validate_record).
    pub fn validate_in(&self, queue: &str, settings: &Settings) -> Result<(), DefinitionError> {
        self.validate_cost(settings.relay_cost_per_hour_micros)?;
        self.validate_keeper(&settings.keeper)?;
        self.validate_record(queue)
    }

    /// Checks that the record of a queue of this name has room for its most relays.
    ///
    /// # Errors
    /// Names `relays_max`, and how many there is room for.
    pub fn validate_record(&self, queue: &str) -> Result<(), DefinitionError> {
        let room = Record::room_for(self, queue);
        if self.sla.relays_max as usize <= room {
            return Ok(());
        }
        let text = format!(
            "the record of a queue whose name has {} bytes has room for {room} relays ({RECORD_BYTES_MAX} bytes), \
             is {}",
            queue.len(),
            self.sla.relays_max
        );
        Err(DefinitionError::new("relays_max", &text))
    }
}

impl RelayRecord {
    /// Returns the bytes that are counted for a relay: its entry, with room for what it has not
    /// reported yet.
    pub(super) fn bytes_reserved(request: &str, handle: &str, address: &str) -> usize {
        ENTRY_BYTES_MAX + written(request) + TEXTS_BYTES.max(written(handle) + written(address))
    }

    pub(super) fn of(relay: &Relay) -> Self {
        let state = match relay.phase {
            RelayPhase::Starting => 1,
            RelayPhase::Up => 2,
            RelayPhase::Draining { .. } => 3,
            RelayPhase::Stopping { .. } => 4,
        };
        Self {
            id: relay.id.0,
            state,
            request: relay.request.clone(),
            handle: relay.handle.clone(),
            address: relay.address.clone(),
        }
    }

    pub(super) fn to_relay(&self, now: Time) -> Relay {
        let phase = match self.state {
            1 => RelayPhase::Starting,
            2 => RelayPhase::Up,
            3 => RelayPhase::Draining { since: now, empty: false },
            _ => RelayPhase::Stopping { asked_at: now },
        };
        let mut relay = Relay::new(RelayId(self.id), phase, self.request.clone(), now);
        relay.handle.clone_from(&self.handle);
        relay.address.clone_from(&self.address);
        relay
    }
}

/// Returns how many bytes a text has within a JSON text, without its quotes.
fn written(text: &str) -> usize {
    let escaped = |byte: u8| match byte {
        b'"' | b'\\' => 2,
        // `\u001f` at the longest.
        0..0x20 => 6,
        _ => 1,
    };
    text.bytes().map(escaped).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(definition: &str) -> (Definition, serde_json::Value) {
        let definition = Definition::parse(definition.as_bytes()).unwrap();
        let bytes = Record::new(1, 1, definition.clone()).to_bytes();
        assert_eq!(Record::parse(&bytes).unwrap().definition, definition);
        let text: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        (definition, text["definition"].clone())
    }

    #[test]
    fn an_earlier_program_reads_a_record_that_uses_nothing_later() {
        let (definition, text) = written(r#"{"relays_max": 3, "bytes_in_per_s_max": 1000}"#);
        for (name, value) in definition.to_json().as_object().unwrap() {
            let expected = (!LATER_FIELDS.contains(&name.as_str())).then_some(value);
            assert_eq!(text.get(name), expected, "{name}");
        }
    }

    #[test]
    fn a_later_field_that_says_something_is_written() {
        for field in [
            r#""memory_percent_max": 70"#,
            r#""network_percent_max": 1"#,
            r#""priorities": ["clients"]"#,
            r#""scale_in_idle_ms": 1"#,
        ] {
            let name = field.split('"').nth(1).unwrap();
            let (definition, text) = written(&format!("{{{field}}}"));
            assert_eq!(text.get(name), definition.to_json().get(name), "{name}");
            assert!(text.get(name).is_some(), "{name}");
        }
    }
}
