//! A move that a client of the API wants.

use quelea_elastic_core::directory::Input;
use quelea_elastic_proto::RelayId;
use schemars::JsonSchema;
use serde::Deserialize;

use super::page::ShownClientId;
use super::refusal::Refusal;
use super::shapes::Move;
use super::show;
use crate::driver::Driver;

/// Which producer is to be moved, and where to.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ElasticMoveRequest")]
pub(super) struct MoveRequest {
    /// Its id in hexadecimal digits; absent: any.
    producer: Option<ShownClientId>,
    /// A relay's number; absent: the least loaded other one.
    to: Option<u64>,
}

impl MoveRequest {
    pub(super) fn parse(text: &[u8]) -> Result<Self, Refusal> {
        if text.trim_ascii().is_empty() {
            return Ok(Self::default());
        }
        quelea_openapi::from_slice(text).map_err(Refusal::Body)
    }

    /// Returns what is being moved and where, or why not.
    pub(super) fn begin(&self, driver: &mut Driver, queue: &str) -> Result<Move, String> {
        let producer = self.producer.map(|ShownClientId(id)| id);
        let (moved, to) = driver.core.check_move(queue, producer, self.to.map(RelayId))?;
        let from = driver.core.producers(queue, None, usize::MAX);
        let from = from.iter().find(|known| known.id == moved).and_then(|known| known.relay);
        let from = from.ok_or_else(|| "the producer is at no relay yet".to_owned())?;
        // Not named, it is the same one again, and the next time another.
        driver.input(Input::Move { queue: queue.to_owned(), producer, to: Some(to) });
        Ok(Move { producer: show::client(moved), from: from.0, to: to.0 })
    }
}
