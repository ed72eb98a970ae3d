//! A move that a client of the API wants.

use quelea_elastic_core::directory::Input;
use quelea_elastic_proto::{ClientId, RelayId};
use serde_json::Value;

use super::refusal::Refusal;
use super::shapes::Move;
use super::{page, show};
use crate::driver::Driver;

/// Which producer, and where to; what is not named is chosen.
pub(super) struct MoveRequest {
    producer: Option<ClientId>,
    to: Option<RelayId>,
}

impl MoveRequest {
    pub(super) fn parse(text: &[u8]) -> Result<Self, Refusal> {
        let no_move = |what: &str| Refusal::NoMove(what.to_owned());
        let wanted: Value = match text.trim_ascii() {
            b"" => Value::Null,
            text => serde_json::from_slice(text)
                .map_err(|error| Refusal::NoMove(format!("no JSON object: {error}")))?,
        };
        let producer = match &wanted["producer"] {
            Value::Null => None,
            Value::String(id) => Some(page::client("producer", id)?),
            _ => return Err(no_move("producer must be an id in hexadecimal digits")),
        };
        let to =
            match &wanted["to"] {
                Value::Null => None,
                to => Some(to.as_u64().map(RelayId).ok_or_else(|| {
                    Refusal::NoMove(format!("to must be a relay's number, is {to}"))
                })?),
            };
        Ok(Self { producer, to })
    }

    /// Returns what is being moved and where, or why not.
    pub(super) fn begin(&self, driver: &mut Driver, queue: &str) -> Result<Move, String> {
        let (moved, to) = driver.core.check_move(queue, self.producer, self.to)?;
        let from = driver.core.producers(queue, None, usize::MAX);
        let from = from.iter().find(|known| known.id == moved).and_then(|known| known.relay);
        let from = from.ok_or_else(|| "the producer is at no relay yet".to_owned())?;
        // Not named, it is the same one again, and the next time another.
        let producer = self.producer;
        driver.input(Input::Move { queue: queue.to_owned(), producer, to: Some(to) });
        Ok(Move { producer: show::client(moved), from: from.0, to: to.0 })
    }
}
