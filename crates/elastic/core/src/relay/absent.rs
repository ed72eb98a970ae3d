//! Who may miss what is acknowledged: listeners whose connection broke, who are left behind, or for whom
//! messages were dropped. Producers are told (MISSED) before the acknowledgement, and tell it at the next
//! relay if this one dies: nobody else would know then.

use std::collections::{BTreeMap, VecDeque};

use quelea_elastic_proto::frame::{ErrorCode, Frame, WireError};
use quelea_elastic_proto::limits::{MISSED_MAX, SEQUENCE_MAX};
use quelea_elastic_proto::{ClientId, MessageSeq};

use crate::relay::Relay;
use crate::relay::client::Kind;
use crate::relay::conversation::refusal;
use crate::relay::limits::ABSENT_MAX;
use crate::relay::listening::waits_for_listeners;
use crate::relay::producer::State;
use crate::relay::ring::{Control, encoded};

/// A place in the order in which listeners were noted; grows.
pub(crate) type AbsenceNumber = u64;

/// Listeners that may miss what is acknowledged now, at most [`ABSENT_MAX`].
#[derive(Debug, Default)]
pub(crate) struct Absences {
    /// Producers told of them. They may be gone for good, or not exist: they make room for the others.
    heard: VecDeque<(AbsenceNumber, ClientId)>,
    /// This relay saw it itself.
    noted: VecDeque<(AbsenceNumber, ClientId)>,
    last: AbsenceNumber,
}

impl Absences {
    fn all(&self) -> impl Iterator<Item = &(AbsenceNumber, ClientId)> {
        self.heard.iter().chain(&self.noted)
    }

    fn has(&self, listener: ClientId) -> bool {
        self.all().any(|(_, of)| *of == listener)
    }

    fn note(&mut self, listener: ClientId) {
        if self.heard.len() + self.noted.len() == ABSENT_MAX {
            let _oldest = self.heard.pop_front().or_else(|| self.noted.pop_front());
        }
        self.last += 1;
        self.noted.push_back((self.last, listener));
    }

    /// Whether there was room.
    fn hear(&mut self, listener: ClientId) -> bool {
        let has_room = self.heard.len() + self.noted.len() < ABSENT_MAX;
        if has_room {
            self.last += 1;
            self.heard.push_back((self.last, listener));
        }
        has_room
    }

    fn remove(&mut self, listener: ClientId) -> bool {
        let before = self.heard.len() + self.noted.len();
        self.heard.retain(|(_, of)| *of != listener);
        self.noted.retain(|(_, of)| *of != listener);
        self.heard.len() + self.noted.len() < before
    }
}

impl Relay {
    /// From now on messages are acknowledged that this listener may not have.
    pub(crate) fn may_miss(&mut self, listener: ClientId) {
        if self.is_new_absence(listener) {
            self.absences.note(listener);
            self.unsettle_all();
        }
    }

    /// The same, which a producer says. It pushes out nobody of whom this relay knows it itself.
    fn hear_of_absent(&mut self, listener: ClientId) {
        if self.is_new_absence(listener) && self.absences.hear(listener) {
            self.unsettle_all();
        }
    }

    fn is_new_absence(&self, listener: ClientId) -> bool {
        waits_for_listeners(self.config.settings.acknowledge) && !self.absences.has(listener)
    }

    fn unsettle_all(&mut self) {
        let indexes: Vec<u32> = self.producers.iter().map(|(index, _)| index as u32).collect();
        indexes.into_iter().for_each(|index| self.unsettle(index));
    }

    /// MISSED, between ATTACHED and START: goes to its listener with START. One that is not here then may
    /// miss what is acknowledged here, too.
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
            return Err(refusal(ErrorCode::Order, "producer", text));
        };
        let told = &mut producers[index as usize].told_missed;
        if told.len() == MISSED_MAX {
            let text =
                format!("MISSED number {} in one slot: {MISSED_MAX} are the limit", told.len() + 1);
            return Err(refusal(ErrorCode::Limit, "listener", text));
        }
        told.push((listener, below));
        Ok(())
    }

    /// Right before START is told: one who attached after MISSED was read gets it, too.
    pub(crate) fn tell_who_missed(&mut self, index: u32) {
        let of = &mut self.producers[index as usize];
        let (producer, told) = (of.id, std::mem::take(&mut of.told_missed));
        for (listener, below) in told {
            let here = |index: &&u32| {
                let listens = self.clients[**index as usize].listener.as_ref();
                listens.is_some_and(|of| of.id == listener)
            };
            match self.listeners.iter().find(here).copied() {
                Some(index) => {
                    let frame = encoded(&Frame::Missed { producer, listener, below });
                    self.tell_listener(index, &frame, Control::Other);
                }
                None => self.hear_of_absent(listener),
            }
        }
    }

    /// Messages were dropped for a listener. When it has read of them is not known: until it attaches again
    /// it may miss some, if this relay dies.
    pub(crate) fn was_dropped_for(&mut self, index: u32) {
        let client = &mut self.clients[index as usize];
        let native = client.kind == Kind::Native;
        let Some(listener) = &mut client.listener else { return };
        if native && !std::mem::replace(&mut listener.missing, true) {
            let id = listener.id;
            self.may_miss(id);
        }
    }

    /// From now on it gets all, or is told: only what was sent until now may be missed.
    pub(crate) fn misses_no_more(&mut self, listener: ClientId) {
        if !self.absences.remove(listener) {
            return;
        }
        // A producer with several slots on a connection is told the greatest number: its last word counts.
        let mut told: BTreeMap<(Option<u32>, ClientId), (MessageSeq, u32)> = BTreeMap::new();
        for (index, of) in self.producers.iter().filter(|(_, of)| of.state != State::Attached) {
            let greatest = told.entry((of.client, of.id)).or_default();
            *greatest = (*greatest).max((of.next, index as u32));
        }
        for (below, index) in told.into_values() {
            self.tell_missed(index, listener, below);
        }
    }

    /// Tells a producer who may miss what it is told next to be acknowledged.
    pub(crate) fn tell_absences(&mut self, index: u32) {
        let producer = &mut self.producers[index as usize];
        if producer.state == State::Attached {
            return;
        }
        let told = std::mem::replace(&mut producer.told_absent, self.absences.last);
        if told == self.absences.last {
            return;
        }
        let new = self.absences.all().filter(|(number, _)| *number > told);
        let listeners: Vec<ClientId> = new.map(|(_, listener)| *listener).collect();
        for listener in listeners {
            self.tell_missed(index, listener, MessageSeq(SEQUENCE_MAX));
        }
    }

    fn tell_missed(&mut self, index: u32, listener: ClientId, below: MessageSeq) {
        let producer = &self.producers[index as usize];
        let id = producer.id;
        let Some(client) = producer.client else { return };
        if self.clients[client as usize].kind == Kind::Native {
            self.tell(client, &Frame::Missed { producer: id, listener, below });
        }
    }
}
