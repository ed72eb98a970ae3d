//! What a field may hold that is an enum of another crate: one of the names that are listed there. (An enum of the
//! configuration's own derives its names.)

use std::borrow::Cow;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize as _, Deserializer, Serializer};

/// An enum of another crate, whose values people name.
pub(super) trait Choices: Copy + PartialEq {
    /// Returns all values with their names, in the order in which the reference lists them.
    fn choices() -> Vec<(&'static str, Self)>;
}

/// Reads, writes and describes such a field: `#[serde(with = "Choice::<…>")]`.
pub(super) struct Choice<T>(PhantomData<T>);

impl<T: Choices> Choice<T> {
    pub(super) fn serialize<S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        let found = T::choices().into_iter().find(|(_, choice)| choice == value);
        let (name, _) = found.ok_or_else(|| S::Error::custom("a value without a name"))?;
        serializer.serialize_str(name)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        let text = String::deserialize(deserializer)?;
        let found = T::choices().into_iter().find(|(name, _)| *name == text);
        let (_, value) = found.ok_or_else(|| {
            D::Error::custom(format!("{text:?} is none of {}", names::<T>().join(", ")))
        })?;
        Ok(value)
    }
}

impl<T: Choices> JsonSchema for Choice<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Choice".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": names::<T>() })
    }
}

fn names<T: Choices>() -> Vec<&'static str> {
    T::choices().into_iter().map(|(name, _)| name).collect()
}
