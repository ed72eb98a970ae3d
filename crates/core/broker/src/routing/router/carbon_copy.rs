//! The headers `CC` and `BCC`: more routing keys for a message (an extension of RabbitMQ's).

use std::borrow::Cow;

use quelea_model::limits::CC_KEYS_MAX;
use quelea_model::{PropertyView, Table, Value};
use smallvec::SmallVec;

use crate::routing::exchange::RouteError;

const HEADERS: [&str; 2] = ["CC", "BCC"];

/// Returns the keys that `CC` and `BCC` add, in their order; none for nearly every message, and
/// then nothing is decoded.
///
/// # Errors
/// [`RouteError::HeaderType`] if a header is no array, [`RouteError::TooManyKeys`].
pub(super) fn keys(properties: PropertyView<'_>) -> Result<SmallVec<[Box<str>; 2]>, RouteError> {
    let mut keys = SmallVec::new();
    let Some(content) = properties.headers_content() else { return Ok(keys) };
    if !mentions(content) {
        return Ok(keys);
    }
    let Ok(headers) = Table::decode(content) else { return Ok(keys) };
    let mut count = 0;
    for header in HEADERS {
        let values = match headers.get(header) {
            None => continue,
            Some(Value::Array(values)) => values,
            Some(other) => {
                return Err(RouteError::HeaderType { header, found: other.type_name() });
            }
        };
        count += values.len();
        if count > CC_KEYS_MAX {
            return Err(RouteError::TooManyKeys { count, max: CC_KEYS_MAX });
        }
        // RabbitMQ passes over elements that are no long strings.
        keys.extend(values.iter().filter_map(text).map(Box::from));
    }
    Ok(keys)
}

/// Returns a key as text. It need not be UTF-8; one that is not can only meet wildcards, and meets
/// the same ones when its odd bytes are replaced.
fn text(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::LongString(bytes) => Some(String::from_utf8_lossy(bytes)),
        _ => None,
    }
}

/// Returns whether one of the names stands at the top level of an encoded table. Walks over the
/// values without decoding them; on malformed bytes the answer is yes, and decoding finds out.
fn mentions(mut content: &[u8]) -> bool {
    while let [name_len, rest @ ..] = content {
        let Some((name, rest)) = rest.split_at_checked(usize::from(*name_len)) else { return true };
        if HEADERS.iter().any(|header| name == header.as_bytes()) {
            return true;
        }
        let [letter, value @ ..] = rest else { return true };
        let len = match letter {
            b't' | b'b' | b'B' => 1,
            b's' | b'U' | b'u' => 2,
            b'I' | b'i' | b'f' => 4,
            b'l' | b'L' | b'd' | b'T' => 8,
            b'D' => 5,
            b'V' => 0,
            b'S' | b'x' | b'A' | b'F' => match value.first_chunk::<4>() {
                Some(len) => 4 + u32::from_be_bytes(*len) as usize,
                None => return true,
            },
            _ => return true,
        };
        let Some((_, rest)) = value.split_at_checked(len) else { return true };
        content = rest;
    }
    false
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use proptest::prelude::*;
    use quelea_model::Properties;

    use super::*;

    fn properties(headers: Table) -> BytesMut {
        let mut out = BytesMut::new();
        Properties { headers: Some(headers), ..Properties::default() }.encode(&mut out);
        out
    }

    fn keys_of(headers: &[(&str, Value)]) -> Result<Vec<String>, RouteError> {
        let bytes = properties(headers.iter().cloned().collect());
        let keys = keys(PropertyView::new(&bytes))?;
        Ok(keys.iter().map(ToString::to_string).collect())
    }

    fn array(keys: &[&str]) -> Value {
        Value::Array(keys.iter().map(|key| Value::text(key)).collect())
    }

    #[test]
    fn cc_comes_first_and_other_headers_add_nothing() {
        let nested = Value::Table(Table::from_iter([("CC", array(&["hidden"]))]));
        let headers = [
            ("before", nested),
            ("BCC", array(&["b"])),
            ("CCC", array(&["no"])),
            ("CC", array(&["a", "a2"])),
        ];
        assert_eq!(keys_of(&headers).unwrap(), ["a", "a2", "b"]);
        assert!(keys_of(&[]).unwrap().is_empty());
        assert!(keys(PropertyView::new(&[0, 0])).unwrap().is_empty());
    }

    #[test]
    fn a_header_of_another_type_is_refused_but_not_odd_elements() {
        let error = keys_of(&[("CC", Value::text("a"))]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "invalid message: {unacceptable_type_in_header,\"CC\",longstr}"
        );
        let mixed = Value::Array(vec![Value::I32(1), Value::text("a")]);
        assert_eq!(keys_of(&[("BCC", mixed)]).unwrap(), ["a"]);
    }

    #[test]
    fn the_number_of_keys_has_a_limit() {
        let many = array(&["k"; CC_KEYS_MAX]);
        assert_eq!(keys_of(&[("CC", many.clone())]).unwrap().len(), CC_KEYS_MAX);
        let error = keys_of(&[("CC", many), ("BCC", array(&["k"]))]).unwrap_err();
        assert_eq!(error, RouteError::TooManyKeys { count: CC_KEYS_MAX + 1, max: CC_KEYS_MAX });
    }

    proptest! {
        #[test]
        fn the_walk_sees_every_name_that_decoding_sees(content: Vec<u8>) {
            if let Ok(table) = Table::decode(&content) {
                let expected = HEADERS.iter().any(|header| table.get(header).is_some());
                prop_assert_eq!(mentions(&content), expected);
            } else {
                let _ = mentions(&content);
            }
        }
    }
}
