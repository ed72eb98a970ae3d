//! A train's last steps: its datagrams get their numbers, headers and seals, and the flight takes
//! them down.

use bytes::{BufMut, BytesMut};

use super::Outbox;
use super::parities::Parities;
use super::scheduling::Scheduled;
use super::sealing::seal_or_write;
use super::train::{Closed, noted};
use crate::Time;
use crate::charge::charge;
use crate::config::Wire;
use crate::flight::{Action, Sent};
use crate::limits::REPAIR_MESSAGE_BYTES_MAX;
use crate::mode::{Mode, Repair};
use crate::transmit::Transmit;
use crate::wire::data::Fragment;
use crate::wire::flags::{self, FlowMode};
use crate::wire::handshake::{COOKIE_BYTES, Handshake};
use crate::wire::probe::{PROBE_BYTES, Probe};
use crate::wire::{HEADER_BYTES, Header, Kind};

/// HELLOs that wait; who is not answered is challenged again.
const REPLIES_MAX: usize = 256;

impl Outbox {
    /// Takes the next thing to send.
    pub(crate) fn poll_transmit(&mut self, now: Time) -> Option<Transmit> {
        if let Some(reply) = self.replies.pop_front() {
            return Some(reply);
        }
        while let Some((slot, turn)) = self.next_scheduled(now) {
            let acted = !matches!(turn, Scheduled::Send(_) | Scheduled::End);
            let transmit = match turn {
                Scheduled::Send(train) => self.depart(slot, train, now),
                Scheduled::Greet => self.greet(slot, now),
                Scheduled::Act(action) => self.act(slot, action),
                Scheduled::End => {
                    let next = self.destinations.at(slot).next_sequence;
                    self.probe(slot, next, next, now)
                }
            };
            self.finish_scheduled(slot, acted);
            if transmit.is_some() {
                return transmit;
            }
        }
        None
    }

    /// Performs what the flight wants.
    fn act(&mut self, slot: u32, action: Action) -> Option<Transmit> {
        match action {
            Action::Repeat(bytes) => {
                self.counters.repeated += 1;
                let destination = self.destinations.at_mut(slot);
                destination.repeated = destination.repeated.saturating_add(1);
                Some(Transmit {
                    to: destination.key.address,
                    segment_bytes: None,
                    may_fragment: bytes.len() > usize::from(destination.path_bytes),
                    bytes,
                })
            }
            Action::Probe { next, floor, sent_at } => {
                self.note_probe(slot, sent_at);
                self.probe(slot, next, floor, sent_at)
            }
            Action::Abandon { messages } => {
                self.abandon(slot, messages);
                None
            }
        }
    }

    /// Gives a train to the network; parity that belongs to it follows at once.
    fn depart(&mut self, slot: u32, mut train: Closed, now: Time) -> Option<Transmit> {
        self.counters.trains += 1;
        self.counters.datagrams += train.segments() as u64;
        self.counters.messages += u64::from(train.messages);
        self.counters.bytes += train.bytes.len() as u64;
        let first = self.destinations.at(slot).next_sequence;
        if self.config.wire == Wire::Quelea && !self.write_headers(slot, &mut train) {
            self.counters.unsealed_messages += u64::from(train.messages);
            return None;
        }
        let begun = train.begun;
        let transmit = self.release(slot, train.bytes, train.segment_bytes);
        self.take_down(slot, first, &transmit, begun, now);
        self.send_parities(slot, begun, now);
        self.greet_the_unheard(slot, now);
        Some(transmit)
    }

    /// Returns the segments as they are given to the driver.
    fn release(&mut self, slot: u32, bytes: BytesMut, segment_bytes: usize) -> Transmit {
        let destination = self.destinations.at(slot);
        let (to, path_bytes) = (destination.key.address, usize::from(destination.path_bytes));
        Transmit {
            to,
            segment_bytes: (bytes.len() > segment_bytes).then_some(segment_bytes),
            may_fragment: segment_bytes > path_bytes,
            bytes: self.compact(slot, bytes).freeze(),
        }
    }

