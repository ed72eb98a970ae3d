//! A message that no datagram holds, cut into fragments, each a segment of a train. The cut is even, so
//! that the trains stay uniform and the last fragment is about as large as the others.

use bytes::BufMut;

use super::pool;
use super::train::{Shape, Train, note};
use crate::limits;
use crate::wire::HEADER_BYTES;
use crate::wire::data::Fragment;

/// How a message is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    total: u32,
    fragments: u32,
    /// Every fragment's with header, numbers and tag, but the last's, which has the rest.
    segment_bytes: usize,
}

impl Cut {
    /// Returns the cut of a message of `total` bytes; none if it takes more datagrams than a flow
    /// may have under way.
    pub(crate) fn of(total: usize, shape: &Shape) -> Option<Self> {
        let total = u32::try_from(total).ok()?;
        let fragments = Fragment::needed(total, shape.body_bytes())?;
        let numbers = Fragment::head_bytes_max(total, fragments);
        let piece = total.div_ceil(fragments) as usize;
        let segment_bytes = HEADER_BYTES + numbers + piece + shape.tag_bytes;
        Some(Self { total, fragments, segment_bytes })
    }

    /// Returns how many bytes the fragments from `first` on have, as they go over the wire.
    pub(crate) const fn bytes_from(&self, first: u32) -> usize {
        (self.fragments - first) as usize * self.segment_bytes
    }

    /// Returns how many fragments the message has.
    pub(crate) const fn fragments(&self) -> u32 {
        self.fragments
    }

    /// Returns whether its fragments go well in segments of `segment_bytes`: they fit, and little
    /// is left.
    const fn suits(&self, segment_bytes: usize) -> bool {
        self.segment_bytes <= segment_bytes && self.segment_bytes >= segment_bytes / 8 * 7
    }
}

impl Train {
    /// Appends the message's fragments from `first` on, as many as go in, and says which is the next.
    pub(crate) fn push_fragments(
        &mut self,
        message: &[u8],
        cut: &Cut,
        first: u32,
        shape: &Shape,
    ) -> u32 {
        if self.is_fresh() {
            self.continues = first > 0;
            self.bytes.clear();
        } else if self.segment_bytes == 0 || !cut.suits(self.segment_bytes) {
            return first;
        }
        for index in first..cut.fragments {
            let fragment = Fragment { index, fragments: cut.fragments, total: cut.total };
            if !self.push_fragment(message, fragment, cut, shape) {
                return index;
            }
        }
        cut.fragments
    }

    /// Returns whether all fragments of a message go in behind what is there.
    pub(crate) const fn has_room_for(&self, cut: &Cut, shape: &Shape) -> bool {
        let more = cut.fragments as usize;
        let end = self.segment_start + more * self.segment_bytes + cut.segment_bytes;
        end <= shape.train_bytes && self.segments + more <= limits::TRAIN_SEGMENTS_MAX
    }

    fn push_fragment(
        &mut self,
        message: &[u8],
        fragment: Fragment,
        cut: &Cut,
        shape: &Shape,
    ) -> bool {
        let Cut { segment_bytes, fragments, .. } = *cut;
        if self.is_fresh() {
            self.segment_bytes = segment_bytes;
            pool::grow(&mut self.bytes, segment_bytes);
            self.bytes.put_bytes(0, HEADER_BYTES);
        } else if self.has_segment(self.segment_bytes, segment_bytes, shape) {
            self.end_segment();
            self.begin_segment(segment_bytes);
        } else {
            return false;
        }
        fragment.write(&mut self.bytes, message);
        self.bytes.put_bytes(0, shape.tag_bytes);
        if fragment.index + 1 < fragments {
            // The tag is where the segment ends, and all behind the fragment is zeros.
            self.bytes.resize(self.segment_start + segment_bytes, 0);
        }
        note(&mut self.bytes[self.segment_start..], u16::from(fragment.index == 0), true);
        self.messages += u32::from(fragment.index == 0);
        self.ends_in_fragment = true;
        self.room_end = 0;
        true
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use proptest::prelude::*;

    use super::super::train::noted;
    use super::*;
    use crate::Time;

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
            let (mut found, mut next, mut first) = (Vec::new(), 0, 0);
            while first < cut.fragments {
                let mut train = Train::begin(BytesMut::new(), Time::ZERO, &shape);
                let continues = first > 0;
                first = train.push_fragments(&message, &cut, first, &shape);
                let train = train.close(&shape);
                prop_assert!(train.bytes.len() <= train_bytes);
                prop_assert!(train.segments() <= limits::TRAIN_SEGMENTS_MAX);
                prop_assert_eq!(train.continues, continues);
                prop_assert_eq!(train.messages, u32::from(!continues));
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
    fn messages_of_about_one_size_and_small_ones_share_a_train() {
        let shape = Shape { segment_bytes: 1_232, train_bytes: 65_507, tag_bytes: 16 };
        let mut train = Train::begin(BytesMut::new(), Time::ZERO, &shape);
        for len in [4_096, 4_090, 4_050] {
            let cut = Cut::of(len, &shape).expect("it is cut");
            assert_eq!(train.push_fragments(&vec![1; len], &cut, 0, &shape), 4);
            assert!(train.push(&[2; 5], &shape) && train.push_here(&[2; 100]));
        }
        let other = Cut::of(2_000, &shape).expect("it is cut");
        assert_eq!(train.push_fragments(&[1; 2_000], &other, 0, &shape), 2);
        let much_smaller = Cut::of(1_300, &shape).expect("it is cut");
        assert_eq!(train.push_fragments(&[1; 1_300], &much_smaller, 0, &shape), 0);
        let train = train.close(&shape);
        let notes: Vec<_> = train.bytes.chunks(train.segment_bytes).map(noted).collect();
        let message = [(1, true), (0, true), (0, true), (0, true), (2, false)];
        let mut expected = message.repeat(3);
        expected.extend([(1, true), (0, true)]);
        assert_eq!(notes, expected);
        assert_eq!(train.messages, 10);
    }

    #[test]
    fn what_takes_more_datagrams_than_a_window_has_is_not_cut() {
        let shape = Shape { segment_bytes: 128, train_bytes: 65_507, tag_bytes: 0 };
        assert!(Cut::of(8_192 * 70, &shape).is_some());
        assert_eq!(Cut::of(8_192 * 90, &shape), None);
    }
}
