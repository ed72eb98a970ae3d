//! A message's properties as JSON and back, as RabbitMQ's management API names them.

use quelea_model::limits::SHORT_STRING_BYTES_MAX;
use quelea_model::{Properties, PropertyView};
use serde_json::{Map, Value, json};

use crate::json::{from_table, to_table};

/// Returns the properties that a message has. Bytes that are not UTF-8 are shown with replacement
/// characters.
pub(crate) fn to_json(bytes: &[u8]) -> Value {
    // They were checked when they came in.
    let properties = Properties::decode(bytes).unwrap_or_default();
    let mut object = Map::new();
    let texts = [
        ("content_type", &properties.content_type),
        ("content_encoding", &properties.content_encoding),
        ("correlation_id", &properties.correlation_id),
        ("reply_to", &properties.reply_to),
        ("expiration", &properties.expiration),
        ("message_id", &properties.message_id),
        ("type", &properties.kind),
        ("user_id", &properties.user_id),
        ("app_id", &properties.app_id),
        ("cluster_id", &properties.cluster_id),
    ];
    let mut set = |name: &str, value: Value| object.insert(name.to_owned(), value);
    for (name, text) in texts {
        if let Some(text) = text {
            set(name, json!(text));
        }
    }
    for (name, bytes) in &properties.binary {
        set(&name.replace('-', "_"), json!(String::from_utf8_lossy(bytes)));
    }
    if let Some(mode) = properties.delivery_mode {
        set("delivery_mode", json!(mode));
    }
    if let Some(priority) = properties.priority {
        set("priority", json!(priority));
    }
    if let Some(timestamp) = properties.timestamp {
        set("timestamp", json!(timestamp));
    }
    if let Some(headers) = &properties.headers {
        set("headers", from_table(headers));
    }
    Value::Object(object)
}

/// Encodes properties in their wire format.
///
/// # Errors
/// Which property is unknown, of another type or too long.
pub(crate) fn from_json(object: &Map<String, Value>) -> Result<Vec<u8>, String> {
    let mut properties = Properties::default();
    for (name, value) in object {
        match name.as_str() {
            "headers" => {
                let headers = value.as_object().ok_or("properties.headers must be an object")?;
                properties.headers = Some(to_table(headers)?);
            }
            "delivery_mode" => properties.delivery_mode = Some(octet(name, value)?),
            "priority" => properties.priority = Some(octet(name, value)?),
            "timestamp" => {
                let seconds = value.as_u64().ok_or_else(|| {
                    format!("properties.timestamp must be seconds since 1970, it is {value}")
                })?;
                properties.timestamp = Some(seconds);
            }
            _ => {
                let property = text_of(&mut properties, name)?;
                *property = Some(text(name, value)?);
            }
        }
    }
    let bytes = properties.to_bytes();
    PropertyView::new(&bytes).check().map_err(|error| format!("properties: {error}"))?;
    Ok(bytes.to_vec())
}

fn text_of<'a>(
    properties: &'a mut Properties,
    name: &str,
) -> Result<&'a mut Option<Box<str>>, String> {
    Ok(match name {
        "content_type" => &mut properties.content_type,
        "content_encoding" => &mut properties.content_encoding,
        "correlation_id" => &mut properties.correlation_id,
        "reply_to" => &mut properties.reply_to,
        "expiration" => &mut properties.expiration,
        "message_id" => &mut properties.message_id,
        "type" => &mut properties.kind,
        "user_id" => &mut properties.user_id,
        "app_id" => &mut properties.app_id,
        "cluster_id" => &mut properties.cluster_id,
        _ => return Err(format!("there is no property {name:?}")),
    })
}

fn text(name: &str, value: &Value) -> Result<Box<str>, String> {
    let text = value
        .as_str()
        .ok_or_else(|| format!("properties.{name} must be a string, it is {value}"))?;
    if text.len() > SHORT_STRING_BYTES_MAX {
        let len = text.len();
        return Err(format!("properties.{name} has {len} bytes, the limit is 255"));
    }
    Ok(text.into())
}

fn octet(name: &str, value: &Value) -> Result<u8, String> {
    let octet = value.as_u64().and_then(|number| u8::try_from(number).ok());
    octet.ok_or_else(|| format!("properties.{name} must be from 0 to 255, it is {value}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_properties_survive_the_way_through_json() {
        let object = json!({
            "content_type": "text/plain", "content_encoding": "utf-8", "delivery_mode": 2,
            "headers": {"a": 1, "list": ["x"]}, "priority": 9, "correlation_id": "c",
            "reply_to": "r", "expiration": "60000", "message_id": "m", "timestamp": 1_700_000_000u64,
            "type": "t", "user_id": "u", "app_id": "a", "cluster_id": "k"
        });
        let bytes = from_json(object.as_object().unwrap()).unwrap();
        assert_eq!(to_json(&bytes), object);
        assert_eq!(to_json(&from_json(&Map::new()).unwrap()), json!({}));
    }

    #[test]
    fn what_is_no_property_is_named() {
        let cases = [
            (json!({"colour": 1}), "there is no property \"colour\""),
            (json!({"priority": 256}), "properties.priority must be from 0 to 255, it is 256"),
            (json!({"expiration": 5}), "properties.expiration must be a string, it is 5"),
            (json!({"headers": []}), "properties.headers must be an object"),
            (
                json!({"timestamp": "now"}),
                "properties.timestamp must be seconds since 1970, it is \"now\"",
            ),
            (json!({"type": "x".repeat(256)}), "properties.type has 256 bytes, the limit is 255"),
        ];
        for (object, problem) in cases {
            assert_eq!(from_json(object.as_object().unwrap()).unwrap_err(), problem);
        }
    }
}
