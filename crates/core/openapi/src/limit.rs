//! How much of a list an answer holds.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

/// `?limit=NUMBER`: how many elements of a list are answered, from 1 to `MAX`; `MAX` if the request does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Limit<const MAX: usize>(pub usize);

impl<const MAX: usize> Default for Limit<MAX> {
    fn default() -> Self {
        Self(MAX)
    }
}

impl<const MAX: usize> TryFrom<String> for Limit<MAX> {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.parse() {
            Ok(limit) if (1..=MAX).contains(&limit) => Ok(Self(limit)),
            _ => Err(format!("must be from 1 to {MAX}, is {text:?}")),
        }
    }
}

impl<const MAX: usize> JsonSchema for Limit<MAX> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Limit".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": 1, "maximum": MAX, "default": MAX })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_says_what_it_may_be() {
        let limit = |text: &str| Limit::<100>::try_from(text.to_owned());
        assert_eq!(limit("1"), Ok(Limit(1)));
        assert_eq!(limit("100"), Ok(Limit(100)));
        for wrong in ["0", "101", "-1", "", "ten"] {
            assert_eq!(limit(wrong), Err(format!("must be from 1 to 100, is {wrong:?}")));
        }
    }
}
