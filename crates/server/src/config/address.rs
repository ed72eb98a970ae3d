//! Addresses in the configuration: what a field of type `String` may hold that is marked with one of
//! these types for its schema.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

/// `HOST:PORT`; port 0 takes a free one.
pub(super) struct Address;

/// The same, or empty for none.
pub(super) struct OptionalAddress;

/// `SCHEME://HOST` or `SCHEME://HOST:PORT`, as a browser writes the origin of a page.
pub(super) struct Origin;

impl Address {
    pub(super) const FORMAT: &'static str = "address";
}

impl OptionalAddress {
    pub(super) const FORMAT: &'static str = "optional-address";
}

impl Origin {
    pub(super) const FORMAT: &'static str = "origin";
}

impl JsonSchema for Address {
    fn schema_name() -> Cow<'static, str> {
        "Address".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": Self::FORMAT })
    }
}

impl JsonSchema for OptionalAddress {
    fn schema_name() -> Cow<'static, str> {
        "OptionalAddress".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": Self::FORMAT })
    }
}

impl JsonSchema for Origin {
    fn schema_name() -> Cow<'static, str> {
        "Origin".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": Self::FORMAT })
    }
}

/// Returns whether a text is an origin. `*` and `null` are none: they would be every page.
pub(super) fn is_origin(text: &str) -> bool {
    let is_authority = |authority: &str| {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
        !authority.is_empty() && authority.bytes().all(is_part)
    };
    text.split_once("://").is_some_and(|(scheme, authority)| {
        !scheme.is_empty()
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && is_authority(authority)
    })
}

/// Returns whether a text is `HOST:PORT`.
pub(super) fn is_address(text: &str) -> bool {
    text.rsplit_once(':')
        .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
}
