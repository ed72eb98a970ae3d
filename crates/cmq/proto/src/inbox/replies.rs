//! Answers to those that are not known: as few and as small as what came from them.

use core::net::SocketAddr;
use std::collections::VecDeque;

use crate::Time;
use crate::inbox::content::Arrived;
use crate::inbox::flow::{COMMON_FLAGS, FlowKey};
use crate::inbox::reporting::Answer;
use crate::key::Mailbox;
use crate::wire::handshake::COOKIE_BYTES;
use crate::wire::refusal::{REFUSAL_BYTES, Refusal};
use crate::wire::{HEADER_BYTES, Header, Kind};

/// Answers that wait to be sent.
const REPLIES_MAX: usize = 256;

/// REFUSALs that may leave at once, and the time for another: a sender asks again anyway, and a
/// flood of mistaken or forged datagrams is not worth an answer each.
const REFUSALS_BURST: u64 = 64;
const REFUSAL_US: u64 = 1_000;

/// CHALLENGEs and REFUSALs that are to be sent.
#[derive(Debug, Default)]
pub(super) struct Replies {
    waiting: VecDeque<Answer>,
    number: u64,
    /// When all REFUSALs that were given are paid for.
    paid: Time,
}

impl Replies {
    pub(super) fn pop(&mut self) -> Option<Answer> {
        self.waiting.pop_front()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Adds a CHALLENGE. Returns false if there are too many answers.
    pub(super) fn challenge(
        &mut self,
        flow: FlowKey,
        mailbox: Mailbox,
        flags: u8,
        cookie: [u8; COOKIE_BYTES],
    ) -> bool {
        let Some(header) = self.header(Kind::Challenge, flow, mailbox, flags) else {
            return false;
        };
        self.waiting.push_back(Answer::Challenge { to: flow.from, header, cookie });
        true
    }

    /// Adds a REFUSAL. Returns false if there are too many, or the answer would be larger than what
    /// came.
    pub(super) fn refuse(&mut self, arrived: &Arrived<'_>, why: Refusal) -> bool {
        let bytes = HEADER_BYTES + REFUSAL_BYTES + arrived.header.tag_bytes();
        let earliest =
            Time::from_micros(arrived.now.as_micros().saturating_sub(REFUSALS_BURST * REFUSAL_US));
        let paid = self.paid.max(earliest).plus_us(REFUSAL_US);
        if arrived.bytes < bytes || paid > arrived.now {
            return false;
        }
        let to: SocketAddr = arrived.from;
        let flags = arrived.header.flags & COMMON_FLAGS;
        let Some(header) = self.header(Kind::Refusal, arrived.key(), arrived.header.mailbox, flags)
        else {
            return false;
        };
        self.paid = paid;
        self.waiting.push_back(Answer::Refusal { to, header, why });
        true
    }

    fn header(&mut self, kind: Kind, flow: FlowKey, mailbox: Mailbox, flags: u8) -> Option<Header> {
        if self.waiting.len() >= REPLIES_MAX {
            return None;
        }
        self.number += 1;
        Some(Header {
            kind,
            flags,
            flow: flow.number,
            session: flow.session,
            mailbox,
            sequence: self.number,
            count: 0,
            first_message: 0,
        })
    }
}
