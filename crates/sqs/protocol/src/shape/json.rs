//! JSON, read as strictly as SQS reads it and written straight into the reply.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;

use bytes::{BufMut, BytesMut};
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use super::Shape;
use super::wire::Wire;
use crate::{Error, ErrorKind};

/// Items of lists and maps, and members of structures, in one request. Ten messages with ten
/// attributes each have some 500; an item takes more memory than its three bytes on the wire.
const ITEMS_MAX: u32 = 10_000;

/// Reads a shape.
pub(crate) fn decode<S: Shape>(body: &[u8]) -> Result<S, Error> {
    let refused = |text| Error::new(ErrorKind::SerializationException, text);
    if body.is_empty() {
        return Ok(S::default());
    }
    let budget = Budget { left: Cell::new(ITEMS_MAX) };
    let mut json = serde_json::Deserializer::from_slice(body);
    let seed = Seed { budget: &budget, of: PhantomData::<S> };
    let shape = seed.deserialize(&mut json).and_then(|shape| json.end().map(|()| shape));
    shape.map_err(|error| refused(text(&error)))
}

/// What is wrong. Where it is interests only if it is no JSON.
fn text(error: &serde_json::Error) -> String {
    let text = error.to_string();
    if !error.is_data() {
        return format!("The request is not valid JSON: {text}");
    }
    let place = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&place).unwrap_or(&text).to_owned()
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
    /// That it is not what it has to be, as SQS says it.
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
    /// The next key of an object.
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

    /// The value of that key.
    pub(crate) fn member<'de, T: Wire, A: MapAccess<'de>>(
        &self,
        map: &mut A,
    ) -> Result<T, A::Error> {
        map.next_value_seed(Seed { budget: self, of: PhantomData })
    }

    /// The next item of a list.
    pub(crate) fn item<'de, T: Wire, A: SeqAccess<'de>>(
        &self,
        list: &mut A,
    ) -> Result<Option<T>, A::Error> {
        let item = list.next_element_seed(Seed { budget: self, of: PhantomData })?;
        if item.is_some() {
            self.spend()?;
        }
        Ok(item)
    }

    fn spend<E: serde::de::Error>(&self) -> Result<(), E> {
        let left = self.left.get().checked_sub(1).ok_or_else(|| {
            E::custom(format_args!("The request holds more than {ITEMS_MAX} values"))
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
struct Seed<'a, T> {
    budget: &'a Budget,
    of: PhantomData<T>,
}

impl<T: Wire> Seed<'_, T> {
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

    /// Some clients have no other numbers: `10.0` is an integer.
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

/// Up to here a floating-point number is the integer that was meant.
const INTEGER_IN_F64_MAX: f64 = 9_007_199_254_740_992.0;

/// Writes the members of an object.
pub(crate) struct Members<'a> {
    out: &'a mut BytesMut,
    is_first: bool,
}

impl<'a> Members<'a> {
    pub(crate) const fn new(out: &'a mut BytesMut) -> Self {
        Self { out, is_first: true }
    }

    /// What is absent is left out, unless it is always there.
    pub(crate) fn write<T: Wire>(&mut self, name: &str, value: &T, is_always: bool) {
        if value.is_absent() && !is_always {
            return;
        }
        if !self.is_first {
            self.out.put_u8(b',');
        }
        self.is_first = false;
        self.out.put_u8(b'"');
        self.out.put_slice(name.as_bytes());
        self.out.put_slice(b"\":");
        value.write_json(self.out);
    }
}

/// Text in quotes. What needs no escape is copied in one go.
pub(crate) fn write_text(text: &str, out: &mut BytesMut) {
    out.reserve(text.len() + 2);
    out.put_u8(b'"');
    let mut rest = text.as_bytes();
    while let Some(at) = escape_at(rest) {
        out.put_slice(&rest[..at]);
        match rest[at] {
            byte @ (b'"' | b'\\') => out.put_slice(&[b'\\', byte]),
            b'\n' => out.put_slice(b"\\n"),
            b'\r' => out.put_slice(b"\\r"),
            b'\t' => out.put_slice(b"\\t"),
            byte => out.put_slice(format!("\\u{byte:04x}").as_bytes()),
        }
        rest = &rest[at + 1..];
    }
    out.put_slice(rest);
    out.put_u8(b'"');
}

/// Where the first byte is that needs an escape. Blocks come first: the compiler looks at all bytes of
/// one in a few instructions.
fn escape_at(bytes: &[u8]) -> Option<usize> {
    const BLOCK: usize = 32;
    let needs_escape = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..=0x1f);
    let is_clean = |block: &&[u8]| !block.iter().fold(false, |any, byte| any | needs_escape(byte));
    let clean = bytes.chunks_exact(BLOCK).take_while(is_clean).count() * BLOCK;
    bytes[clean..].iter().position(needs_escape).map(|at| clean + at)
}
