//! Who may miss what is acknowledged: listeners whose connection broke, who are left behind, or for whom
//! messages were dropped. Producers are sent MISSED before the acknowledgement, and pass it on to the next
//! relay if this one dies: nobody else would know then.

use std::collections::BTreeMap;

use quelea_elastic_proto::frame::{ErrorCode, Frame, WireError};
use quelea_elastic_proto::limits::{MISSED_MAX, SEQUENCE_MAX};
use quelea_elastic_proto::{ClientId, MessageSeq};

use crate::relay::Relay;
use crate::relay::client::Kind;
use crate::relay::producer::State;
use crate::relay::ring::{Control, encoded};

impl Relay {
    /// From now on messages are acknowledged that this listener may not have.
    pub(crate) fn may_miss(&mut self, listener: ClientId) {
        if self.is_newly_missed(listener) {
            self.missed_listeners.observe(listener);
            self.unsettle_all();
        }
    }

    /// The same, which a producer says. It evicts nobody that this relay observed itself.
    fn add_vouched_listener(&mut self, listener: ClientId) {
        if self.is_newly_missed(listener) && self.missed_listeners.vouch_for(listener) {
            self.unsettle_all();
        }
    }

    fn is_newly_missed(&self, listener: ClientId) -> bool {
        self.config.settings.acknowledge.waits_for_listeners()
            && !self.missed_listeners.has(listener)
    }

    fn unsettle_all(&mut self) {
        let indexes: Vec<u32> = self.producers.iter().map(|(index, _)| index as u32).collect();
        indexes.into_iter().for_each(|index| self.unsettle(index));
    }

    /// Handles MISSED, between ATTACHED and START: goes to its listener with START. One that is not
    /// here then may miss what is acknowledged here, too.
    pub(crate) fn take_missed(
        &mut self,
        client: u32,
        producer: ClientId,
        listener: ClientId,
        below: MessageSeq,
    ) -> Result<(), WireError> {
        let Self { clients, producers, .. } = self;
        let slots = clients[client as usize].slots.iter().map(|(_, index)| *index);
        let mut starting = slots.filter(|index| {
            let of = &producers[*index as usize];
            of.id == producer && of.state == State::Attached
        });
        let Some(index) = starting.next() else {
            let text = format!(
                "MISSED of producer {:032x}: no slot of it on this connection is between ATTACHED and START",
                producer.0
            );
            return Err(WireError::refusal(ErrorCode::Order, "producer", text));
        };
        let pending = &mut producers[index as usize].pending_missed;
        if pending.len() == MISSED_MAX {
            let text = format!(
                "MISSED number {} in one slot: {MISSED_MAX} are the limit",
                pending.len() + 1
            );
            return Err(WireError::refusal(ErrorCode::Limit, "listener", text));
        }
        pending.push((listener, below));
        Ok(())
    }

    /// Right before START is announced: one who attached after MISSED was read gets it, too.
    pub(crate) fn send_pending_missed(&mut self, index: u32) {
        let of = &mut self.producers[index as usize];
        let (producer, pending) = (of.id, std::mem::take(&mut of.pending_missed));
        for (listener, below) in pending {
            let here = |index: &&u32| {
                let listens = self.clients[**index as usize].listener.as_ref();
                listens.is_some_and(|of| of.id == listener)
            };
            match self.listeners.iter().find(here).copied() {
                Some(index) => {
                    let frame = encoded(&Frame::Missed { producer, listener, below });
                    self.send_to_listener(index, &frame, Control::Other);
                }
                None => self.add_vouched_listener(listener),
            }
        }
    }

    /// Messages were dropped for a listener. When it has read of them is not known: until it attaches again
    /// it may miss some, if this relay dies.
    pub(crate) fn was_dropped_for(&mut self, index: u32) {
        self.notice_drop(index);
        let client = &mut self.clients[index as usize];
        let native = client.kind == Kind::Native;
        let Some(listener) = &mut client.listener else { return };
        if native && !std::mem::replace(&mut listener.missing, true) {
            let id = listener.id;
            self.may_miss(id);
        }
    }

    /// From now on it gets all, or a GAP: only what was sent until now may be missed.
    pub(crate) fn misses_no_more(&mut self, listener: ClientId) {
        if !self.missed_listeners.remove(listener) {
            return;
        }
        // A producer with several slots on a connection is sent the greatest number: the last one counts.
        let mut latest: BTreeMap<(Option<u32>, ClientId), (MessageSeq, u32)> = BTreeMap::new();
        for (index, of) in self.producers.iter().filter(|(_, of)| of.state != State::Attached) {
            let greatest = latest.entry((of.client, of.id)).or_default();
            *greatest = (*greatest).max((of.next, index as u32));
        }
        for (below, index) in latest.into_values() {
            self.send_missed(index, listener, below);
        }
    }

    /// Sends a producer MISSED for all who may miss what is acknowledged to it next.
    pub(crate) fn send_missed_listeners(&mut self, index: u32) {
        let producer = &mut self.producers[index as usize];
        if producer.state == State::Attached {
            return;
        }
        let sent = std::mem::replace(&mut producer.missed_sent, self.missed_listeners.last());
        if sent == self.missed_listeners.last() {
            return;
        }
        let new = self.missed_listeners.all().filter(|(number, _)| *number > sent);
        let listeners: Vec<ClientId> = new.map(|(_, listener)| *listener).collect();
        for listener in listeners {
            self.send_missed(index, listener, MessageSeq(SEQUENCE_MAX));
        }
    }

    fn send_missed(&mut self, index: u32, listener: ClientId, below: MessageSeq) {
        let producer = &self.producers[index as usize];
        let id = producer.id;
        let Some(client) = producer.client else { return };
        if self.clients[client as usize].kind == Kind::Native {
            self.send(client, &Frame::Missed { producer: id, listener, below });
        }
    }
}
