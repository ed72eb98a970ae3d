//! Going to a relay: connect, ATTACH, then FIN at the old one and START at the new one in one go.

use super::{Phase, ProducerSession, RelayAttachment};
use crate::frame::{Frame, RelayAddress, Start};
use crate::limits::{ATTACH_MS_MAX, OPEN_RETRY_MS, RELAY_ATTACHMENTS_MAX};
use crate::session::Link;
use crate::{Epoch, RelayId, Slot, Time};

/// A relay to which the producer goes.
#[derive(Debug)]
pub(super) struct PendingAttach {
    pub(super) link: Link,
    pub(super) relay: RelayId,
    pub(super) epoch: Epoch,
    pub(super) begun: Time,
    pub(super) deadline: Time,
    /// ATTACH was sent.
    asked: bool,
    /// The same relay and epoch once more, to send what another relay owed: the directory knows of
    /// nothing.
    again: bool,
}

impl ProducerSession {
    /// The directory says where to go.
    pub(super) fn attach(&mut self, epoch: Epoch, relay: RelayAddress, now: Time) {
        self.abandon_attach();
        if let Some(old) = self.attaching.take() {
            self.leave(old.link);
        }
        let Some(relay) = self.defer_move(epoch, relay, now) else { return };
        self.open_retry_at = None;
        let begun = now;
        let deadline = now.plus_ms(ATTACH_MS_MAX);
        let id = relay.relay;
        // To a relay where we are, or that still owes acknowledgements: a slot after the other, on the same
        // connection, or else it would end the old slot before it has read all of it.
        // But not where too much is unanswered.
        let known = self.attachments.iter().rev().find(|attachment| attachment.relay == id);
        let known = known.filter(|_| self.abandoned.len() < RELAY_ATTACHMENTS_MAX);
        let here = known.map(|attachment| attachment.link);
        let is_open = known.is_some_and(|attachment| attachment.end.is_none());
        let link = here.unwrap_or_else(|| self.outbox.next_link());
        let attaching =
            PendingAttach { link, relay: id, epoch, begun, deadline, asked: false, again: false };
        self.attaching = Some(attaching);
        if here.is_some() {
            if is_open {
                self.finish_open_attachment();
                self.paused_at.get_or_insert(now);
            }
            self.connected(link);
        } else {
            self.outbox.connect(link, relay);
        }
    }

    /// Another relay ended that owed acknowledgements: a new slot at the relay where we are.
    pub(super) fn attach_again(&mut self, link: Link, relay: RelayId, now: Time) {
        self.finish_open_attachment();
        self.paused_at.get_or_insert(now);
        let (epoch, begun, deadline) = (self.epoch, now, now.plus_ms(ATTACH_MS_MAX));
        let attaching =
            PendingAttach { link, relay, epoch, begun, deadline, asked: false, again: true };
        self.attaching = Some(attaching);
        self.connected(link);
    }

    /// The connection is there (WELCOME need not be).
    pub(super) fn connected(&mut self, link: Link) {
        let Some(attaching) = &mut self.attaching else { return };
        if attaching.link != link || attaching.asked {
            return;
        }
        attaching.asked = true;
        let attach = Frame::AttachProducer {
            queue: self.config.queue.clone(),
            producer: self.config.producer,
            fence: self.fence,
            epoch: attaching.epoch,
        };
        self.outbox.send(link, &attach);
    }

    /// The relay has a slot for us: the switch.
    pub(super) fn attached(&mut self, link: Link, slot: Slot, credit_bytes: u64, now: Time) {
        if self.take_abandoned(link) {
            return;
        }
        let Some(attaching) = self.attaching.take_if(|attaching| attaching.link == link) else {
            return;
        };
        let before = self.open_attachment().map(|attachment| attachment.relay);
        self.finish_open_attachment();
        let mut previous = self.epoch;
        if self.owed {
            self.owed = false;
            previous = Epoch(0);
            self.stats.resent += self.window.sent().0 - self.window.first().0;
            self.window.rewind();
            let owing: Vec<Link> =
                self.attachments.drain(..).map(|attachment| attachment.link).collect();
            owing.into_iter().filter(|old| *old != link).for_each(|old| self.leave(old));
        }
        let first = self.window.sent();
        let PendingAttach { relay, epoch, .. } = attaching;
        self.epoch = epoch;
        self.open_retry_at = None;
        self.attachments.push_back(RelayAttachment {
            link,
            relay,
            epoch,
            slot,
            first,
            end: None,
            acknowledged: first,
            credit_bytes,
            sent_bytes: 0,
        });
        if previous == Epoch(0) {
            self.send_missed(link, first);
        }
        let producer = self.config.producer;
        self.outbox.send(link, &Frame::Start(Start { slot, producer, epoch, first, previous }));
        self.producing(relay, epoch, first);
        self.release();
        self.note_move(&attaching, before.is_some(), now);
        self.close_if_done();
    }

    /// The ATTACH that was sent last will be answered in vain. A slot without START harms nobody: the
    /// relay ends it at the next ATTACH.
    pub(super) fn abandon_attach(&mut self) {
        let asked = self.attaching.as_ref().filter(|attaching| attaching.asked);
        self.abandoned.extend(asked.map(|attaching| attaching.link));
    }

    /// Takes an answer on this connection for one to such an ATTACH, if there is any: they are
    /// answered in order. Returns whether there was.
    pub(super) fn take_abandoned(&mut self, link: Link) -> bool {
        let at = self.abandoned.iter().position(|abandoned| *abandoned == link);
        at.map(|at| self.abandoned.remove(at)).is_some()
    }

    fn note_move(&mut self, attaching: &PendingAttach, from_relay: bool, now: Time) {
        let paused_at = self.paused_at.take();
        if from_relay {
            self.stats.moves += 1;
            self.stats.last_move_us = now.since_us(attaching.begun);
        }
        self.stats.last_pause_us = paused_at.map_or(0, |paused_at| now.since_us(paused_at));
    }

    /// The relay cannot be reached, or does not want us. If messages go to another one, they still do.
    pub(super) fn attach_failed(&mut self, cause: &str, now: Time) {
        let Some(attaching) = self.attaching.take() else { return };
        self.leave(attaching.link);
        if attaching.again {
            self.attachments_lost(attaching.link, cause, now);
        } else {
            self.produce_failed(attaching.relay, attaching.epoch, cause.to_owned());
        }
        let open = self.open_attachment().map(|attachment| (attachment.link, attachment.relay));
        match open {
            Some((link, relay)) if self.owed => self.attach_again(link, relay, now),
            Some(_) => {}
            None => self.retry_open_later(now),
        }
    }

    pub(super) fn produce_failed(&mut self, relay: RelayId, epoch: Epoch, cause: String) {
        let (queue, producer) = (self.config.queue.clone(), self.config.producer);
        self.outbox.send_to_directory(Frame::ProduceFailed {
            queue,
            producer,
            epoch,
            relay,
            cause,
        });
    }

    /// The directory will say where to go; if it does not, it is asked.
    pub(super) fn retry_open_later(&mut self, now: Time) {
        if self.outbox.has_directory() && self.phase != Phase::Closed {
            self.open_retry_at.get_or_insert_with(|| now.plus_ms(OPEN_RETRY_MS));
        }
    }
}
