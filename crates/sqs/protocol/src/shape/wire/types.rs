//! The types that members have, each with its form in JSON, Query and XML.

use std::collections::BTreeMap;

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::{BufMut, Bytes, BytesMut};
use serde::de::{IgnoredAny, MapAccess, SeqAccess};

use super::{Budget, Scalar, Wire, naming};
use crate::shape::query::Parameters;
use crate::shape::{Kind, Names, Shape, json, xml};
use crate::{Error, ErrorKind};

fn not_a(noun: &str) -> Error {
    Error::new(ErrorKind::SerializationException, format!("The value is not {noun}"))
}

impl Wire for String {
    const KIND: Kind = Kind::String;
    const NOUN: &'static str = "a String";

    fn from_scalar(scalar: Scalar<'_>) -> Result<Self, String> {
        match scalar {
            Scalar::Text(text) => Ok(text.to_owned()),
            other => Err(other.refusal(Self::NOUN)),
        }
    }

    fn from_parameters(parameters: &Parameters<'_>) -> Result<Self, Error> {
        Ok(parameters.value().unwrap_or_default().to_owned())
    }

    fn write_json(&self, out: &mut BytesMut) {
        json::write_text(self, out);
    }

    fn write_content(&self, out: &mut BytesMut) {
        xml::write_text(self, out);
    }
}

impl Wire for i64 {
    const KIND: Kind = Kind::Integer;
    const NOUN: &'static str = "an Integer";

    fn from_scalar(scalar: Scalar<'_>) -> Result<Self, String> {
        match scalar {
            Scalar::Integer(integer) => Ok(integer),
            other => Err(other.refusal(Self::NOUN)),
        }
    }

    fn from_parameters(parameters: &Parameters<'_>) -> Result<Self, Error> {
        parameters.value().and_then(|text| text.parse().ok()).ok_or_else(|| not_a(Self::NOUN))
    }

    fn write_json(&self, out: &mut BytesMut) {
        out.put_slice(self.to_string().as_bytes());
    }

    fn write_content(&self, out: &mut BytesMut) {
        self.write_json(out);
    }
}

impl Wire for bool {
    const KIND: Kind = Kind::Boolean;
    const NOUN: &'static str = "a Boolean";

    fn from_scalar(scalar: Scalar<'_>) -> Result<Self, String> {
        match scalar {
            Scalar::Boolean(boolean) => Ok(boolean),
            other => Err(other.refusal(Self::NOUN)),
        }
    }

    fn from_parameters(parameters: &Parameters<'_>) -> Result<Self, Error> {
        parameters.value().and_then(|text| text.parse().ok()).ok_or_else(|| not_a(Self::NOUN))
    }

    fn write_json(&self, out: &mut BytesMut) {
        out.put_slice(if *self { b"true" } else { b"false" });
    }

    fn write_content(&self, out: &mut BytesMut) {
        self.write_json(out);
    }
}

/// The standard alphabet. Not every client pads.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

impl Wire for Bytes {
    const KIND: Kind = Kind::Blob;
    const NOUN: &'static str = "a Blob";

    fn from_scalar(scalar: Scalar<'_>) -> Result<Self, String> {
        match scalar {
            Scalar::Text(text) => {
                let bytes = BASE64.decode(text);
                bytes.map(Self::from).map_err(|_| "The value is not valid Base64".to_owned())
            }
            other => Err(other.refusal(Self::NOUN)),
        }
    }

    fn from_parameters(parameters: &Parameters<'_>) -> Result<Self, Error> {
        let bytes = BASE64.decode(parameters.value().unwrap_or_default());
        bytes.map(Self::from).map_err(|_| not_a("valid Base64"))
    }

    fn write_json(&self, out: &mut BytesMut) {
        out.put_u8(b'"');
        self.write_content(out);
        out.put_u8(b'"');
    }

    fn write_content(&self, out: &mut BytesMut) {
        out.put_slice(BASE64.encode(self).as_bytes());
    }
}

impl<T: Wire> Wire for Option<T> {
    const KIND: Kind = T::KIND;
    const IS_ALWAYS: bool = false;
    const NOUN: &'static str = T::NOUN;

    fn from_scalar(scalar: Scalar<'_>) -> Result<Self, String> {
        match scalar {
            Scalar::Null => Ok(None),
            other => T::from_scalar(other).map(Some),
        }
    }

    fn from_list<'de, A: SeqAccess<'de>>(list: A, budget: &Budget) -> Result<Self, A::Error> {
        T::from_list(list, budget).map(Some)
    }

    fn from_map<'de, A: MapAccess<'de>>(map: A, budget: &Budget) -> Result<Self, A::Error> {
        T::from_map(map, budget).map(Some)
    }

    fn from_parameters(parameters: &Parameters<'_>) -> Result<Self, Error> {
        T::from_parameters(parameters).map(Some)
    }

    fn is_absent(&self) -> bool {
        self.is_none()
    }

    fn write_json(&self, out: &mut BytesMut) {
        match self {
            Some(value) => value.write_json(out),
            None => out.put_slice(b"null"),
        }
    }

    fn write_content(&self, out: &mut BytesMut) {
        if let Some(value) = self {
            value.write_content(out);
        }
    }

    fn write_xml(&self, names: &Names, out: &mut BytesMut) {
        if let Some(value) = self {
            value.write_xml(names, out);
        }
    }
}

impl<T: Wire> Wire for Vec<T> {
    const KIND: Kind = Kind::List(&T::KIND);
    const IS_ALWAYS: bool = false;
    const NOUN: &'static str = "a List";

