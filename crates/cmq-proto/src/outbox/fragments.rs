//! A message that no datagram holds, cut into trains of fragments. The cut is even, so that the
//! trains stay uniform and the last fragment is about as large as the others.

use bytes::{BufMut, BytesMut};

use super::train::{Closed, Shape, note};
use crate::limits;
use crate::time::Time;
use crate::wire::HEADER_BYTES;
use crate::wire::data::Fragment;

/// How a message is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    total: u32,
    fragments: u32,
    /// Every fragment's with header, numbers and tag, but the last's, which has the rest.
    segment_bytes: usize,
    train_segments: usize,
}

impl Cut {
    /// The cut of a message of `total` bytes; none if it takes more datagrams than a flow may have
    /// under way.
    pub(crate) fn of(total: usize, shape: &Shape) -> Option<Self> {
        let total = u32::try_from(total).ok()?;
        let fragments = Fragment::needed(total, shape.body_bytes())?;
        let numbers = Fragment::head_bytes_max(total, fragments);
        let piece = total.div_ceil(fragments) as usize;
        let segment_bytes = HEADER_BYTES + numbers + piece + shape.tag_bytes;
        let train_segments =
            (shape.train_bytes / segment_bytes).clamp(1, limits::TRAIN_SEGMENTS_MAX);
        Some(Self { total, fragments, segment_bytes, train_segments })
    }

    /// Bytes of all its trains.
    pub(crate) const fn bytes(&self) -> usize {
        self.fragments as usize * self.segment_bytes
    }

    /// The trains.
    pub(crate) fn trains<'a>(
        self,
        message: &'a [u8],
        begun: Time,
        shape: &'a Shape,
    ) -> impl Iterator<Item = Closed> + 'a {
        (0..self.fragments)
            .step_by(self.train_segments)
            .map(move |first| self.train(first, message, begun, shape))
    }

    fn train(&self, first: u32, message: &[u8], begun: Time, shape: &Shape) -> Closed {
        let end = (first + self.train_segments as u32).min(self.fragments);
        let mut bytes = BytesMut::with_capacity((end - first) as usize * self.segment_bytes);
        for index in first..end {
            let start = bytes.len();
            bytes.put_bytes(0, HEADER_BYTES);
            let fragment = Fragment { index, fragments: self.fragments, total: self.total };
            fragment.write(&mut bytes, message);
            if index + 1 < self.fragments {
                bytes.resize(start + self.segment_bytes - shape.tag_bytes, 0);
            }
            bytes.put_bytes(0, shape.tag_bytes);
            note(&mut bytes[start..], u16::from(index == 0), true);
        }
        let segment_bytes = self.segment_bytes.min(bytes.len());
        Closed { bytes, segment_bytes, messages: u32::from(first == 0), begun }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::train::noted;
    use super::*;

    proptest! {
        #[test]
        fn every_cut_is_even_and_whole(
            total in 100..200_000usize,
            segment_bytes in 120..2_000usize,
            train_bytes in 2_000..65_507usize,
            tag_bytes in prop_oneof![Just(0), Just(16)],
        ) {
            let shape = Shape { segment_bytes, train_bytes, tag_bytes };
            let message: Vec<u8> = (0..total).map(|at| (at / 7) as u8).collect();
            let cut = Cut::of(total, &shape).expect("8,192 datagrams suffice");
            let mut found = Vec::new();
            let mut next = 0;
            for train in cut.trains(&message, Time::ZERO, &shape) {
                prop_assert!(train.bytes.len() <= train_bytes);
                prop_assert!(train.segments() <= limits::TRAIN_SEGMENTS_MAX);
                prop_assert_eq!(train.messages, u32::from(next == 0));
                for segment in train.bytes.chunks(train.segment_bytes) {
                    prop_assert!(segment.len() <= segment_bytes);
                    let (count, fragment) = noted(segment);
                    prop_assert!(fragment);
                    let body = &segment[HEADER_BYTES..segment.len() - tag_bytes];
                    let (fragment, piece) = Fragment::read(body, count).expect("a fragment");
                    prop_assert_eq!(fragment.index, next);
                    found.extend_from_slice(piece);
                    next += 1;
                }
            }
            prop_assert_eq!(next, cut.fragments);
            prop_assert!(found == message);
        }
    }

    #[test]
    fn what_takes_more_datagrams_than_a_window_has_is_not_cut() {
        let shape = Shape { segment_bytes: 128, train_bytes: 65_507, tag_bytes: 0 };
        assert!(Cut::of(8_192 * 70, &shape).is_some());
        assert_eq!(Cut::of(8_192 * 90, &shape), None);
    }
}
