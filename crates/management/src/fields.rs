//! Fields of a request's body, read one by one: RabbitMQ's tools also send numbers and truth values as text.

use quelea_model::Table;
use quelea_model::limits::SHORT_STRING_BYTES_MAX;
use serde_json::Value;

use crate::error::ApiError;
use crate::json::to_table;

/// Returns a text field of a request's object: absent is `None`, another type is an error with its
/// name.
pub(crate) fn text_field<'a>(body: &'a Value, field: &str) -> Result<Option<&'a str>, ApiError> {
    match &body[field] {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text)),
        other => Err(ApiError::bad(format!("{field} must be a string, it is {other}"))),
    }
}

/// Returns a text field that has to be there.
pub(crate) fn required_field<'a>(body: &'a Value, field: &str) -> Result<&'a str, ApiError> {
    text_field(body, field)?.ok_or_else(|| ApiError::bad(format!("{field} is missing")))
}

/// Checks the value of `routing_key`: it has to travel as a short string of AMQP.
pub(crate) fn short_routing_key(key: &str) -> Result<String, ApiError> {
    match key.len() {
        len if len > SHORT_STRING_BYTES_MAX => Err(ApiError::BadRequest(format!(
            "routing_key has {len} bytes, the limit is {SHORT_STRING_BYTES_MAX}"
        ))),
        _ => Ok(key.to_owned()),
    }
}

/// Returns a binding's `routing_key`; the empty one if it is absent.
pub(crate) fn binding_key_field(body: &Value) -> Result<String, ApiError> {
    short_routing_key(text_field(body, "routing_key")?.unwrap_or_default())
}

/// Returns text fields that have to be there.
pub(crate) fn texts<const N: usize>(
    body: &Value,
    fields: [&str; N],
) -> Result<[String; N], ApiError> {
    let mut texts = [const { String::new() }; N];
    for (text, field) in texts.iter_mut().zip(fields) {
        required_field(body, field)?.clone_into(text);
    }
    Ok(texts)
}

/// Returns a boolean field; RabbitMQ's tools also send it as text.
pub(crate) fn flag_field(body: &Value, field: &str, default: bool) -> Result<bool, ApiError> {
    match &body[field] {
        Value::Null => Ok(default),
        Value::Bool(flag) => Ok(*flag),
        Value::String(text) if text == "true" => Ok(true),
        Value::String(text) if text == "false" => Ok(false),
        other => Err(ApiError::bad(format!("{field} must be true or false, it is {other}"))),
    }
}

/// Returns the `arguments` of a queue, an exchange or a binding; none if they are absent.
pub(crate) fn arguments_field(body: &Value) -> Result<Table, ApiError> {
    match &body["arguments"] {
        Value::Null => Ok(Table::new()),
        Value::Object(object) => to_table(object).map_err(ApiError::bad),
        _ => Err(ApiError::bad("arguments must be an object")),
    }
}

/// Returns a number of messages or bytes; RabbitMQ's tools also send it as text.
pub(crate) fn number_field(body: &Value, field: &str) -> Result<Option<usize>, ApiError> {
    let number = match &body[field] {
        Value::Null => return Ok(None),
        Value::Number(number) => number.as_u64().or_else(|| whole(number.as_f64()?)),
        Value::String(text) => text.parse().ok(),
        _ => None,
    };
    match number.and_then(|number| usize::try_from(number).ok()) {
        Some(number) => Ok(Some(number)),
        None => Err(ApiError::bad(format!(
            "{field} must be a whole number of 0 or more, it is {}",
            body[field]
        ))),
    }
}

/// Returns the integer that a number is, if it is one: to JSON Schema, `5.0` is an integer.
fn whole(number: f64) -> Option<u64> {
    let fits = (0.0..=f64::from(u32::MAX)).contains(&number) && number.fract() == 0.0;
    fits.then_some(number as u64)
}
