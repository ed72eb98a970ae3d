//! What every member of a shape can do: read itself from JSON and Query, write itself in JSON and XML.
//! The types that do stand in `wire/types.rs`.

mod types;

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;

use bytes::BytesMut;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

use super::query::Parameters;
use super::{Kind, Names, xml};
use crate::limits::REQUEST_ITEMS_MAX;
use crate::{Error, ErrorKind};

/// Up to here a floating-point number is the integer that was meant.
const INTEGER_IN_F64_MAX: f64 = 9_007_199_254_740_992.0;

/// The type of a member. What is absent is the default.
pub(crate) trait Wire: Default {
    const KIND: Kind;

    /// Whether it cannot be absent.
    const IS_ALWAYS: bool = true;

    /// With its article, as SQS says what something is not.
    const NOUN: &'static str;

    /// Reads a value of JSON that is neither list nor object.
    fn from_scalar(scalar: Scalar<'_>) -> Result<Self, String> {
        Err(scalar.refusal(Self::NOUN))
    }

    fn from_list<'de, A: SeqAccess<'de>>(_list: A, _budget: &Budget) -> Result<Self, A::Error> {
        Err(A::Error::custom("Start of list found where not expected"))
    }

    fn from_map<'de, A: MapAccess<'de>>(_map: A, _budget: &Budget) -> Result<Self, A::Error> {
        Err(A::Error::custom("Start of structure or map found where not expected"))
    }

    /// Reads all parameters whose names begin with that of the member.
    fn from_parameters(parameters: &Parameters<'_>) -> Result<Self, Error>;

    /// Reads it as a member of a shape with these parameters.
    fn from_member(shape: &Parameters<'_>, names: &Names) -> Result<Self, Error> {
        shape.child(names.member).map_or_else(
            || Ok(Self::default()),
            |parameters| {
                Self::from_parameters(parameters).map_err(|error| naming(error, names.member))
            },
        )
    }

    /// Returns whether it is left out.
    fn is_absent(&self) -> bool {
        false
    }

    fn write_json(&self, out: &mut BytesMut);

    /// What stands between its tags.
    fn write_content(&self, out: &mut BytesMut);

    /// With its tags, as a member of a shape.
    fn write_xml(&self, names: &Names, out: &mut BytesMut) {
        xml::element(names.member, out, |out| self.write_content(out));
    }
}

/// Says which parameter an error is about, unless it says so already.
fn naming(error: Error, member: &str) -> Error {
    if error.kind == ErrorKind::SerializationException && !error.message.starts_with("Parameter ") {
        return Error::new(error.kind, format!("Parameter {member}: {}", error.message));
    }
    error
}

impl Parameters<'_> {
    /// Reads a member of the shape that these parameters are.
    pub(crate) fn member<T: Wire>(&self, names: &Names) -> Result<T, Error> {
        T::from_member(self, names)
    }
}

/// A value that is neither list nor object.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Scalar<'a> {
    Null,
    Boolean(bool),
    Integer(i64),
    /// A fraction, or too large.
    Number,
    Text(&'a str),
}

impl Scalar<'_> {
    /// Returns the text that it is not what it has to be, as SQS says it.
    pub(crate) fn refusal(self, noun: &str) -> String {
        let token = match self {
            Self::Null => "NULL_VALUE",
            Self::Boolean(true) => "TRUE_VALUE",
            Self::Boolean(false) => "FALSE_VALUE",
            Self::Integer(_) | Self::Number => "NUMBER_VALUE",
            Self::Text(_) => "STRING_VALUE",
        };
        format!("{token} can not be converted to {noun}")
    }
}

/// How much more a request may hold.
pub(crate) struct Budget {
    left: Cell<u32>,
}

impl Budget {
    pub(crate) const fn new() -> Self {
        Self { left: Cell::new(REQUEST_ITEMS_MAX) }
    }

    /// Reads the next key of an object.
    pub(crate) fn key<'de, A: MapAccess<'de>>(
        &self,
        map: &mut A,
    ) -> Result<Option<Cow<'de, str>>, A::Error> {
        let key = map.next_key_seed(Key)?;
        if key.is_some() {
            self.spend()?;
        }
        Ok(key)
    }

    /// Reads the value of that key.
    pub(crate) fn member<'de, T: Wire, A: MapAccess<'de>>(
        &self,
        map: &mut A,
    ) -> Result<T, A::Error> {
        map.next_value_seed(Seed::new(self))
    }

    /// Reads the next item of a list.
    pub(crate) fn item<'de, T: Wire, A: SeqAccess<'de>>(
        &self,
        list: &mut A,
    ) -> Result<Option<T>, A::Error> {
        let item = list.next_element_seed(Seed::new(self))?;
        if item.is_some() {
            self.spend()?;
        }
        Ok(item)
    }

    fn spend<E: serde::de::Error>(&self) -> Result<(), E> {
        let left = self.left.get().checked_sub(1).ok_or_else(|| {
            E::custom(format_args!("The request holds more than {REQUEST_ITEMS_MAX} values"))
        })?;
        self.left.set(left);
        Ok(())
    }
}

struct Key;

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Key {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_borrowed_str<E>(self, key: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(key))
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(key.to_owned()))
    }
}

/// Reads one value.
pub(crate) struct Seed<'a, T> {
    budget: &'a Budget,
    of: PhantomData<T>,
}

impl<'a, T: Wire> Seed<'a, T> {
    pub(crate) const fn new(budget: &'a Budget) -> Self {
        Self { budget, of: PhantomData }
    }

    fn scalar<E: serde::de::Error>(scalar: Scalar<'_>) -> Result<T, E> {
        T::from_scalar(scalar).map_err(E::custom)
    }
}

impl<'de, T: Wire> DeserializeSeed<'de> for Seed<'_, T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<T, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de, T: Wire> Visitor<'de> for Seed<'_, T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::NOUN)
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<T, E> {
        Self::scalar(Scalar::Null)
    }

    fn visit_bool<E: serde::de::Error>(self, boolean: bool) -> Result<T, E> {
        Self::scalar(Scalar::Boolean(boolean))
    }

    fn visit_i64<E: serde::de::Error>(self, integer: i64) -> Result<T, E> {
        Self::scalar(Scalar::Integer(integer))
    }

    fn visit_u64<E: serde::de::Error>(self, integer: u64) -> Result<T, E> {
        Self::scalar(i64::try_from(integer).map_or(Scalar::Number, Scalar::Integer))
    }

    /// Takes an integer also as `10.0`: some clients have no other numbers.
    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<T, E> {
        let is_integer = number.fract() == 0.0 && number.abs() <= INTEGER_IN_F64_MAX;
        Self::scalar(if is_integer { Scalar::Integer(number as i64) } else { Scalar::Number })
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
        Self::scalar(Scalar::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<T, A::Error> {
        T::from_list(list, self.budget)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::from_map(map, self.budget)
    }
}
