//! What leaves an endpoint.

use bytes::BytesMut;

use super::{DestinationId, Endpoint, Transmit};
use crate::config::Wire;
use crate::outbox::train::{Closed, noted};
use crate::time::Time;
use crate::wire::flags::{self, FlowMode};
use crate::wire::{Header, Kind};

impl Endpoint {
    /// The destination's batch leaves as soon as it may.
    pub fn flush(&mut self, id: DestinationId, now: Time) {
        let _ = now;
        self.outbox.flush_destination(id);
    }

    /// All batches leave as soon as they may.
    pub fn flush_all(&mut self, now: Time) {
        let _ = now;
        self.outbox.flush_all();
    }

    /// Whether a push that was refused with `WouldBlock` may succeed now.
    #[must_use]
    pub fn writable(&self, id: DestinationId) -> bool {
        self.outbox.writable(id)
    }

    /// Whether everything pushed so far has left (and is acknowledged, where it is reliable).
    #[must_use]
    pub fn is_settled(&self, id: DestinationId) -> bool {
        self.outbox.is_settled(id)
    }

    /// Flushes, and forgets it once everything is sent (and acknowledged, where it is reliable). The
    /// receiver is told by a PROBE with the flag END, repeated as any PROBE until a STATUS comes.
    pub fn close_destination(&mut self, id: DestinationId, now: Time) {
        let _ = now;
        self.outbox.close_destination(id);
    }

    /// Whether `poll_transmit` may have something.
    #[must_use]
    pub fn has_transmit(&self) -> bool {
        self.outbox.has_train()
    }

    /// Gives a lossy train's buffer back for the next batch.
    pub fn recycle(&mut self, buffer: BytesMut) {
        self.outbox.recycle(buffer);
    }

    /// The next thing to send. Ask until there is none.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Transmit> {
        let _ = now;
        let (slot, train) = self.outbox.next_train()?;
        let transmit = self.send(slot, train);
        self.outbox.forget_if_closed(slot);
        Some(transmit)
    }

    /// Writes the headers of a train that leaves.
    fn send(&mut self, slot: u32, mut train: Closed) -> Transmit {
        let (destination, options) = self.outbox.destination_at(slot);
        if self.config.wire == Wire::Quelea {
            let mut bits = FlowMode::from(options.mode) as u8;
            if options.credit {
                bits |= flags::CREDIT;
            }
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
        let several = train.segments() > 1;
        Transmit {
            to: destination.key.address,
            may_fragment: train.segment_bytes > usize::from(destination.path_bytes),
            bytes: train.bytes.freeze(),
            segment_bytes: several.then_some(train.segment_bytes),
        }
    }
}
