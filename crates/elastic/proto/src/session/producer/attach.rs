//! Going to a relay: connect, ATTACH, then FIN at the old one and START at the new one in one go.

use super::{Phase, ProducerSession, Stay};
use crate::frame::{Frame, RelayAddress, Start};
use crate::limits::{ASK_AGAIN_MS, ATTACH_MS_MAX, STAYS_MAX};
use crate::session::{Link, Output};
use crate::{Epoch, RelayId, Slot, Time};

/// A relay to which the producer goes.
#[derive(Debug)]
pub(super) struct Attaching {
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
        self.forsake();
        if let Some(old) = self.attaching.take() {
            self.leave(old.link);
        }
        let Some(relay) = self.put_off(epoch, relay, now) else { return };
        self.ask_at = None;
        let begun = now;
        let deadline = now.plus_ms(ATTACH_MS_MAX);
        let id = relay.relay;
        // To a relay where we are, or that still owes acknowledgements: a slot after the other, on the same
        // connection, or else it would end the old slot before it has read all of it.
        // But not where too much is unanswered.
        let known = self.stays.iter().rev().find(|stay| stay.relay == id);
        let known = known.filter(|_| self.forsaken.len() < STAYS_MAX);
        let here = known.map(|stay| stay.link);
        let is_open = known.is_some_and(|stay| stay.end.is_none());
        let link = here.unwrap_or_else(|| self.next_link());
        let attaching =
            Attaching { link, relay: id, epoch, begun, deadline, asked: false, again: false };
        self.attaching = Some(attaching);
        if here.is_some() {
            if is_open {
                self.finish_open_stay();
                self.paused_at.get_or_insert(now);
            }
            self.handle_connected(link, now);
        } else {
            self.outputs.push_back(Output::Connect { link, relay });
        }
    }

    /// Another relay ended that owed acknowledgements: a new slot at the relay where we are.
    pub(super) fn attach_again(&mut self, link: Link, relay: RelayId, now: Time) {
        self.finish_open_stay();
        self.paused_at.get_or_insert(now);
        let (epoch, begun, deadline) = (self.epoch, now, now.plus_ms(ATTACH_MS_MAX));
        let attaching =
            Attaching { link, relay, epoch, begun, deadline, asked: false, again: true };
        self.attaching = Some(attaching);
        self.handle_connected(link, now);
    }

    /// The connection is there (WELCOME need not be).
    pub fn handle_connected(&mut self, link: Link, _now: Time) {
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
        self.send(link, &attach);
    }

    /// The relay has a slot for us: the switch.
    pub(super) fn attached(&mut self, link: Link, slot: Slot, credit_bytes: u64, now: Time) {
        if self.take_forsaken(link) {
            return;
        }
        let Some(attaching) = self.attaching.take_if(|attaching| attaching.link == link) else {
            return;
        };
        let before = self.open_stay().map(|stay| stay.relay);
        self.finish_open_stay();
        let mut previous = self.epoch;
        if self.owed {
            self.owed = false;
            previous = Epoch(0);
            self.stats.resent += self.window.sent().0 - self.window.first().0;
            self.window.rewind();
            let owing: Vec<Link> = self.stays.drain(..).map(|stay| stay.link).collect();
            owing.into_iter().filter(|old| *old != link).for_each(|old| self.leave(old));
        }
        let first = self.window.sent();
        let Attaching { relay, epoch, .. } = attaching;
        self.epoch = epoch;
        self.ask_at = None;
        self.stays.push_back(Stay {
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
            self.tell_missed(link, first);
        }
        let producer = self.config.producer;
        self.send(link, &Frame::Start(Start { slot, producer, epoch, first, previous }));
        self.producing(relay, epoch, first);
        self.release();
        self.note_move(&attaching, before.is_some(), now);
        self.close_if_done();
    }

    /// The ATTACH that was sent last will be answered in vain. A slot without START harms nobody: the
    /// relay ends it at the next ATTACH.
    pub(super) fn forsake(&mut self) {
        let asked = self.attaching.as_ref().filter(|attaching| attaching.asked);
        self.forsaken.extend(asked.map(|attaching| attaching.link));
    }

    /// Whether an answer on this connection is to such an ATTACH: they are answered in order.
    pub(super) fn take_forsaken(&mut self, link: Link) -> bool {
        let at = self.forsaken.iter().position(|forsaken| *forsaken == link);
        at.map(|at| self.forsaken.remove(at)).is_some()
    }

    fn note_move(&mut self, attaching: &Attaching, from_relay: bool, now: Time) {
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
            self.stays_lost(attaching.link, cause, now);
        } else {
            self.produce_failed(attaching.relay, attaching.epoch, cause.to_owned());
        }
        let open = self.open_stay().map(|stay| (stay.link, stay.relay));
        match open {
            Some((link, relay)) if self.owed => self.attach_again(link, relay, now),
            Some(_) => {}
            None => self.ask_later(now),
        }
    }

    pub(super) fn produce_failed(&mut self, relay: RelayId, epoch: Epoch, cause: String) {
        let (queue, producer) = (self.config.queue.clone(), self.config.producer);
        self.tell_directory(Frame::ProduceFailed { queue, producer, epoch, relay, cause });
    }

    /// The directory will say where to go; if it does not, it is asked.
    pub(super) fn ask_later(&mut self, now: Time) {
        if self.directory && self.phase != Phase::Closed {
            self.ask_at.get_or_insert_with(|| now.plus_ms(ASK_AGAIN_MS));
        }
    }
}
