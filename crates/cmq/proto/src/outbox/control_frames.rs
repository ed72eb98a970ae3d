//! What receivers say, and what is due: it goes to the destination's flight, and the destination gets
//! its turn.

use core::net::SocketAddr;

use bytes::{Bytes, BytesMut};

use super::Outbox;
use crate::Time;
use crate::destination_id::DestinationId;
use crate::event::Event;
use crate::limits;
use crate::wire::status::Status;
use crate::wire::{Header, Kind};

impl Outbox {
    /// Finds the destination that an answer is for: its flow is ours and it comes from where that
    /// goes. Counts an answer that has none.
    pub(crate) fn find_answered(&mut self, from: SocketAddr, header: &Header) -> Option<u32> {
        let found = self.destinations.find_flow(header.flow).filter(|slot| {
            let key = &self.destinations.at(*slot).key;
            header.session == self.session && key.address == from && key.mailbox == header.mailbox
        });
        if found.is_none() {
            self.counters.stray_answers += 1;
        }
        found
    }

    /// A STATUS for the destination.
    pub(crate) fn on_status(&mut self, slot: u32, number: u64, status: &Status, now: Time) {
        self.counters.statuses += 1;
        let heard = self.with_flight(slot, |flight| flight.on_status(status, number, now));
        let Some(outcome) = heard else { return self.enqueue(slot) };
        self.counters.impossible_statuses += u64::from(outcome.impossible);
        // Whatever a receiver says.
        let lost = &mut self.counters.lost_messages;
        *lost = lost.saturating_add(outcome.lost_messages);
        let destination = self.destinations.at(slot);
        if destination.reliable && outcome.lost_messages > 0 {
            // Only a deadline lets a receiver of a reliable flow count losses.
            let (to, messages) = (destination.key, outcome.lost_messages);
            self.note_given_up(slot, messages);
            self.report(Event::Abandoned { to, messages });
        }
        if outcome.restarted {
            self.counters.restarts += 1;
            match self.destinations.at(slot) {
                destination if !destination.reliable => {}
                destination if destination.sealing().is_some() => self.seal_anew(slot, now),
                _ => self.restart(slot, now),
            }
        }
        self.enqueue(slot);
    }

    /// The receiver has no such mailbox, or no room for the flow.
    pub(crate) fn on_refusal(&mut self, slot: u32, now: Time) {
        self.counters.refusals += 1;
        let follows = !self.destinations.at(slot).closing;
        self.with_flight(slot, |flight| flight.on_refusal(follows, now));
        self.enqueue(slot);
    }

    /// Batches that are old enough leave, and flights do what is due.
    pub(crate) fn on_timer(&mut self, now: Time) {
        while let Some((_, slot)) = self.deadlines.oldest().filter(|(due, _)| *due <= now) {
            self.flush(slot);
        }
        let mut due = core::mem::take(&mut self.due);
        while let Some((_, slot)) = self.timers.oldest().filter(|(due, _)| *due <= now) {
            self.timers.delete(slot);
            due.push(slot);
        }
        for slot in due.drain(..) {
            self.enqueue(slot);
            if self.destinations.at(slot).sealing().is_some_and(|sealing| !sealing.has_keys()) {
                continue;
            }
            self.with_flight(slot, |flight| {
                if flight.next_deadline().is_some_and(|at| at <= now) {
                    flight.on_timer(now);
                }
            });
        }
        self.due = due;
    }

    /// The receiver has forgotten the flow: what it has not acknowledged is repeated as another.
    fn restart(&mut self, slot: u32, now: Time) {
        self.last_flow = self.last_flow.wrapping_add(1);
        let flow = self.last_flow;
        self.destinations.change_flow(slot, flow);
        let mut first_message = 0_u64;
        let next = self.with_flight(slot, |flight| {
            flight.restart(now, |sequence, count, bytes| {
                let again = renumbered(&bytes, flow, sequence, first_message as u32);
                first_message += u64::from(count);
                again
            })
        });
        let destination = self.destinations.at_mut(slot);
        destination.next_sequence = next.unwrap_or(0);
        destination.next_message = first_message;
        // Parity that waits is of the old flow.
        if let Some(busy) = &mut destination.busy {
            busy.parities = None;
        }
    }

    /// The receiver is gone. What waits for a reliable one is given up too.
    pub(super) fn abandon(&mut self, slot: u32, messages: u64) {
        let destination = self.destinations.at(slot);
        if !destination.reliable {
            return;
        }
        let to = destination.key;
        let messages = messages + self.drop_all(slot);
        self.counters.abandoned_messages += messages;
        self.note_given_up(slot, messages);
        self.report(Event::Abandoned { to, messages });
    }

    /// Whoever waits for acknowledgements is to hear of it.
    pub(super) fn note_given_up(&mut self, slot: u32, messages: u64) {
        let destination = self.destinations.at_mut(slot);
        destination.given_up = destination.given_up.saturating_add(u32::from(messages > 0));
    }

    /// Returns how often messages to the destination were given up, and whether its receiver was;
    /// none if it is closed and forgotten.
    pub(crate) fn given_up(&self, id: DestinationId) -> Option<(u32, bool)> {
        self.destinations.get(id).map(|it| (it.given_up, it.is_dead()))
    }

    fn report(&mut self, event: Event) {
        if self.events.len() < limits::EVENTS_MAX {
            self.events.push_back(event);
        } else {
            self.counters.events_dropped += 1;
        }
    }
}

/// Returns the datagram as one of another flow. None for parity, which names others by their old
/// numbers.
fn renumbered(datagram: &Bytes, flow: u32, sequence: u64, first_message: u32) -> Option<Bytes> {
    let header = Header::parse(datagram).expect("it was written here, and left");
    if header.kind == Kind::Parity {
        return None;
    }
    let mut bytes = BytesMut::from(&datagram[..]);
    Header { flow, sequence, first_message, ..header }.write(&mut bytes);
    Some(bytes.freeze())
}
