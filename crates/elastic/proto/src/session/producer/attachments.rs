//! Slots at relays, and what they owe.

use super::ProducerSession;
use crate::frame::Frame;
use crate::session::Link;
use crate::{Epoch, MessageSeq, RelayId, Slot, Time};

/// One slot at one relay.
#[derive(Debug)]
pub(super) struct RelayAttachment {
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
    pub(super) fn open_attachment(&self) -> Option<&RelayAttachment> {
        self.attachments.back().filter(|attachment| attachment.end.is_none())
    }

    pub(super) fn attachment(&mut self, link: Link, slot: Slot) -> Option<&mut RelayAttachment> {
        self.attachments
            .iter_mut()
            .find(|attachment| attachment.link == link && attachment.slot == slot)
    }

    /// Says FIN at the relay where messages go, if there is one.
    pub(super) fn finish_open_attachment(&mut self) {
        let next = self.window.sent();
        let Some(attachment) =
            self.attachments.back_mut().filter(|attachment| attachment.end.is_none())
        else {
            return;
        };
        attachment.end = Some(next);
        let (link, slot) = (attachment.link, attachment.slot);
        self.outbox.send(link, &Frame::Fin { slot, next });
    }

    /// A relay has acknowledged.
    pub(super) fn acked(&mut self, link: Link, slot: Slot, below: MessageSeq, now: Time) {
        let sent = self.window.sent();
        let Some(attachment) = self.attachment(link, slot) else { return };
        let end = attachment.end.unwrap_or(sent);
        if below > end {
            let cause = format!(
                "ACK of slot {}: below {} is more than was sent, {}",
                slot.0, below.0, end.0
            );
            self.attachments_lost(link, &cause, now);
            return;
        }
        attachment.acknowledged = attachment.acknowledged.max(below);
        self.release();
        self.close_if_done();
    }

    /// Forgets what is acknowledged, and relays that owe nothing any more.
    pub(super) fn release(&mut self) {
        while let Some(attachment) = self.attachments.front()
            && attachment.first <= self.window.first()
        {
            self.window.acknowledge(attachment.acknowledged);
            if attachment.end.is_none_or(|end| attachment.acknowledged < end) {
                return;
            }
            let (link, end) = (attachment.link, attachment.acknowledged);
            self.attachments.pop_front();
            self.missed_ends(link, end);
            self.leave(link);
        }
    }

    /// Closes a connection that serves nothing any more.
    pub(super) fn leave(&mut self, link: Link) {
        let attached = self.attachments.iter().any(|attachment| attachment.link == link);
        let attaching = self.attaching.as_ref().is_some_and(|attaching| attaching.link == link);
        if !attached && !attaching {
            self.abandoned.retain(|abandoned| *abandoned != link);
            self.outbox.close(link);
        }
    }

    /// A connection is gone. What its relay owed is sent again: at the relay to which we go, or the one
    /// where we are, or the one that the directory will say.
    pub(super) fn attachments_lost(&mut self, link: Link, cause: &str, now: Time) {
        let mut lost = None;
        let mut open = false;
        self.attachments.retain(|attachment| {
            if attachment.link == link {
                lost = Some(attachment.relay);
                open |= attachment.end.is_none();
            }
            attachment.link != link
        });
        self.abandoned.retain(|abandoned| *abandoned != link);
        let Some(relay) = lost else { return };
        self.outbox.close(link);
        self.owed = true;
        self.stats.failovers += 1;
        self.outbox.report_relay_lost(relay, cause);
        if open {
            self.paused_at.get_or_insert(now);
        }
        if self.attaching.is_some() {
            return; // Its START will begin with what is owed.
        }
        match self.open_attachment().map(|attachment| (attachment.link, attachment.relay)) {
            Some((link, relay)) => self.attach_again(link, relay, now),
            None => self.retry_open_later(now),
        }
    }
}
