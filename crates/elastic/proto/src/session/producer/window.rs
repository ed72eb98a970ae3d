//! The messages that are not acknowledged yet, as frames ready to be sent, in runs.
//!
//! Publishing copies a message once, behind its header, into the last run; sending gives out slices
//! of runs; acknowledging drops runs. None costs an allocation a message.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

use crate::limits::{DATA_HEADER_BYTES, FRAME_HEADER_BYTES, FRAME_RUN_BYTES};
use crate::wire::{DataHeader, data_header};
use crate::{MessageSeq, Slot};

/// Where a DATA frame has its slot.
const SLOT_AT: usize = FRAME_HEADER_BYTES;

#[derive(Debug)]
pub(super) struct Window {
    runs: VecDeque<FrameRun>,
    /// Frames behind all runs.
    tail: BytesMut,
    /// The slot that the frames of `tail` bear.
    slot: Slot,
    /// The first message that is not acknowledged.
    first: MessageSeq,
    /// The next message to be sent.
    sent: MessageSeq,
    /// The next message to be published.
    next: MessageSeq,
    /// Where `sent` begins: index of its run, and byte in it.
    cursor: (usize, usize),
    /// Of all frames here.
    bytes: usize,
}

#[derive(Debug)]
struct FrameRun {
    frames: Bytes,
    slot: Slot,
    /// One past its last message.
    end: MessageSeq,
}

impl Window {
    pub(super) fn new() -> Self {
        Self {
            runs: VecDeque::new(),
            tail: BytesMut::new(),
            slot: Slot(0),
            first: MessageSeq(0),
            sent: MessageSeq(0),
            next: MessageSeq(0),
            cursor: (0, 0),
            bytes: 0,
        }
    }

    /// Returns the number of the first message that is not acknowledged.
    pub(super) const fn first(&self) -> MessageSeq {
        self.first
    }

    /// Returns the number of the next message to be sent.
    pub(super) const fn sent(&self) -> MessageSeq {
        self.sent
    }

    /// Returns the number of the next message to be published.
    pub(super) const fn next(&self) -> MessageSeq {
        self.next
    }

    /// Returns how many bytes the frames here have.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes a message whose parts are put by `put`, which appends `parts_bytes`.
    pub(super) fn publish_with(
        &mut self,
        parts_bytes: usize,
        put: impl FnOnce(&mut BytesMut),
    ) -> MessageSeq {
        let frame_bytes = DATA_HEADER_BYTES + parts_bytes;
        if self.tail.capacity() - self.tail.len() < frame_bytes {
            self.seal();
            self.tail.reserve(frame_bytes.max(FRAME_RUN_BYTES));
        }
        let end = self.tail.len() + frame_bytes;
        self.tail.extend_from_slice(&data_header(self.slot, self.next, parts_bytes));
        put(&mut self.tail);
        assert_eq!(self.tail.len(), end, "a frame is as long as its header says");
        self.bytes += frame_bytes;
        let sequence = self.next;
        self.next.0 += 1;
        sequence
    }

    /// Takes what may be sent next in `slot`, which has `credit` bytes left. Returns whole frames,
    /// the last of which begins within the credit; `None` if there is nothing or no credit.
    pub(super) fn take(&mut self, slot: Slot, credit: u64) -> Option<Bytes> {
        if credit == 0 || self.sent == self.next {
            return None;
        }
        if self.slot != slot {
            self.seal();
            self.slot = slot;
        }
        if self.cursor.0 == self.runs.len() {
            self.seal();
        }
        let run = &mut self.runs[self.cursor.0];
        run.set_slot(slot);
        let rest = run.frames.slice(self.cursor.1..);
        if rest.len() as u64 <= credit {
            self.sent = run.end;
            self.cursor = (self.cursor.0 + 1, 0);
            return Some(rest);
        }
        let mut end = 0;
        while (end as u64) < credit && end < rest.len() {
            end += frame_bytes(&rest[end..]);
            self.sent.0 += 1;
        }
        self.cursor.1 += end;
        if self.sent == run.end {
            self.cursor = (self.cursor.0 + 1, 0);
        }
        Some(rest.slice(..end))
    }

    /// All below is acknowledged.
    pub(super) fn acknowledge(&mut self, below: MessageSeq) {
        debug_assert!(below <= self.sent, "only what was sent is acknowledged");
        self.first = self.first.max(below);
        while let Some(run) = self.runs.front()
            && run.end <= self.first
            && self.cursor.0 > 0
        {
            self.bytes -= run.frames.len();
            self.runs.pop_front();
            self.cursor.0 -= 1;
        }
    }

    /// Sends again all that is not acknowledged.
    pub(super) fn rewind(&mut self) {
        self.sent = self.first;
        self.cursor = (0, 0);
        let Some(run) = self.runs.front() else { return };
        while let Some(header) = DataHeader::of_frame(&run.frames[self.cursor.1..])
            && header.sequence < self.first
        {
            self.cursor.1 += frame_bytes(&run.frames[self.cursor.1..]);
        }
        if self.cursor.1 == run.frames.len() {
            self.cursor = (1, 0);
        }
    }

    /// Makes a run of the tail.
    fn seal(&mut self) {
        if !self.tail.is_empty() {
            let frames = self.tail.split().freeze();
            self.runs.push_back(FrameRun { frames, slot: self.slot, end: self.next });
        }
    }
}

impl FrameRun {
    /// Has all frames bear this slot: they were made for another relay. The only copy that a move
    /// costs, of what the old relay has not taken or not acknowledged.
    fn set_slot(&mut self, slot: Slot) {
        if self.slot == slot {
            return;
        }
        let mut frames = BytesMut::from(&self.frames[..]);
        let mut at = 0;
        while at < frames.len() {
            frames[at + SLOT_AT..at + SLOT_AT + 4].copy_from_slice(&slot.0.to_le_bytes());
            at += frame_bytes(&frames[at..]);
        }
        self.frames = frames.freeze();
        self.slot = slot;
    }
}

/// Returns how many bytes the frame has that begins here; ours are whole.
fn frame_bytes(frames: &[u8]) -> usize {
    let length = frames.first_chunk::<4>().map_or(0, |length| u32::from_le_bytes(*length));
    FRAME_HEADER_BYTES + length as usize
}
