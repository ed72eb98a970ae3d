//! Who may miss what is acknowledged: listeners whose connection broke, who are left behind, or for whom
//! messages were dropped. Producers are told (MISSED) before the acknowledgement, and tell it at the next
//! relay if this one dies: nobody else would know then.

use std::collections::VecDeque;

use quelea_elastic_proto::frame::Frame;
use quelea_elastic_proto::limits::SEQUENCE_MAX;
use quelea_elastic_proto::{ClientId, MessageSeq};

use crate::relay::Relay;
use crate::relay::client::Kind;
use crate::relay::limits::ABSENT_MAX;
use crate::relay::listening::waits_for_listeners;
use crate::relay::producer::State;

/// A place in the order in which listeners were noted; grows.
pub(crate) type AbsenceNumber = u64;

/// Listeners that may miss what is acknowledged now, the last noted ones.
#[derive(Debug, Default)]
pub(crate) struct Absences {
    noted: VecDeque<(AbsenceNumber, ClientId)>,
    last: AbsenceNumber,
}

impl Absences {
    fn has(&self, listener: ClientId) -> bool {
        self.noted.iter().any(|(_, of)| *of == listener)
    }

    fn add(&mut self, listener: ClientId) {
        self.last += 1;
        self.noted.push_back((self.last, listener));
        if self.noted.len() > ABSENT_MAX {
            self.noted.pop_front();
        }
    }

    fn remove(&mut self, listener: ClientId) -> bool {
        let before = self.noted.len();
        self.noted.retain(|(_, of)| *of != listener);
        self.noted.len() < before
    }
}

impl Relay {
    /// From now on messages are acknowledged that this listener may not have.
    pub(crate) fn may_miss(&mut self, listener: ClientId) {
        if !waits_for_listeners(self.config.settings.acknowledge) || self.absences.has(listener) {
            return;
        }
        self.absences.add(listener);
        let indexes: Vec<u32> = self.producers.iter().map(|(index, _)| index as u32).collect();
        indexes.into_iter().for_each(|index| self.unsettle(index));
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
        let told = self.producers.iter().filter(|(_, of)| of.state != State::Attached);
        let indexes: Vec<u32> = told.map(|(index, _)| index as u32).collect();
        for index in indexes {
            let below = self.producers[index as usize].next;
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
        let new = self.absences.noted.iter().filter(|(number, _)| *number > told);
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
