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

/// Stretches that are not known to be stored, in the order in which they came. Bounded by the producers'
/// credit, which a stretch holds back while it is here.
#[derive(Debug, Default)]
pub(crate) struct Keeping {
    stretches: VecDeque<Stretch>,
    /// So many of them were sent on the connection of now.
    sent: usize,
}

#[derive(Debug)]
struct Stretch {
    producer: ClientId,
    run: Run,
    kept: bool,
}

impl Relay {
    /// Notes a stretch for the keeper, if the queue has one.
    pub(crate) fn keep(&mut self, producer: u32, whole: &Run) {
        if self.config.settings.acknowledge != Acknowledge::Stored {
            return;
        }
        let of = &mut self.producers[producer as usize];
        of.ledger.hold(Holds::BOTH);
        let run = Run { holds: Holds::BOTH, ..whole.clone() };
        self.keeping.stretches.push_back(Stretch { producer: of.id, run, kept: false });
    }

    /// The next KEEP to send, if there is one.
    pub fn poll_keep(&mut self) -> Option<Frame> {
        let stretch = self.keeping.stretches.get(self.keeping.sent)?;
        self.keeping.sent += 1;
        let mut messages = Vec::with_capacity(stretch.run.messages as usize);
        let mut frames = stretch.run.bytes.clone();
        while let Ok(Some(header)) = FrameHeader::read(&frames) {
            messages.push(frames.split_to(header.frame_bytes()).slice(DATA_HEADER_BYTES..));
        }
        Some(Frame::Keep { producer: stretch.producer, first: stretch.run.first, messages })
    }

    /// There is something for the keeper.
    #[must_use]
    pub fn has_to_keep(&self) -> bool {
        self.keeping.sent < self.keeping.stretches.len()
    }

    /// KEPT: the front-most stretch of this producer that was sent and not answered is stored. The keeper
    /// answers each KEEP of a connection once, in order; by the number alone a stretch could be taken for
    /// stored that came later and has lower numbers, when the producer was elsewhere in between. What
    /// fits no stretch is not heeded.
    pub fn kept(&mut self, producer: ClientId, below: MessageSeq) {
        let Self { keeping, producers, unsettled, .. } = self;
        let mut sent = keeping.stretches.iter_mut().take(keeping.sent);
        let answered = sent.find(|stretch| stretch.producer == producer && !stretch.kept);
        if let Some(stretch) = answered.filter(|stretch| stretch.run.next() == below) {
            stretch.kept = true;
            stretch.run.bytes = Bytes::new();
            release_in(producers, unsettled, &stretch.run);
        }
        while keeping.stretches.front().is_some_and(|stretch| stretch.kept) {
            keeping.stretches.pop_front();
            keeping.sent -= 1;
        }
    }

    /// The keeper's connection is lost, or another one is to be used: all that it has not said to be
    /// stored is sent again. It knows what it has by producer and number.
    pub fn keep_again(&mut self) {
        self.keeping.stretches.retain(|stretch| !stretch.kept);
        self.keeping.sent = 0;
    }

    /// Nobody keeps messages any more: what waits for it is done without.
    pub(crate) fn keep_nothing(&mut self) {
        let Self { keeping, producers, unsettled, .. } = self;
        for stretch in std::mem::take(keeping).stretches.iter().filter(|stretch| !stretch.kept) {
            release_in(producers, unsettled, &stretch.run);
        }
    }

    /// The keeper's address and the durable queue there, if messages are to be stored.
    #[must_use]
    pub fn keeper(&self) -> Option<(&str, &str)> {
        let (address, target) = &self.config.settings.keep;
        let stored = self.config.settings.acknowledge == Acknowledge::Stored && !address.is_empty();
        stored.then_some((address, target))
    }

    /// The queue that this relay serves.
    #[must_use]
    pub fn queue(&self) -> &str {
        &self.config.queue
    }
}
