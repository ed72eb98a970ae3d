//! Moves that an operator asks for.

use quelea_elastic_proto::{ClientId, RelayId};

use crate::directory::context::Context;
use crate::directory::queue::Queue;
use crate::directory::queue::producer::Producer;

impl Queue {
    /// Returns who would be moved, and where to; or why nobody.
    pub(in crate::directory) fn check_move(
        &self,
        producer: Option<ClientId>,
        to: Option<RelayId>,
    ) -> Result<(ClientId, RelayId), String> {
        let id = match producer {
            Some(id) => id,
            None => self.next_round_robin().ok_or("no producer can be moved now")?,
        };
        let known = self.producers.get(&id);
        let known = known.ok_or_else(|| format!("producer {:032x} is not known", id.0))?;
        let refuse = |why: &str| Err(format!("producer {:032x} {why}", id.0));
        if known.fixed {
            return refuse("speaks ZMTP to its relay, so it cannot be moved");
        }
        if known.peer.is_none() {
            return refuse("is not connected to the directory");
        }
        if known.moving.is_some() {
            return refuse("is being moved");
        }
        let Some(place) = known.place else { return refuse("has no relay yet") };
        let to = match to {
            Some(to) => to,
            None => self
                .choose_relay(Some(place.relay))
                .filter(|to| *to != place.relay)
                .ok_or("no other relay is up")?,
        };
        if to == place.relay {
            return refuse(&format!("is at relay {} already", to.0));
        }
        match self.relays.get(&to) {
            Some(relay) if relay.takes_producers() => Ok((id, to)),
            Some(_) => Err(format!("relay {} takes no producers now", to.0)),
            None => Err(format!("relay {} is not known", to.0)),
        }
    }

    pub(in crate::directory) fn move_for_operator(
        &mut self,
        cx: &mut Context<'_>,
        producer: Option<ClientId>,
        to: Option<RelayId>,
    ) {
        if let Ok((id, to)) = self.check_move(producer, to) {
            if producer.is_none() {
                self.planning.last_operator_move = Some(id);
            }
            self.begin_move(cx, id, to, "an operator asked for it".to_owned());
        }
    }

    /// Returns the first producer that can be moved after the last one that was, in the order of
    /// ids.
    fn next_round_robin(&self) -> Option<ClientId> {
        let can = |producer: &Producer| {
            let is_free = producer.moving.is_none() && !producer.fixed;
            is_free && producer.peer.is_some() && producer.place.is_some()
        };
        let movable = || self.producers.iter().filter(|(_, producer)| can(producer));
        let after = |id: &ClientId| self.planning.last_operator_move.is_none_or(|last| *id > last);
        let next = movable().map(|(id, _)| *id).find(after);
        next.or_else(|| movable().map(|(id, _)| *id).next())
    }
}