    /// Compacts what is kept to be repeated, since it keeps its whole buffer: a large one with
    /// little in it is changed for a small one.
    fn compact(&mut self, slot: u32, bytes: BytesMut) -> BytesMut {
        if !self.destinations.at(slot).reliable || bytes.len() >= bytes.capacity() / 2 {
            return bytes;
        }
        let small = BytesMut::from(&bytes[..]);
        self.recycle(bytes);
        small
    }

    /// Writes the headers and seals; false if the flow cannot seal any more.
    fn write_headers(&mut self, slot: u32, train: &mut Closed) -> bool {
        let bits = self.flow_flags(slot);
        let session = self.session;
        let tag_bytes = self.tag_bytes();
        let repair = self.profiles.get(self.destinations.at(slot).profile).repair;
        let destination = self.destinations.at_mut(slot);
        let busy = destination.busy.get_or_insert_default();
        if repair != Repair::None && busy.parities.is_none() {
            busy.parities = Parities::new(repair).map(Box::new);
        }
        for segment in train.bytes.chunks_mut(train.segment_bytes) {
            let (count, fragment) = noted(segment);
            let mut header = Header {
                kind: Kind::Data,
                flags: if fragment { bits | flags::FRAGMENT } else { bits },
                flow: destination.flow,
                session,
                mailbox: destination.key.mailbox,
                sequence: destination.next_sequence,
                count,
                first_message: destination.next_message as u32,
            };
            let body = &segment[HEADER_BYTES..segment.len() - tag_bytes];
            if let Some(parities) = &mut busy.parities
                && !(fragment && is_of_large_message(body, count))
            {
                header.flags |= flags::REPAIR;
                parities.add(&header, body);
            }
            if !seal_or_write(busy.sealing.as_deref_mut(), header, segment) {
                return false;
            }
            destination.next_sequence += 1;
            destination.next_message += u64::from(count);
        }
        true
    }

    /// The parity of a train's groups, which follows it.
    fn send_parities(&mut self, slot: u32, begun: Time, now: Time) {
        // The fragments of a message have consecutive sequences.
        if self.next_continues(slot) {
            return;
        }
        let busy = self.destinations.at_mut(slot).busy.as_mut();
        let Some(mut parities) = busy.and_then(|busy| busy.parities.take()) else { return };
        let bits = self.flow_flags(slot);
        let tag_bytes = self.tag_bytes();
        parities.finish();
        while let Some((mut bytes, segment_bytes)) = parities.next_train(tag_bytes) {
            let session = self.session;
            let destination = self.destinations.at_mut(slot);
            let first = destination.next_sequence;
            for segment in bytes.chunks_mut(segment_bytes) {
                let header = Header {
                    kind: Kind::Parity,
                    flags: bits,
                    flow: destination.flow,
                    session,
                    mailbox: destination.key.mailbox,
                    sequence: destination.next_sequence,
                    count: 0,
                    first_message: destination.next_message as u32,
                };
                destination.next_sequence += 1;
                let busy = destination.busy.as_mut();
                let sealing = busy.and_then(|busy| busy.sealing.as_deref_mut());
                if !seal_or_write(sealing, header, segment) {
                    return;
                }
            }
            self.counters.parities += (bytes.len() / segment_bytes) as u64;
            let transmit = self.release(slot, bytes, segment_bytes);
            self.take_down(slot, first, &transmit, begun, now);
            self.replies.push_back(transmit);
        }
        if let Some(busy) = &mut self.destinations.at_mut(slot).busy {
            busy.parities = Some(parities);
        }
    }

