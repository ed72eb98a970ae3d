//! What a request holds, read as its schema says.

use serde::de::DeserializeOwned;
use serde_json::{Number, Value};

/// 2^53: below it each whole number is exact as a float.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// Reads an object of a JSON text. To JSON Schema, `1.0` is an integer: it is read as one.
///
/// # Errors
/// What is wrong, with the path of the field.
pub fn from_slice<T: DeserializeOwned>(text: &[u8]) -> Result<T, String> {
    let value = serde_json::from_slice(text).map_err(|error| format!("no JSON object: {error}"))?;
    from_value(value)
}

/// Reads an object of a JSON value, as [`from_slice`] does of a text.
///
/// # Errors
/// As [`from_slice`].
pub fn from_value<T: DeserializeOwned>(mut value: Value) -> Result<T, String> {
    // Serde would take a list for the fields in their order.
    if !value.is_object() {
        return Err(format!("no JSON object: it is {}", kind(&value)));
    }
    whole_numbers(&mut value);
    serde_path_to_error::deserialize(value).map_err(|error| match error.path().iter().next() {
        Some(_) => error.to_string(),
        None => format!("no JSON object: {}", error.inner()),
    })
}

const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// A parser of JSON nests values at most 128 deep, so the recursion is bounded.
fn whole_numbers(value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(whole_numbers),
        Value::Object(fields) => fields.values_mut().for_each(whole_numbers),
        Value::Number(number) if number.is_f64() => {
            let float = number.as_f64().filter(|float| float.fract() == 0.0);
            if let Some(float) = float.filter(|float| float.abs() <= EXACT_MAX) {
                *number = Number::from(float as i64);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Shelf {
        books: Vec<u32>,
        height: f64,
    }

    #[test]
    fn whole_floats_are_integers() {
        let shelf = Shelf { books: vec![1, 2], height: 3.0 };
        assert_eq!(from_slice(br#"{"books": [1.0, 2], "height": 3.0}"#), Ok(shelf));
    }

    #[test]
    fn errors_name_the_field() {
        let error = from_slice::<Shelf>(br#"{"books": [1, 2.5], "height": 3}"#).unwrap_err();
        assert!(error.starts_with("books[1]: "), "{error}");
        let error = from_slice::<Shelf>(b"[[1], 3]").unwrap_err();
        assert_eq!(error, "no JSON object: it is a list");
        let error = from_slice::<Shelf>(br#"{"books": [1e300], "height": 3}"#).unwrap_err();
        assert!(error.starts_with("books[0]: "), "{error}");
    }
}
