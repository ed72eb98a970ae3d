//! Parity of a train's datagrams: gathered while their headers are written, sent behind the train.

use std::collections::VecDeque;

use bytes::{BufMut, BytesMut};

use crate::limits;
use crate::mode::Repair;
use crate::repair::GroupEncoder;
use crate::wire::parity::{PARITY_HEAD_BYTES, Parity};
use crate::wire::{HEADER_BYTES, Header};

/// A destination's groups. A group never spans two trains: its parity would come too late.
#[derive(Debug)]
pub(crate) struct Parities {
    encoder: GroupEncoder,
    /// Bodies of the train's parities, ready but for their headers.
    ready: VecDeque<(Parity, Vec<u8>)>,
}

impl Parities {
    /// Creates a destination's groups; none if there is no repair.
    pub(super) fn new(repair: Repair) -> Option<Self> {
        Some(Self { encoder: GroupEncoder::new(repair)?, ready: VecDeque::new() })
    }

    /// A datagram leaves.
    pub(super) fn add(&mut self, header: &Header, body: &[u8]) {
        if self.encoder.add(header, body) {
            self.finish();
        }
    }

    /// The group ends.
    pub(super) fn finish(&mut self) {
        let ready = &mut self.ready;
        self.encoder.finish(|head, sum| ready.push_back((head, sum.to_vec())));
    }

    /// Takes as many of the parities as go in one call, with room for headers and tags; returns
    /// them, and the size of each.
    pub(super) fn next_train(&mut self, tag_bytes: usize) -> Option<(BytesMut, usize)> {
        let body = self.ready.front()?.1.len();
        let segment_bytes = HEADER_BYTES + PARITY_HEAD_BYTES + body + tag_bytes;
        let mut bytes = BytesMut::new();
        let mut segments = 0;
        while segments < limits::TRAIN_SEGMENTS_MAX
            && bytes.len() + segment_bytes <= limits::DATAGRAM_BYTES_MAX
            && let Some((head, sum)) = self.ready.pop_front_if(|(_, sum)| sum.len() == body)
        {
            bytes.put_bytes(0, HEADER_BYTES);
            head.write(&mut bytes);
            bytes.extend_from_slice(&sum);
            bytes.put_bytes(0, tag_bytes);
            segments += 1;
        }
        Some((bytes, segment_bytes))
    }
}
