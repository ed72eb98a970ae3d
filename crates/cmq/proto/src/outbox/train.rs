//! The batch of one destination, as it will lie on the wire: segments of one size, each a datagram
//! with a header of its own, which the kernel cuts apart (GSO) or which is one datagram alone.

use bytes::{BufMut, BytesMut};

use super::copying::append_framed;
use super::pool;
use crate::Time;
use crate::limits;
use crate::wire::HEADER_BYTES;
use crate::wire::data::framed_bytes;

/// The sizes that a destination's trains obey.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// A datagram's, with header and tag.
    pub(crate) segment_bytes: usize,
    /// A whole train's.
    pub(crate) train_bytes: usize,
    /// Kept free at the end of each segment for the seal.
    pub(crate) tag_bytes: usize,
}

impl Shape {
    /// Returns how many bytes one segment has for framed messages.
    pub(crate) const fn body_bytes(&self) -> usize {
        self.segment_bytes - HEADER_BYTES - self.tag_bytes
    }
}

/// A train that is filled.
#[derive(Debug)]
pub(crate) struct Train {
    pub(super) bytes: BytesMut,
    /// To here the open segment may grow without a second thought: its end, or the buffer's.
    pub(super) room_end: usize,
    pub(super) segment_start: usize,
    /// The size of all segments, once the first is closed.
    pub(super) segment_bytes: usize,
    pub(super) segments: usize,
    /// Messages in the open segment. Even of empty ones no segment holds 65,536.
    count: u16,
    pub(super) messages: u32,
    pub(super) begun: Time,
    /// Whether the last segment is a fragment, which takes nothing else.
    pub(super) ends_in_fragment: bool,
    /// Whether it begins in the midst of a message.
    pub(super) continues: bool,
    /// Whether it leaves as soon as what is before it has left; until then it may still grow.
    pub(crate) leaving: bool,
}

/// A train that is full, or leaves. Its headers are still to be written; until then they hold what
/// [`note`] writes.
#[derive(Debug)]
pub(crate) struct Closed {
    /// All segments.
    pub(crate) bytes: BytesMut,
    /// Each segment's but the last's, which may be shorter.
    pub(crate) segment_bytes: usize,
    /// Messages that begin in it.
    pub(crate) messages: u32,
    /// When its first message was pushed.
    pub(crate) begun: Time,
    /// Whether it begins in the midst of a message.
    pub(crate) continues: bool,
}

impl Train {
    /// Returns an empty train in an empty buffer.
    pub(crate) fn begin(mut bytes: BytesMut, begun: Time, shape: &Shape) -> Self {
        debug_assert!(bytes.is_empty());
        bytes.put_bytes(0, HEADER_BYTES);
        let mut train = Self::new(bytes, begun);
        train.measure(shape);
        train
    }

    /// Returns a train whose buffer has its head already, and to which nothing is pushed in haste.
    pub(super) fn new(bytes: BytesMut, begun: Time) -> Self {
        Self {
            bytes,
            room_end: 0,
            segment_start: 0,
            segment_bytes: 0,
            segments: 1,
            count: 0,
            messages: 0,
            begun,
            ends_in_fragment: false,
            continues: false,
            leaving: false,
        }
    }

    /// Appends the message if it fits where the train stands: no clock, no allocation, no look at
    /// anything but the train.
    #[inline]
    pub(crate) fn push_here(&mut self, message: &[u8]) -> bool {
        if self.bytes.len() + framed_bytes(message.len()) > self.room_end {
            return false;
        }
        self.append(message);
        true
    }

    /// Appends a message that has room in a segment of its own; false if it has to begin the next
    /// train.
    pub(crate) fn push(&mut self, message: &[u8], shape: &Shape) -> bool {
        let framed = framed_bytes(message.len());
        debug_assert!(framed <= shape.body_bytes());
        let full = self.ends_in_fragment || self.bytes.len() + framed > self.segment_end(shape);
        if full && !self.next_segment(framed, shape) {
            return false;
        }
        pool::grow(&mut self.bytes, framed + shape.tag_bytes);
        self.append(message);
        self.measure(shape);
        true
    }

    /// What is pushed next has to ask first.
    pub(crate) fn seal_off(&mut self) {
        self.room_end = 0;
    }

