//! A train's last steps: its datagrams get their numbers, headers and seals, and the flight takes
//! them down.

use bytes::BytesMut;

use super::Outbox;
use super::train::{Closed, noted};
use super::turns::Turn;
use crate::config::Wire;
use crate::endpoint::Transmit;
use crate::flight::{self, Action, Sent};
use crate::mode::Mode;
use crate::time::Time;
use crate::wire::flags::{self, FlowMode};
use crate::wire::hello::{COOKIE_BYTES, Hello};
use crate::wire::probe::{PROBE_BYTES, Probe};
use crate::wire::{HEADER_BYTES, Header, Kind};

/// HELLOs that wait; who is not answered is challenged again.
const REPLIES_MAX: usize = 256;

impl Outbox {
    /// The next thing to send.
    pub(crate) fn poll_transmit(&mut self, now: Time) -> Option<Transmit> {
        if let Some(reply) = self.replies.pop_front() {
            return Some(reply);
        }
        while let Some((slot, turn)) = self.next_turn(now) {
            let acted = matches!(turn, Turn::Act(_));
            let transmit = match turn {
                Turn::Send(train) => Some(self.depart(slot, train, now)),
                Turn::Act(action) => self.act(slot, action),
                Turn::End => {
                    let next = self.directory.at(slot).next_sequence;
                    Some(self.probe(slot, next, next, now))
                }
            };
            self.end_turn(slot, acted);
            if transmit.is_some() {
                return transmit;
            }
        }
        None
    }

    /// Does what the flight wants.
    fn act(&mut self, slot: u32, action: Action) -> Option<Transmit> {
        match action {
            Action::Repeat(bytes) => {
                self.counters.repeated += 1;
                let destination = self.directory.at(slot);
                Some(Transmit {
                    to: destination.key.address,
                    segment_bytes: None,
                    may_fragment: bytes.len() > usize::from(destination.path_bytes),
                    bytes,
                })
            }
            Action::Probe { next, floor, sent_at } => Some(self.probe(slot, next, floor, sent_at)),
            Action::Abandon { messages } => {
                self.abandon(slot, messages);
                None
            }
        }
    }

    fn depart(&mut self, slot: u32, mut train: Closed, now: Time) -> Transmit {
        self.counters.trains += 1;
        self.counters.datagrams += train.segments() as u64;
        self.counters.messages += u64::from(train.messages);
        self.counters.bytes += train.bytes.len() as u64;
        let first = self.directory.at(slot).next_sequence;
        if self.config.wire == Wire::Quelea {
            self.write_headers(slot, &mut train);
        }
        let destination = self.directory.at(slot);
        let (to, path_bytes) = (destination.key.address, usize::from(destination.path_bytes));
        let segment_bytes = train.segment_bytes;
        let transmit = Transmit {
            to,
            segment_bytes: (train.segments() > 1).then_some(segment_bytes),
            may_fragment: segment_bytes > path_bytes,
            bytes: self.compact(slot, train.bytes).freeze(),
        };
        self.take_down(slot, first, segment_bytes, &transmit, train.begun, now);
        transmit
    }

    /// What is kept to be repeated keeps its whole buffer: a large one with little in it is changed
    /// for a small one.
    fn compact(&mut self, slot: u32, bytes: BytesMut) -> BytesMut {
        if !self.directory.at(slot).reliable || bytes.len() >= bytes.capacity() / 2 {
            return bytes;
        }
        let small = BytesMut::from(&bytes[..]);
        self.recycle(bytes);
        small
    }

    fn write_headers(&mut self, slot: u32, train: &mut Closed) {
        let bits = self.flow_flags(slot);
        let destination = self.directory.at_mut(slot);
        for segment in train.bytes.chunks_mut(train.segment_bytes) {
            let (count, fragment) = noted(segment);
            let header = Header {
                kind: Kind::Data,
                flags: if fragment { bits | flags::FRAGMENT } else { bits },
                flow: destination.flow,
                session: self.session,
                mailbox: destination.key.mailbox,
                sequence: destination.next_sequence,
                count,
                first_message: destination.next_message as u32,
            };
            header.write(segment);
            destination.next_sequence += 1;
            destination.next_message += u64::from(count);
        }
    }

    /// Tells the flight, if there is one, of each datagram from `first` on.
    fn take_down(
        &mut self,
        slot: u32,
        first: u64,
        segment_bytes: usize,
        transmit: &Transmit,
        begun: Time,
        now: Time,
    ) {
        let destination = self.directory.at(slot);
        let reliable = destination.reliable;
        let expires = match self.profiles.get(destination.profile).mode {
            Mode::ReliableUntil(age) => Some(begun.after(age)),
            _ => None,
        };
        let bytes = &transmit.bytes;
        self.with_flight(slot, |flight| {
            let starts = (0..bytes.len()).step_by(segment_bytes);
            for (sequence, start) in (first..).zip(starts) {
                let end = (start + segment_bytes).min(bytes.len());
                let count = u16::from_le_bytes([bytes[start + 30], bytes[start + 31]]);
                let datagram = Sent {
                    sequence,
                    messages: count,
                    charge: flight::charge(end - start),
                    kept: reliable.then(|| bytes.slice(start..end)),
                    expires,
                };
                flight.sent(datagram, now);
            }
        });
    }

    /// The flags that all datagrams of the destination's flow have.
    pub(super) fn flow_flags(&self, slot: u32) -> u8 {
        let options = self.profiles.get(self.directory.at(slot).profile);
        let credit = if options.credit { flags::CREDIT } else { 0 };
        FlowMode::from(options.mode) as u8 | credit
    }

    fn probe(&mut self, slot: u32, next: u64, floor: u64, sent_at: Time) -> Transmit {
        self.counters.probes += 1;
        let mut header = self.small_header(slot, Kind::Probe);
        let destination = self.directory.at(slot);
        if destination.busy.as_ref().is_some_and(|busy| busy.ending.is_some()) {
            header.flags |= flags::END;
        }
        let mut bytes = BytesMut::with_capacity(HEADER_BYTES + PROBE_BYTES);
        bytes.extend_from_slice(&header.to_bytes());
        let next_message = destination.next_message;
        Probe { next, floor, next_message, sent_at_us: sent_at.as_us() }.write(&mut bytes);
        self.small(slot, bytes)
    }

    /// A HELLO that gives the cookie of a CHALLENGE back.
    pub(crate) fn on_cookie(&mut self, slot: u32, cookie: [u8; COOKIE_BYTES]) {
        if self.replies.len() >= REPLIES_MAX {
            return;
        }
        let header = self.small_header(slot, Kind::Hello);
        let mut bytes = BytesMut::with_capacity(HEADER_BYTES + COOKIE_BYTES);
        bytes.extend_from_slice(&header.to_bytes());
        Hello::Cookie(cookie).write(&mut bytes);
        let hello = self.small(slot, bytes);
        self.replies.push_back(hello);
    }

    /// The header of a datagram of the flow that carries no messages.
    fn small_header(&mut self, slot: u32, kind: Kind) -> Header {
        self.last_number += 1;
        let destination = self.directory.at(slot);
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

    fn small(&self, slot: u32, bytes: BytesMut) -> Transmit {
        let to = self.directory.at(slot).key.address;
        Transmit { to, bytes: bytes.freeze(), segment_bytes: None, may_fragment: false }
    }
}
