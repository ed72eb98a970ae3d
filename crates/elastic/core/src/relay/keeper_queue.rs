//! Messages on their way to the keeper, at the level Stored: each is sent there as well as to the
//! listeners, and acknowledged only when the keeper says that it is stored.

use std::collections::VecDeque;

use bytes::Bytes;
use quelea_elastic_proto::frame::{Acknowledge, Frame};
use quelea_elastic_proto::limits::DATA_HEADER_BYTES;
use quelea_elastic_proto::wire::FrameHeader;
use quelea_elastic_proto::{ClientId, MessageSeq};

use crate::relay::ledger::Holds;
use crate::relay::ring::Run;
use crate::relay::{Relay, release_in};

/// Runs that are not known to be stored, in the order in which they came. Bounded by the producers'
/// credit, which a run holds back while it is here, also when its producer has sent it again in another slot.
#[derive(Debug, Default)]
pub(crate) struct KeeperQueue {
    entries: VecDeque<PendingKeep>,
    /// So many of them were sent on the connection of now.
    sent: usize,
}

#[derive(Debug)]
struct PendingKeep {
    producer: ClientId,
    run: Run,
    kept: bool,
}

impl Relay {
    /// Notes a run for the keeper, if the queue has one.
    pub(crate) fn enqueue_keep(&mut self, producer: u32, whole: &Run) {
        if self.config.settings.acknowledge != Acknowledge::Stored {
            return;
        }
        let of = &mut self.producers[producer as usize];
        of.ledger.hold(Holds::BOTH);
        let run = Run { holds: Holds::BOTH, ..whole.clone() };
        self.keeper_queue.entries.push_back(PendingKeep { producer: of.id, run, kept: false });
    }

    /// Returns the next KEEP to send, if there is one.
    pub fn poll_keep(&mut self) -> Option<Frame> {
        let entry = self.keeper_queue.entries.get(self.keeper_queue.sent)?;
        self.keeper_queue.sent += 1;
        let mut messages = Vec::with_capacity(entry.run.messages as usize);
        let mut frames = entry.run.bytes.clone();
        while let Ok(Some(header)) = FrameHeader::read(&frames) {
            messages.push(frames.split_to(header.frame_bytes()).slice(DATA_HEADER_BYTES..));
        }
        Some(Frame::Keep { producer: entry.producer, first: entry.run.first, messages })
    }

    /// Returns whether there is something for the keeper.
    #[must_use]
    pub fn has_keeps(&self) -> bool {
        self.keeper_queue.sent < self.keeper_queue.entries.len()
    }

    /// KEPT: the front-most run of this producer that was sent and not answered is stored. The keeper
    /// answers each KEEP of a connection once, in order; by the number alone a run could be taken for
    /// stored that came later and has lower numbers, when the producer was elsewhere in between. What
    /// fits no run is not heeded.
    pub fn kept(&mut self, producer: ClientId, below: MessageSeq) {
        let Self { keeper_queue, producers, unsettled, .. } = self;
        let mut sent = keeper_queue.entries.iter_mut().take(keeper_queue.sent);
        let answered = sent.find(|entry| entry.producer == producer && !entry.kept);
        if let Some(entry) = answered.filter(|entry| entry.run.next() == below) {
            entry.kept = true;
            entry.run.bytes = Bytes::new();
            release_in(producers, unsettled, &entry.run);
        }
        while keeper_queue.entries.front().is_some_and(|entry| entry.kept) {
            keeper_queue.entries.pop_front();
            keeper_queue.sent -= 1;
        }
    }

    /// The keeper's connection is lost, or another one is to be used: all that it has not said to be
    /// stored is sent again. It knows what it has by producer and number.
    pub fn resend_keeps(&mut self) {
        self.keeper_queue.entries.retain(|entry| !entry.kept);
        self.keeper_queue.sent = 0;
    }

    /// Nobody keeps messages any more: what waits for it is done without.
    pub(crate) fn clear_keeper_queue(&mut self) {
        let Self { keeper_queue, producers, unsettled, .. } = self;
        for entry in std::mem::take(keeper_queue).entries.iter().filter(|entry| !entry.kept) {
            release_in(producers, unsettled, &entry.run);
        }
    }

    /// Returns the keeper's address and the durable queue there, if messages are to be stored.
    #[must_use]
    pub fn keeper(&self) -> Option<(&str, &str)> {
        let (address, target) = &self.config.settings.keep;
        let stored = self.config.settings.acknowledge == Acknowledge::Stored && !address.is_empty();
        stored.then_some((address, target))
    }

    /// Returns the name of the queue that this relay serves.
    #[must_use]
    pub fn queue(&self) -> &str {
        &self.config.queue
    }
}
