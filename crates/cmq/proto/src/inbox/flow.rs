//! What is known of one sender's flow to a mailbox here.

use core::net::SocketAddr;

use crate::Time;
use crate::inbox::credit::FlowCredit;
use crate::inbox::flow_ref::FlowRef;
use crate::inbox::gaps::Gaps;
use crate::inbox::peer_counts::PeerCounts;
use crate::inbox::unacknowledged::Unacknowledged;
use crate::inbox::waiting::Waiting;
use crate::inbox::window::{Place, Window};
use crate::key::Mailbox;
use crate::mailbox_ref::MailboxRef;
use crate::mode::Mode;
use crate::repair::FecDecoder;
use crate::wire::Header;
use crate::wire::flags::{self, FlowMode};

/// The flags that all datagrams of a flow have in common.
pub(super) const COMMON_FLAGS: u8 = flags::MODE_MASK | flags::CREDIT | flags::SEALED;

/// One flow. Its sender gave it a number in its session; from another address it is another flow.
#[derive(Debug)]
pub(super) struct Flow {
    pub(super) key: FlowKey,
    pub(super) at: FlowRef,
    /// Reported to the sender as the receiver's session: another if the flow was forgotten meanwhile, so
    /// that the sender repeats what it has not been acknowledged.
    pub(super) receiver_session: u64,
    pub(super) mailbox: Mailbox,
    pub(super) room: MailboxRef,
    pub(super) mode: FlowMode,
    pub(super) flags: u8,
    /// Whether its address was proven to be its own.
    pub(super) proven: bool,
    pub(super) window: Window,
    pub(super) gaps: Gaps,
    /// The number of the message that comes next after all that is known.
    pub(super) next_message: u64,
    /// Reported to the sender.
    pub(super) lost_messages: u64,
    /// Reported to the application, with those of the sender's sessions before.
    pub(super) counts: PeerCounts,
    pub(super) last_arrival: Time,
    pub(super) credit: FlowCredit,
    pub(super) report: Report,
    /// Bytes that came while it was not proven, less those that were sent to it.
    pub(super) may_be_sent: usize,
    pub(super) challenged_at: Option<Time>,
    /// The lowest number that its next PROBE may have.
    pub(super) next_probe: u64,
    /// One past what was delivered last, where only the latest counts.
    pub(super) delivered_below: u64,
    /// Whether a look at what waits is due.
    pub(super) held_armed: bool,
    /// Whether a look at its gaps is due.
    pub(super) gaps_armed: bool,
    pub(super) ending: Ending,
    /// Whether it is in the line of those whose end is to be reported when there is room.
    pub(super) end_waits: bool,
    /// Only while something waits.
    pub(super) waiting: Option<Box<Waiting>>,
    pub(super) unacknowledged: Unacknowledged,
    /// Only where parity is sent along.
    pub(super) decoder: Option<Box<FecDecoder>>,
    /// What it takes of the memory that all flows share.
    pub(super) decoder_taken: usize,
}

/// How a sender calls a flow, and from where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FlowKey {
    pub(super) from: SocketAddr,
    pub(super) session: u64,
    pub(super) number: u32,
}

/// Whether and when a STATUS is to leave.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// It is in the line of those that leave now.
    pub(super) due: bool,
    /// It leaves soon.
    pub(super) wanted: bool,
    /// A look at it is due.
    pub(super) armed: bool,
    /// Trains since the last.
    pub(super) trains: u8,
    /// The clock of the PROBE that it answers, and when that came.
    pub(super) echo: Option<(u64, Time)>,
    /// The number of the next.
    pub(super) number: u64,
}

/// How far the end of a flow is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Ending {
    /// More may follow.
    #[default]
    Open,
    /// Nothing follows this sequence.
    Announced(u64),
    /// The application got its event.
    Reported,
}

impl Flow {
    /// Returns the number of a message, of which a header has the low 32 bits.
    #[inline]
    pub(super) const fn message_number(&self, low: u32) -> u64 {
        let ahead = low.wrapping_sub(self.next_message as u32).cast_signed();
        self.next_message.wrapping_add_signed(ahead as i64)
    }

    /// Returns the number of messages missing before a datagram at `place`, or none if the datagram
    /// contradicts what is known of the flow.
    #[inline]
    pub(super) fn missing_messages(&self, header: &Header, place: Place) -> Option<u64> {
        match place {
            Place::New { missing } => {
                let first = self.message_number(header.first_message);
                let messages = first.checked_sub(self.next_message)?;
                let most = missing.saturating_mul(u64::from(u16::MAX));
                (messages <= most).then_some(messages)
            }
            Place::Missing => self.gaps.has_room_for(header.sequence, header.count).then_some(0),
            _ => Some(0),
        }
    }

    /// Returns whether a datagram is of this flow's kind.
    #[inline]
    pub(super) fn agrees(&self, header: &Header) -> bool {
        (header.flags ^ self.flags) & COMMON_FLAGS == 0 && header.mailbox == self.mailbox
    }

    /// Returns whether nothing that has come waits to be delivered before `sequence`.
    #[inline]
    pub(super) fn nothing_before(&self, sequence: u64) -> bool {
        let held = self.waiting.as_ref().and_then(|waiting| waiting.next());
        held.is_none_or(|(first, _)| *first > sequence)
    }

    /// Returns where in the oldest gap that begins which parity may still bring back. That of a
    /// message in fragments is behind the last of them, and the message is waited for only so long.
    pub(super) fn awaits_parity_from(&self) -> Option<u64> {
        let (decoder, waiting) = (self.decoder.as_ref()?, self.waiting.as_ref()?);
        let (first, past) = self.gaps.oldest_range()?;
        let from = waiting.partial_from(first.max(decoder.parity_below()))?;
        (from < past).then_some(from)
    }

    /// Returns what the flow takes of the memory that all flows share.
    pub(super) fn taken(&self) -> usize {
        self.decoder_taken + self.waiting.as_ref().map_or(0, |waiting| waiting.taken)
    }

    /// Returns whether its sender gets answers. Not one that keeps to no credit and repeats
    /// nothing: it may be sending to a group, where all would answer at once.
    pub(super) fn wants_status(&self) -> bool {
        self.has_credit() || self.mode.is_reliable()
    }

    pub(super) const fn has_credit(&self) -> bool {
        self.flags & flags::CREDIT != 0
    }

    /// Returns the mode as the application knows it. How long messages live, only the sender knows.
    pub(super) const fn application_mode(&self) -> Mode {
        match self.mode {
            FlowMode::Lossy => Mode::Lossy,
            FlowMode::LatestOnly => Mode::LatestOnly,
            FlowMode::ReliableUnordered => Mode::ReliableUnordered,
            FlowMode::ReliableOrdered => Mode::ReliableOrdered,
            FlowMode::ReliableUntil => Mode::ReliableUntil(core::time::Duration::ZERO),
        }
    }

    /// Returns the sequence below which everything may be forgotten by the sender.
    pub(super) fn acknowledged_below(&self) -> u64 {
        if !self.mode.is_reliable() {
            return self.window.highest();
        }
        let waiting = self.waiting.as_ref().and_then(|waiting| waiting.lowest());
        let lowest = [self.unacknowledged.lowest(), waiting].into_iter().flatten().min();
        self.window.below().min(lowest.unwrap_or(u64::MAX))
    }
}