    /// Reports to the flight, if there is one, each datagram from `first` on.
    fn take_down(&mut self, slot: u32, first: u64, transmit: &Transmit, begun: Time, now: Time) {
        let destination = self.destinations.at(slot);
        let reliable = destination.reliable;
        let expires = match self.profiles.get(destination.profile).mode {
            Mode::ReliableUntil(age) => Some(begun.after(age)),
            _ => None,
        };
        let bytes = &transmit.bytes;
        let segment_bytes = transmit.segment_bytes.unwrap_or(bytes.len());
        self.with_flight(slot, |flight| {
            let starts = (0..bytes.len()).step_by(segment_bytes);
            for (sequence, start) in (first..).zip(starts) {
                let end = (start + segment_bytes).min(bytes.len());
                let count = u16::from_le_bytes([bytes[start + 30], bytes[start + 31]]);
                let datagram = Sent {
                    sequence,
                    messages: count,
                    charge: charge(end - start),
                    kept: reliable.then(|| bytes.slice(start..end)),
                    expires,
                };
                flight.sent(datagram, now);
            }
        });
    }

    /// Returns the flags that all datagrams of the destination's flow have.
    pub(super) fn flow_flags(&self, slot: u32) -> u8 {
        let options = self.profiles.get(self.destinations.at(slot).profile);
        let credit = if options.credit { flags::CREDIT } else { 0 };
        FlowMode::from(options.mode) as u8 | credit
    }

    fn probe(&mut self, slot: u32, next: u64, floor: u64, sent_at: Time) -> Option<Transmit> {
        self.counters.probes += 1;
        let mut header = self.small_header(slot, Kind::Probe);
        let tag_bytes = self.tag_bytes();
        let destination = self.destinations.at_mut(slot);
        if destination.busy.as_ref().is_some_and(|busy| busy.ending.is_some()) {
            header.flags |= flags::END;
        }
        let mut bytes = BytesMut::with_capacity(HEADER_BYTES + PROBE_BYTES + tag_bytes);
        bytes.extend_from_slice(&header.to_bytes());
        let next_message = destination.next_message;
        Probe { next, floor, next_message, sent_at_us: sent_at.as_micros() }.write(&mut bytes);
        if let Some(sealing) = destination.busy.as_mut().and_then(|busy| busy.sealing.as_mut()) {
            bytes.put_bytes(0, tag_bytes);
            sealing.seal(header, &mut bytes).ok()?;
        }
        Some(self.small(slot, bytes))
    }

    /// A HELLO that gives the cookie of a CHALLENGE back.
    pub(crate) fn on_cookie(&mut self, slot: u32, cookie: [u8; COOKIE_BYTES]) {
        if self.replies.len() >= REPLIES_MAX {
            return;
        }
        let header = self.small_header(slot, Kind::Hello);
        let mut bytes = BytesMut::with_capacity(HEADER_BYTES + COOKIE_BYTES);
        bytes.extend_from_slice(&header.to_bytes());
        Handshake::Cookie(cookie).write(&mut bytes);
        let hello = self.small(slot, bytes);
        self.replies.push_back(hello);
    }

    /// Returns the header of a datagram of the flow that carries no messages.
    pub(super) fn small_header(&mut self, slot: u32, kind: Kind) -> Header {
        self.last_number += 1;
        let destination = self.destinations.at(slot);
        Header {
            kind,
            flags: self.flow_flags(slot),
            flow: destination.flow,
            session: self.session,
            mailbox: destination.key.mailbox,
            sequence: self.last_number,
            count: 0,
            first_message: 0,
        }
    }

    pub(super) fn small(&self, slot: u32, bytes: BytesMut) -> Transmit {
        let to = self.destinations.at(slot).key.address;
        Transmit { to, bytes: bytes.freeze(), segment_bytes: None, may_fragment: false }
    }
}

/// Returns whether a fragment is of a message of which a receiver does not keep all that its parity is
/// of.
fn is_of_large_message(body: &[u8], count: u16) -> bool {
    Fragment::read(body, count)
        .is_ok_and(|(fragment, _)| fragment.total as usize > REPAIR_MESSAGE_BYTES_MAX)
}
