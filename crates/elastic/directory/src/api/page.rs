//! A part of a list: the directory's thread makes no answer of a hundred thousand elements.

use quelea_elastic_proto::{ClientId, RelayId};
use schemars::JsonSchema;
use serde::Deserialize;

use super::PAGE_MAX;
use super::refusal::Refusal;

/// `?after=NAME_OR_ID&limit=NUMBER`: which part of a list. The lists are sorted, so a client that goes on after the
/// last one that it got misses none that was there all the while.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Page {
    /// Only what comes after this one: a queue's name, a relay's number, a client's id.
    pub(super) after: Option<String>,
    /// From 1 to [`PAGE_MAX`].
    #[schemars(range(min = 1, max = 1_000))]
    limit: Option<usize>,
}

impl Page {
    pub(super) fn limit(&self) -> Result<usize, Refusal> {
        match self.limit.unwrap_or(PAGE_MAX) {
            limit @ 1..=PAGE_MAX => Ok(limit),
            limit => Err(Refusal::Limit(limit)),
        }
    }

    pub(super) fn after_relay(&self) -> Result<Option<RelayId>, Refusal> {
        let number =
            |text: &String| text.parse().map(RelayId).map_err(|_| Refusal::RelayId(text.clone()));
        self.after.as_ref().map(number).transpose()
    }

    pub(super) fn after_client(&self) -> Result<Option<ClientId>, Refusal> {
        self.after.as_deref().map(|id| client("after", id)).transpose()
    }
}

/// A client's id, as it is shown.
pub(super) fn client(field: &'static str, id: &str) -> Result<ClientId, Refusal> {
    let number = u128::from_str_radix(id, 16).map(ClientId);
    number.map_err(|_| Refusal::ClientId { field, value: id.to_owned() })
}
