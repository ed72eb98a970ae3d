//! Listeners whose connection broke: producers are told before what they miss is acknowledged.

use quelea_elastic_proto::frame::{Acknowledge, Frame};
use quelea_elastic_proto::limits::SEQUENCE_MAX;
use quelea_elastic_proto::{ClientId, MessageSeq, RelayId, Slot};

use super::{Link, Who, Wire, World};

impl World {
    pub(super) fn tell_absent(&mut self, id: RelayId, slot: Slot) {
        for listener in self.relays[&id].absent.clone() {
            self.tell_missed(id, slot, listener, MessageSeq(SEQUENCE_MAX));
        }
    }

    pub(super) fn pass_missed(&mut self, id: RelayId, listener: ClientId, frame: Frame) {
        let who = Who::Listener(listener.0 as usize - 1_000);
        let here = |(of, wire): &(&(Who, Link), &Wire)| {
            of.0 == who && wire.relay == id && wire.prefixes.is_some() && !wire.broken
        };
        match self.wires.iter().find(here).map(|(key, _)| *key) {
            Some(key) => self.down(key, frame),
            None => self.may_miss(id, listener),
        }
    }

    pub(super) fn may_miss(&mut self, id: RelayId, listener: ClientId) {
        let relay = self.relays.get_mut(&id).expect("a relay that was connected to");
        if self.level != Acknowledge::Relayed && relay.absent.insert(listener) {
            let slots: Vec<Slot> = relay.slots.keys().copied().collect();
            for slot in slots {
                self.tell_missed(id, slot, listener, MessageSeq(SEQUENCE_MAX));
            }
        }
    }

    pub(super) fn misses_no_more(&mut self, id: RelayId, listener: ClientId) {
        let relay = self.relays.get_mut(&id).expect("a relay that was connected to");
        if relay.absent.remove(&listener) {
            let slots: Vec<(Slot, MessageSeq)> =
                relay.slots.iter().map(|(slot, hosted)| (*slot, hosted.next)).collect();
            for (slot, below) in slots {
                self.tell_missed(id, slot, listener, below);
            }
        }
    }

    fn tell_missed(&mut self, id: RelayId, slot: Slot, listener: ClientId, below: MessageSeq) {
        let hosted = self.hosted(id, slot);
        let (producer, wire) = (hosted.producer, hosted.wire);
        if hosted.started.is_some() {
            self.down(wire, Frame::Missed { producer, listener, below });
        }
    }
}
