//! Listeners whose connection broke: producers are sent MISSED before what they miss is acknowledged. And those
//! who are left behind.

use quelea_elastic_proto::frame::{Acknowledge, Frame};
use quelea_elastic_proto::limits::SEQUENCE_MAX;
use quelea_elastic_proto::{ClientId, MessageSeq, RelayId, Slot};

use super::{Hosted, Link, SessionWorld, Who, Wire};

impl SessionWorld {
    /// The producer is to go there at once: listeners who are not there yet are left behind.
    pub(crate) fn move_promptly(&mut self, producer: usize, relay: u64) {
        self.moves.retain(|(of, _)| *of != producer);
        self.produce_at(producer, RelayId(relay));
    }

    pub(super) fn notify_absent(&mut self, id: RelayId, slot: Slot) {
        for listener in self.relays[&id].absent.clone() {
            self.notify_missed(id, slot, listener, MessageSeq(SEQUENCE_MAX));
        }
    }

    /// MISSED waits for START.
    pub(super) fn take_missed(
        &mut self,
        id: RelayId,
        key: (Who, Link),
        producer: ClientId,
        frame: Frame,
    ) {
        let relay = self.relays.get_mut(&id).expect("a relay that was connected to");
        let starts =
            |of: &&mut Hosted| of.wire == key && of.producer == producer && of.started.is_none();
        // Of several the last: the others were attached in vain.
        let slot = relay.slots.values_mut().rev().find(starts);
        slot.expect("MISSED comes between ATTACHED and START").missed.push(frame);
    }

    pub(super) fn notify_who_missed(&mut self, id: RelayId, slot: Slot) {
        for frame in std::mem::take(&mut self.hosted(id, slot).missed) {
            if let Frame::Missed { listener, .. } = frame {
                self.pass_missed(id, listener, frame);
            }
        }
    }

    fn pass_missed(&mut self, id: RelayId, listener: ClientId, frame: Frame) {
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
                self.notify_missed(id, slot, listener, MessageSeq(SEQUENCE_MAX));
            }
        }
    }

    pub(super) fn misses_no_more(&mut self, id: RelayId, listener: ClientId) {
        let relay = self.relays.get_mut(&id).expect("a relay that was connected to");
        if relay.absent.remove(&listener) {
            let slots: Vec<(Slot, MessageSeq)> =
                relay.slots.iter().map(|(slot, hosted)| (*slot, hosted.next)).collect();
            for (slot, below) in slots {
                self.notify_missed(id, slot, listener, below);
            }
        }
    }

    fn notify_missed(&mut self, id: RelayId, slot: Slot, listener: ClientId, below: MessageSeq) {
        let hosted = self.hosted(id, slot);
        let (producer, wire) = (hosted.producer, hosted.wire);
        if hosted.started.is_some() {
            self.down(wire, Frame::Missed { producer, listener, below });
        }
    }
}
