//! Field tables as JSON and back, as RabbitMQ's management API shows queue arguments.

use quelea_model::limits::{SHORT_STRING_BYTES_MAX, TABLE_DEPTH_MAX};
use quelea_model::{Table, Value};
use serde_json::{Map, Number, Value as Json, json};

/// Returns a table as an object. Bytes that are not UTF-8 are shown with replacement characters.
pub(crate) fn from_table(table: &Table) -> Json {
    let entries = table.iter().map(|(name, value)| (name.to_owned(), from_value(value)));
    Json::Object(entries.collect::<Map<_, _>>())
}

fn from_value(value: &Value) -> Json {
    match value {
        Value::Bool(v) => json!(v),
        Value::F32(v) => json!(v),
        Value::F64(v) => json!(v),
        Value::Decimal(scale, v) => json!(f64::from(*v) / 10f64.powi(i32::from(*scale))),
        Value::LongString(v) | Value::ByteArray(v) => json!(String::from_utf8_lossy(v)),
        Value::Array(values) => Json::Array(values.iter().map(from_value).collect()),
        Value::Timestamp(v) => json!(v),
        Value::Table(table) => from_table(table),
        Value::Void => Json::Null,
        integer => integer.as_integer().map_or(Json::Null, |v| Json::Number(Number::from(v))),
    }
}

/// Returns an object as a table: integers become `long`, as RabbitMQ has it. It is nested no deeper than a table that is
/// decoded may be, since what is kept is decoded at the next start.
///
/// # Errors
/// Names that are too long, numbers that are too large, too many levels.
pub(crate) fn to_table(object: &Map<String, Json>) -> Result<Table, String> {
    table_at(object, 0)
}

fn table_at(object: &Map<String, Json>, depth: usize) -> Result<Table, String> {
    let mut table = Table::new();
    for (name, value) in object {
        if name.len() > SHORT_STRING_BYTES_MAX {
            let len = name.len();
            return Err(format!(
                "argument name of {len} bytes, the limit is {SHORT_STRING_BYTES_MAX}"
            ));
        }
        table.set(name, to_value(value, depth)?);
    }
    Ok(table)
}

/// `depth` is that of the table or array which it is in.
fn to_value(value: &Json, depth: usize) -> Result<Value, String> {
    let is_container = value.is_array() || value.is_object();
    if is_container && depth >= TABLE_DEPTH_MAX {
        return Err(format!(
            "arguments are nested more deeply than the limit of {TABLE_DEPTH_MAX}"
        ));
    }
    let value_within = |value| to_value(value, depth + 1);
    Ok(match value {
        Json::Null => Value::Void,
        Json::Bool(v) => Value::Bool(*v),
        Json::Number(n) => match (n.as_i64(), n.as_f64()) {
            (Some(v), _) => Value::I64(v),
            (None, Some(v)) => Value::F64(v),
            (None, None) => return Err(format!("number {n} is out of range")),
        },
        Json::String(v) => Value::text(v),
        Json::Array(values) => {
            Value::Array(values.iter().map(value_within).collect::<Result<_, _>>()?)
        }
        Json::Object(object) => Value::Table(table_at(object, depth + 1)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_survive_the_way_through_json() {
        let object = json!({
            "x-max-length": 10, "x-overflow": "drop-head", "x-single-active-consumer": true,
            "list": [1, "two", {"three": 3}]
        });
        let table = to_table(object.as_object().unwrap()).unwrap();
        assert_eq!(table.get("x-max-length"), Some(&Value::I64(10)));
        assert_eq!(from_table(&table), object);
    }

    #[test]
    fn what_is_taken_can_be_decoded_again() {
        for within in [|inner: Json| json!([inner]), |inner: Json| json!({"a": inner})] {
            let nested = |levels| (0..levels).fold(json!(1), |inner, _| within(inner));
            let object = json!({"x": nested(TABLE_DEPTH_MAX)});
            let table = to_table(object.as_object().unwrap()).unwrap();
            let mut bytes = bytes::BytesMut::new();
            table.encode(&mut bytes);
            assert_eq!(Table::decode(&bytes[4..]), Ok(table));
            let object = json!({"x": nested(TABLE_DEPTH_MAX + 1)});
            let refused = to_table(object.as_object().unwrap()).unwrap_err();
            assert!(refused.ends_with("the limit of 32"), "{refused}");
        }
    }
}