    /// Closes the train: nothing is added any more.
    pub(crate) fn close(mut self, shape: &Shape) -> Closed {
        if !self.ends_in_fragment {
            self.end_segment();
            self.bytes.put_bytes(0, shape.tag_bytes);
        }
        let segment_bytes = self.segment_bytes();
        let Self { bytes, messages, begun, continues, .. } = self;
        Closed { bytes, segment_bytes, messages, begun, continues }
    }

    /// Returns whether nothing was pushed to it.
    pub(super) const fn is_fresh(&self) -> bool {
        self.messages == 0 && !self.ends_in_fragment
    }

    /// Returns the memory that it holds.
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Returns the size that its datagrams have, if it leaves as it is.
    pub(crate) fn segment_bytes(&self) -> usize {
        if self.segment_bytes == 0 { self.bytes.len() } else { self.segment_bytes }
    }

    /// Returns how much it carries, headers included.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    #[inline]
    fn append(&mut self, message: &[u8]) {
        append_framed(&mut self.bytes, message);
        self.count += 1;
        self.messages += 1;
    }

    fn measure(&mut self, shape: &Shape) {
        self.room_end = self.segment_end(shape).min(self.bytes.capacity());
    }

    /// Returns where the open segment's messages end at the latest.
    fn segment_end(&self, shape: &Shape) -> usize {
        let segment_bytes =
            if self.segment_bytes == 0 { shape.segment_bytes } else { self.segment_bytes };
        (self.segment_start + segment_bytes).min(shape.train_bytes) - shape.tag_bytes
    }

    /// Closes the open segment and opens one that has `framed` bytes of room; false if there is none,
    /// and then nothing is changed. The first segment's size is every segment's.
    fn next_segment(&mut self, framed: usize, shape: &Shape) -> bool {
        let needed = HEADER_BYTES + framed + shape.tag_bytes;
        let segment_bytes = match self.segment_bytes {
            0 => self.bytes.len() + shape.tag_bytes,
            uniform => uniform,
        };
        if needed > segment_bytes || !self.has_segment(segment_bytes, needed, shape) {
            return false;
        }
        self.end_segment();
        self.segment_bytes = segment_bytes;
        self.begin_segment(needed);
        self.ends_in_fragment = false;
        self.count = 0;
        true
    }

    /// Remembers what the last segment has.
    pub(super) fn end_segment(&mut self) {
        if !self.ends_in_fragment {
            note(&mut self.bytes[self.segment_start..], self.count, false);
        }
    }

    /// Returns whether another segment, of `needed` bytes, goes behind the last one.
    pub(super) fn has_segment(&self, segment_bytes: usize, needed: usize, shape: &Shape) -> bool {
        self.segment_start + segment_bytes + needed <= shape.train_bytes
            && self.segments < limits::TRAIN_SEGMENTS_MAX
    }

    /// Fills the last segment up, and begins another with the place for a header.
    pub(super) fn begin_segment(&mut self, needed: usize) {
        let start = self.segment_start + self.segment_bytes;
        let more = start + needed - self.bytes.len();
        pool::grow(&mut self.bytes, more);
        self.bytes.resize(start + HEADER_BYTES, 0);
        self.segment_start = start;
        self.segments += 1;
    }
}

impl Closed {
    /// Returns how many datagrams it is.
    pub(crate) fn segments(&self) -> usize {
        self.bytes.len().div_ceil(self.segment_bytes)
    }

    /// Takes the first `segments` datagrams off, at least one and not all.
    pub(crate) fn split_off(&mut self, segments: usize) -> Self {
        let bytes = self.bytes.split_to(segments * self.segment_bytes);
        let messages =
            bytes.chunks(self.segment_bytes).map(|segment| u32::from(noted(segment).0)).sum();
        self.messages -= messages;
        let continues = core::mem::replace(&mut self.continues, noted(&self.bytes) == (0, true));
        Self { bytes, segment_bytes: self.segment_bytes, messages, begun: self.begun, continues }
    }
}

/// Remembers in the place of a segment's header how many messages begin in it, and whether it is a
/// fragment of one: the rest of the header is known only when it leaves.
pub(crate) fn note(segment: &mut [u8], count: u16, fragment: bool) {
    segment[..2].copy_from_slice(&count.to_le_bytes());
    segment[2] = u8::from(fragment);
}

/// Reads what [`note`] wrote.
pub(crate) fn noted(segment: &[u8]) -> (u16, bool) {
    (u16::from_le_bytes([segment[0], segment[1]]), segment[2] != 0)
}