    fn from_scalar(scalar: Scalar<'_>) -> Result<Self, String> {
        match scalar {
            Scalar::Null => Ok(Self::new()),
            other => Err(other.refusal(Self::NOUN)),
        }
    }

    fn from_list<'de, A: SeqAccess<'de>>(mut list: A, budget: &Budget) -> Result<Self, A::Error> {
        let mut items = Self::new();
        while let Some(item) = budget.item::<Option<T>, A>(&mut list)? {
            items.extend(item); // Null is no item.
        }
        Ok(items)
    }

    /// Reads the items of a list. An only item may do without its number, as boto 2 sends
    /// `AttributeName=All`.
    fn from_parameters(parameters: &Parameters<'_>) -> Result<Self, Error> {
        let only = parameters.value().map(|_| parameters);
        let only = only.filter(|_| !matches!(T::KIND, Kind::Structure(_)));
        only.into_iter().chain(parameters.numbered()).map(T::from_parameters).collect()
    }

    fn from_member(shape: &Parameters<'_>, names: &Names) -> Result<Self, Error> {
        shape.items(names).map_or_else(
            || Ok(Self::new()),
            |parameters| {
                Self::from_parameters(parameters).map_err(|error| naming(error, names.item))
            },
        )
    }

    fn is_absent(&self) -> bool {
        self.is_empty()
    }

    fn write_json(&self, out: &mut BytesMut) {
        out.put_u8(b'[');
        for (at, item) in self.iter().enumerate() {
            if at > 0 {
                out.put_u8(b',');
            }
            item.write_json(out);
        }
        out.put_u8(b']');
    }

    fn write_content(&self, out: &mut BytesMut) {
        for item in self {
            item.write_content(out);
        }
    }

    fn write_xml(&self, names: &Names, out: &mut BytesMut) {
        for item in self {
            xml::element(names.item, out, |out| item.write_content(out));
        }
    }
}

/// The name of a map's value, in Query and XML.
const VALUE: &str = "Value";

impl<T: Wire> Wire for BTreeMap<String, T> {
    const KIND: Kind = Kind::Map(&T::KIND);
    const IS_ALWAYS: bool = false;
    const NOUN: &'static str = "a Map";

    fn from_scalar(scalar: Scalar<'_>) -> Result<Self, String> {
        match scalar {
            Scalar::Null => Ok(Self::new()),
            other => Err(other.refusal(Self::NOUN)),
        }
    }

    fn from_map<'de, A: MapAccess<'de>>(mut map: A, budget: &Budget) -> Result<Self, A::Error> {
        let mut items = Self::new();
        while let Some(key) = budget.key(&mut map)? {
            if let Some(value) = budget.member::<Option<T>, A>(&mut map)? {
                items.insert(key.into_owned(), value);
            }
        }
        Ok(items)
    }

    /// Returns an empty map: its items do not say what their keys are called, see
    /// [`Self::from_member`].
    fn from_parameters(_parameters: &Parameters<'_>) -> Result<Self, Error> {
        Ok(Self::new())
    }

    fn from_member(shape: &Parameters<'_>, names: &Names) -> Result<Self, Error> {
        let mut items = Self::new();
        let Some(parameters) = shape.items(names) else { return Ok(items) };
        // An only item may do without its number, as boto 2 sends `Attribute.Name=Policy`.
        let only = parameters.child(names.key).map(|_| parameters);
        for item in only.into_iter().chain(parameters.numbered()) {
            let key = item.child(names.key).and_then(Parameters::value);
            let value = item.child(VALUE).map_or_else(|| Ok(T::default()), T::from_parameters);
            let value = value.map_err(|error| naming(error, names.item))?;
            items.insert(key.unwrap_or_default().to_owned(), value);
        }
        Ok(items)
    }

    fn is_absent(&self) -> bool {
        self.is_empty()
    }

    fn write_json(&self, out: &mut BytesMut) {
        out.put_u8(b'{');
        for (at, (key, value)) in self.iter().enumerate() {
            if at > 0 {
                out.put_u8(b',');
            }
            json::write_text(key, out);
            out.put_u8(b':');
            value.write_json(out);
        }
        out.put_u8(b'}');
    }

    fn write_content(&self, out: &mut BytesMut) {
        for value in self.values() {
            value.write_content(out);
        }
    }

    fn write_xml(&self, names: &Names, out: &mut BytesMut) {
        for (key, value) in self {
            xml::element(names.item, out, |out| {
                xml::element(names.key, out, |out| xml::write_text(key, out));
                xml::element(VALUE, out, |out| value.write_content(out));
            });
        }
    }
}

impl<S: Shape> Wire for S {
    const KIND: Kind = Kind::Structure(&S::DESCRIPTION);
    const NOUN: &'static str = "a Structure";

    fn from_map<'de, A: MapAccess<'de>>(mut map: A, budget: &Budget) -> Result<Self, A::Error> {
        let mut shape = Self::default();
        while let Some(name) = budget.key(&mut map)? {
            if !shape.read_json(&name, &mut map, budget)? {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(shape)
    }

    fn from_parameters(parameters: &Parameters<'_>) -> Result<Self, Error> {
        let mut shape = Self::default();
        shape.read_query(parameters)?;
        Ok(shape)
    }

    fn write_json(&self, out: &mut BytesMut) {
        out.put_u8(b'{');
        Shape::write_json(self, out);
        out.put_u8(b'}');
    }

    fn write_content(&self, out: &mut BytesMut) {
        Shape::write_xml(self, out);
    }
}
