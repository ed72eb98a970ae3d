//! How large the argument tables may be that queues, exchanges, bindings and consumers keep.

use bytes::BytesMut;
use quelea_model::limits::{ARGUMENT_BYTES_MAX, ARGUMENT_ENTRIES_MAX};
use quelea_model::{Table, Value};

use crate::error::ArgumentsTooLarge;

/// Checks a table that is about to be kept.
pub(crate) fn check_arguments(arguments: &Table) -> Result<(), ArgumentsTooLarge> {
    if arguments.is_empty() {
        return Ok(());
    }
    let entries = entries_of(arguments);
    if entries > ARGUMENT_ENTRIES_MAX {
        let (unit, limit) = ("entries", ARGUMENT_ENTRIES_MAX);
        return Err(ArgumentsTooLarge { size: entries, unit, limit });
    }
    let mut encoded = BytesMut::new();
    arguments.encode(&mut encoded);
    if encoded.len() > ARGUMENT_BYTES_MAX {
        let (unit, limit) = ("bytes", ARGUMENT_BYTES_MAX);
        return Err(ArgumentsTooLarge { size: encoded.len(), unit, limit });
    }
    Ok(())
}

/// Counts the entries, with those of nested tables and arrays. Decoding has bounded the depth.
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
}
