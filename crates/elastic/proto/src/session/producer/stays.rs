//! Slots at relays, and what they owe.

use super::ProducerSession;
use crate::frame::Frame;
use crate::session::{Link, Output};
use crate::{Epoch, MessageSeq, RelayId, Slot, Time};

/// One slot at one relay.
#[derive(Debug)]
pub(super) struct Stay {
    pub(super) link: Link,
    pub(super) relay: RelayId,
    pub(super) epoch: Epoch,
    pub(super) slot: Slot,
    /// As START said.
    pub(super) first: MessageSeq,
    /// As FIN said; `None`: messages go here.
    pub(super) end: Option<MessageSeq>,
    /// The relay has acknowledged all below.
    pub(super) acknowledged: MessageSeq,
    pub(super) credit_bytes: u64,
    pub(super) sent_bytes: u64,
}

impl ProducerSession {
    pub(super) fn open_stay(&self) -> Option<&Stay> {
        self.stays.back().filter(|stay| stay.end.is_none())
    }

    pub(super) fn stay(&mut self, link: Link, slot: Slot) -> Option<&mut Stay> {
        self.stays.iter_mut().find(|stay| stay.link == link && stay.slot == slot)
    }

    /// Says FIN at the relay where messages go, if there is one.
    pub(super) fn finish_open_stay(&mut self) {
        let next = self.window.sent();
        let Some(stay) = self.stays.back_mut().filter(|stay| stay.end.is_none()) else { return };
        stay.end = Some(next);
        let (link, slot) = (stay.link, stay.slot);
        self.send(link, &Frame::Fin { slot, next });
    }

    /// A relay has acknowledged.
    pub(super) fn acked(&mut self, link: Link, slot: Slot, below: MessageSeq, now: Time) {
        let sent = self.window.sent();
        let Some(stay) = self.stay(link, slot) else { return };
        let end = stay.end.unwrap_or(sent);
        if below > end {
            let cause = format!(
                "ACK of slot {}: below {} is more than was sent, {}",
                slot.0, below.0, end.0
            );
            self.stays_lost(link, &cause, now);
            return;
        }
        stay.acknowledged = stay.acknowledged.max(below);
        self.release();
        self.close_if_done();
    }

    /// Forgets what is acknowledged, and relays that owe nothing any more.
    pub(super) fn release(&mut self) {
        while let Some(stay) = self.stays.front()
            && stay.first <= self.window.first()
        {
            self.window.acknowledge(stay.acknowledged);
            if stay.end.is_none_or(|end| stay.acknowledged < end) {
                return;
            }
            let (link, end) = (stay.link, stay.acknowledged);
            self.stays.pop_front();
            self.missed_ends(link, end);
            self.leave(link);
        }
    }

    /// Closes a connection that serves nothing any more.
    pub(super) fn leave(&mut self, link: Link) {
        let stays = self.stays.iter().any(|stay| stay.link == link);
        let attaching = self.attaching.as_ref().is_some_and(|attaching| attaching.link == link);
        if !stays && !attaching {
            self.forsaken.retain(|forsaken| *forsaken != link);
            self.outputs.push_back(Output::Close { link });
        }
    }

    /// A connection is gone. What its relay owed is sent again: at the relay to which we go, or the one
    /// where we are, or the one that the directory will say.
    pub(super) fn stays_lost(&mut self, link: Link, cause: &str, now: Time) {
        let mut lost = None;
        let mut open = false;
        self.stays.retain(|stay| {
            if stay.link == link {
                lost = Some(stay.relay);
                open |= stay.end.is_none();
            }
            stay.link != link
        });
        self.forsaken.retain(|forsaken| *forsaken != link);
        let Some(relay) = lost else { return };
        self.outputs.push_back(Output::Close { link });
        self.owed = true;
        self.stats.failovers += 1;
        let (queue, client) = (self.config.queue.clone(), self.config.producer);
        self.tell_directory(Frame::RelayLost { queue, client, relay, cause: cause.to_owned() });
        if open {
            self.paused_at.get_or_insert(now);
        }
        if self.attaching.is_some() {
            return; // Its START will begin with what is owed.
        }
        match self.open_stay().map(|stay| (stay.link, stay.relay)) {
            Some((link, relay)) => self.attach_again(link, relay, now),
            None => self.ask_later(now),
        }
    }
}
