//! `NAME=VALUE` on the command line: arguments of queues, exchanges and bindings, and properties of messages.

use serde_json::{Map, Value};

use super::AdminError;

/// Returns all arguments as an object. Numbers and booleans are recognised.
pub(crate) fn object(texts: &[String]) -> Result<Map<String, Value>, AdminError> {
    texts.iter().map(|text| pair(text)).collect()
}

/// Returns the name and the value of `NAME=VALUE`.
pub(crate) fn split(text: &str) -> Option<(&str, &str)> {
    text.split_once('=').filter(|(name, _)| !name.is_empty())
}

fn pair(text: &str) -> Result<(String, Value), AdminError> {
    let Some((name, value)) = split(text) else {
        return Err(AdminError::Argument { text: text.to_owned() });
    };
    let value = match serde_json::from_str(value) {
        Ok(value @ (Value::Number(_) | Value::Bool(_))) => value,
        _ => Value::String(value.to_owned()),
    };
    Ok((name.to_owned(), value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_is_a_number_a_boolean_or_a_text() {
        for (text, value) in [
            ("x-max-length=10", json!(10)),
            ("x-single-active-consumer=true", json!(true)),
            ("x-overflow=drop-head", json!("drop-head")),
            ("x-empty=", json!("")),
        ] {
            assert_eq!(pair(text).unwrap().1, value, "{text}");
        }
        assert!(pair("x-overflow").is_err() && pair("=1").is_err());
    }
}
