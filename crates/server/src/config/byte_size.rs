//! Sizes among the settings and on command lines.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use quelea_model::byte_size::{format, parse};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

/// What an integer field may hold that is marked with it for its schema.
pub(super) struct ByteSize;

pub(super) const MIB: u64 = 1 << 20;
pub(super) const GIB: u64 = 1 << 30;

impl ByteSize {
    pub(super) const FORMAT: &'static str = "byte-size";
}

impl JsonSchema for ByteSize {
    fn schema_name() -> Cow<'static, str> {
        "ByteSize".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "format": Self::FORMAT })
    }
}

/// Reads a size of a command line.
///
/// # Errors
/// Says what would be one, or within which limits.
pub(crate) fn parse_within(text: &str, within: RangeInclusive<usize>) -> Result<usize, String> {
    let Ok(bytes) = parse(text) else {
        return Err("not a size such as 65536 or 4MiB".to_owned());
    };
    let bytes = usize::try_from(bytes).ok().filter(|bytes| within.contains(bytes));
    let show = |limit: &usize| format(*limit as u64);
    bytes.ok_or_else(|| format!("not within {} to {}", show(within.start()), show(within.end())))
}
