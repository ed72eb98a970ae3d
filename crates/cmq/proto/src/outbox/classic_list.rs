//! Batches of the original library: lists of messages, one a datagram, with neither header nor
//! mailbox. The rule is that of its `cwPush`, word for word, without what was wrong with it
//! (research/cmq.md, sections 1.3 and 1.4).

use bytes::BytesMut;

use super::train::{Closed, Train};
use super::{Outbox, pool};
use crate::Time;
use crate::classic::{self, Element};
use crate::error::PushError;

impl Train {
    /// Returns an empty list in an empty buffer.
    fn begin_list(mut bytes: BytesMut, begun: Time) -> Self {
        classic::begin(&mut bytes);
        Self::new(bytes, begun)
    }

    fn push_to_list(&mut self, message: &[u8], element: Element) -> Result<(), PushError> {
        pool::grow(&mut self.bytes, classic::framed_bytes(message.len()));
        classic::write_message(&mut self.bytes, element, message)
            .map_err(|_| PushError::NotText)?;
        self.messages += 1;
        Ok(())
    }

    /// Closes the list: nothing is added any more.
    pub(super) fn close_list(mut self) -> Closed {
        classic::write_count(&mut self.bytes, u64::from(self.messages));
        let segment_bytes = self.bytes.len();
        let Self { bytes, messages, begun, .. } = self;
        Closed { bytes, segment_bytes, messages, begun, continues: false }
    }
}

impl Outbox {
    /// Returns what the elements of the endpoint's lists are, if it speaks the original's
    /// datagrams.
    pub(super) const fn element(&self) -> Option<Element> {
        self.config.wire.element()
    }

    /// Pushes as `cwPush` does: a list's first message goes in whatever `qthresh` is, another only
    /// if the list stays below it; else the list leaves, and a new one begins with the message.
    /// What the original could not take is refused, which its own `cwPush` does not.
    pub(super) fn push_to_list(
        &mut self,
        slot: u32,
        message: &[u8],
        element: Element,
        now: impl FnOnce() -> Time,
    ) -> Result<(), PushError> {
        let framed = classic::framed_bytes(message.len());
        let (bytes, limit) = (message.len(), classic::MESSAGE_BYTES_MAX);
        if bytes > limit {
            return Err(PushError::TooLarge { bytes, limit });
        }
        if !self.has_room(slot, framed) && !self.make_room(slot, framed)? {
            return Ok(());
        }
        if let Some(train) = &mut self.destinations.at_mut(slot).train {
            if classic::fits(train.len(), message.len(), self.config.qthresh) {
                let before = train.capacity();
                let pushed = train.push_to_list(message, element);
                self.held_bytes += train.capacity() - before;
                return pushed;
            }
            self.close_train(slot);
        }
        let class = self.destinations.at(slot).class;
        let buffer = self.pool.take(class, classic::LIST_HEAD_BYTES + framed);
        let now = now();
        let mut train = Train::begin_list(buffer, now);
        train.push_to_list(message, element)?;
        self.open_train(slot, train, now);
        Ok(())
    }
}