/// Returns how many bytes a train has that holds one message of `len` bytes.
pub(crate) const fn first_bytes(len: usize, shape: &Shape) -> usize {
    HEADER_BYTES + framed_bytes(len) + shape.tag_bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reads a train back as a receiver would, each segment alone.
    fn messages(closed: &Closed, tag_bytes: usize) -> Vec<Vec<u8>> {
        let mut found = Vec::new();
        for segment in closed.bytes.chunks(closed.segment_bytes) {
            let (count, fragment) = noted(segment);
            assert!(!fragment);
            let body = &segment[HEADER_BYTES..segment.len() - tag_bytes];
            let mut at = 0;
            for _ in 0..count {
                let (mut len, mut shift) = (0, 0);
                loop {
                    let byte = body[at];
                    at += 1;
                    len |= usize::from(byte & 0x7f) << shift;
                    shift += 7;
                    if byte < 0x80 {
                        break;
                    }
                }
                found.push(body[at..at + len].to_vec());
                at += len;
            }
            assert!(body[at..].iter().all(|byte| *byte == 0), "padding is zeros");
        }
        found
    }

    fn fill(lens: &[usize], shape: &Shape) -> Vec<Closed> {
        let begin = || Train::begin(BytesMut::with_capacity(64), Time::ZERO, shape);
        let mut closed = Vec::new();
        let mut train = begin();
        for (at, len) in lens.iter().enumerate() {
            let message = vec![at as u8 | 1; *len];
            if train.push_here(&message) || train.push(&message, shape) {
                continue;
            }
            closed.push(std::mem::replace(&mut train, begin()).close(shape));
            assert!(train.push(&message, shape), "a train's first message has room");
        }
        closed.push(train.close(shape));
        closed
    }

    #[test]
    fn a_message_larger_than_the_first_segment_begins_the_next_train() {
        let shape = Shape { segment_bytes: 200, train_bytes: 10_000, tag_bytes: 0 };
        // 36 + 101 bytes; the next does not fit, so 137 is every segment's size, and 150 is too much.
        let trains = fill(&[100, 90, 150, 10], &shape);
        let sizes: Vec<_> =
            trains.iter().map(|train| (train.bytes.len(), train.segment_bytes)).collect();
        assert_eq!(sizes, [(137 + 36 + 91, 137), (36 + 152 + 11, 199)]);
    }

    #[test]
    fn a_batch_leaves_before_a_message_that_would_exceed_qthresh() {
        let shape = Shape { segment_bytes: 512, train_bytes: 512, tag_bytes: 0 };
        let trains = fill(&[64; 9], &shape);
        let sizes: Vec<_> = trains.iter().map(|train| train.bytes.len()).collect();
        assert_eq!(sizes, [36 + 7 * 65, 36 + 2 * 65]);
    }

    #[test]
    fn a_train_is_split_at_its_segments() {
        let shape = Shape { segment_bytes: 128, train_bytes: 10_000, tag_bytes: 16 };
        let mut rest = fill(&[20; 20], &shape).remove(0);
        let (segments, all) = (rest.segments(), messages(&rest, 16));
        let first = rest.split_off(2);
        assert_eq!((first.segments(), rest.segments()), (2, segments - 2));
        let mut parts = messages(&first, 16);
        assert_eq!(parts.len(), first.messages as usize);
        parts.extend(messages(&rest, 16));
        assert_eq!(parts, all);
        assert_eq!(first.messages + rest.messages, 20);
    }

    proptest! {
        #[test]
        fn all_that_is_pushed_is_in_trains_that_keep_the_rules(
            lens in prop::collection::vec(0..300usize, 1..400),
            segment_bytes in 360..1_500usize,
            train_bytes in 360..20_000usize,
            tag_bytes in prop_oneof![Just(0), Just(16)],
        ) {
            let segment_bytes = segment_bytes.min(train_bytes);
            let shape = Shape { segment_bytes, train_bytes, tag_bytes };
            let trains = fill(&lens, &shape);
            let mut found = Vec::new();
            for train in &trains {
                prop_assert!(train.bytes.len() <= train_bytes);
                prop_assert!(train.segment_bytes <= segment_bytes);
                prop_assert!(train.segments() <= limits::TRAIN_SEGMENTS_MAX);
                let of_train = messages(train, tag_bytes);
                prop_assert_eq!(of_train.len(), train.messages as usize);
                found.extend(of_train);
            }
            let expected: Vec<_> =
                lens.iter().enumerate().map(|(at, len)| vec![at as u8 | 1; *len]).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
