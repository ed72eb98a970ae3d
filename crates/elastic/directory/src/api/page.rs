//! A part of a list: the directory's thread makes no answer of a hundred thousand elements.

use std::borrow::Cow;

use quelea_elastic_core::directory::limits::PAGE_SIZE_MAX;
use quelea_elastic_proto::{ClientId, RelayId};
use quelea_openapi::Limit;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

/// `?after=NAME_OR_ID&limit=NUMBER`: which part of a list. The lists are sorted, so a client that goes on after the
/// last one that it got misses none that was there all the while.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Page<A> {
    /// Only what comes after this one: a queue's name, a relay's number, a client's id.
    pub(super) after: Option<A>,
    /// How many at most.
    #[serde(default)]
    pub(super) limit: Limit<PAGE_SIZE_MAX>,
}

/// A relay's number behind `?`.
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct RelayNumber(pub(super) RelayId);

impl TryFrom<String> for RelayNumber {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let number = text.parse().map(|number| Self(RelayId(number)));
        number.map_err(|_| format!("must be a relay's number, is {text:?}"))
    }
}

impl JsonSchema for RelayNumber {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "RelayNumber".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": 0, "maximum": u64::MAX })
    }
}

/// A client's id as it is shown: at most [`ID_DIGITS`] hexadecimal digits.
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct ShownClientId(pub(super) ClientId);

/// As many as 16 bytes have.
const ID_DIGITS: usize = 32;

impl TryFrom<String> for ShownClientId {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let is_hex = text.bytes().all(|digit| digit.is_ascii_hexdigit());
        match u128::from_str_radix(&text, 16) {
            Ok(id) if is_hex && text.len() <= ID_DIGITS => Ok(Self(ClientId(id))),
            _ => {
                Err(format!("must be an id of at most {ID_DIGITS} hexadecimal digits, is {text:?}"))
            }
        }
    }
}

impl JsonSchema for ShownClientId {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "ClientId".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": format!("^[0-9a-fA-F]{{1,{ID_DIGITS}}}$") })
    }
}
