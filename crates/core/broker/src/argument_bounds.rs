//! How large the argument tables may be that queues, exchanges, bindings and consumers keep.

use bytes::BytesMut;
use quelea_model::limits::{ARGUMENT_BYTES_MAX, ARGUMENT_ENTRIES_MAX, TABLE_DEPTH_MAX};
use quelea_model::{Table, Value};

use crate::error::ArgumentsTooLarge;

/// Checks a table that is about to be kept. It has to be one that can be decoded again, also where it was not decoded
/// from a frame, which bounds the depth.
pub(crate) fn check_arguments(arguments: &Table) -> Result<(), ArgumentsTooLarge> {
    if arguments.is_empty() {
        return Ok(());
    }
    check_size(entries_of(arguments), "entries", ARGUMENT_ENTRIES_MAX)?;
    check_size(levels_of(arguments), "levels", TABLE_DEPTH_MAX)?;
    let mut encoded = BytesMut::new();
    arguments.encode(&mut encoded);
    check_size(encoded.len(), "bytes", ARGUMENT_BYTES_MAX)
}

const fn check_size(
    size: usize,
    unit: &'static str,
    limit: usize,
) -> Result<(), ArgumentsTooLarge> {
    if size > limit { Err(ArgumentsTooLarge { size, unit, limit }) } else { Ok(()) }
}

/// Counts the entries, with those of nested tables and arrays.
fn entries_of(table: &Table) -> usize {
    table.iter().map(|(_, value)| 1 + entries_within(value)).sum()
}

fn entries_within(value: &Value) -> usize {
    match value {
        Value::Table(table) => entries_of(table),
        Value::Array(values) => values.iter().map(|value| 1 + entries_within(value)).sum(),
        _ => 0,
    }
}

/// Counts the levels below a table.
fn levels_of(table: &Table) -> usize {
    table.iter().map(|(_, value)| levels_within(value)).max().unwrap_or(0)
}

fn levels_within(value: &Value) -> usize {
    match value {
        Value::Table(table) => 1 + levels_of(table),
        Value::Array(values) => 1 + values.iter().map(levels_within).max().unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_just_within_the_bounds_may_be_kept() {
        assert_eq!(check_arguments(&Table::new()), Ok(()));
        // Length, name with its length, type, and the text's own length.
        let text = "a".repeat(ARGUMENT_BYTES_MAX - 4 - 2 - 1 - 4);
        let mut table = Table::new();
        table.set("a", Value::text(&text));
        assert_eq!(check_arguments(&table), Ok(()));
        table.set("b", Value::Bool(true));
        let error = check_arguments(&table).expect_err("it is too large");
        assert_eq!(error.to_string(), "arguments of 16388 bytes: the limit is 16384");
    }

    #[test]
    fn nested_entries_count() {
        let array = |n| Value::Array(vec![Value::Bool(true); n]);
        let mut table = Table::new();
        table.set("a", array(ARGUMENT_ENTRIES_MAX - 1));
        assert_eq!(check_arguments(&table), Ok(()));
        table.set("a", array(ARGUMENT_ENTRIES_MAX));
        let error = check_arguments(&table).expect_err("it is too large");
        assert_eq!(error.to_string(), "arguments of 257 entries: the limit is 256");
    }

    #[test]
    fn what_may_be_kept_can_be_decoded_again() {
        for within in [
            |inner| Value::Array(vec![Value::Void, inner]),
            |inner| Value::Table(Table::from_iter([("a", inner)])),
        ] {
            let nested = |levels| {
                Table::from_iter([("a", (0..levels).fold(Value::Void, |inner, _| within(inner)))])
            };
            let table = nested(TABLE_DEPTH_MAX);
            assert_eq!(check_arguments(&table), Ok(()));
            let mut encoded = BytesMut::new();
            table.encode(&mut encoded);
            assert_eq!(Table::decode(&encoded[4..]), Ok(table));
            let error = check_arguments(&nested(TABLE_DEPTH_MAX + 1)).expect_err("it is too deep");
            assert_eq!(error.to_string(), "arguments of 33 levels: the limit is 32");
        }
    }
}
