//! The sender's part: makes the parities of a group as the group is sent.

use crate::limits::{REPAIR_DATA_MAX, REPAIR_PARITY_MAX};
use crate::mode::Repair;
use crate::repair::block::Block;
use crate::repair::code::coefficient;
use crate::wire::Header;
use crate::wire::parity::Parity;

/// Adds up the parities of one group after the other. A datagram is looked at when it is sent and is
/// not kept.
#[derive(Debug)]
pub struct GroupEncoder {
    data_max: u8,
    /// The sequence of the group's first datagram.
    first: u64,
    /// Datagrams in the group so far.
    data: u8,
    /// The bytes of the longest block so far.
    longest: usize,
    /// The sums so far; none is shorter than `longest`.
    parities: Vec<Vec<u8>>,
}

impl GroupEncoder {
    /// Creates the encoder for a destination with such a repair; none if it has none. Groups and
    /// parities that are too many are as many as may be.
    #[must_use]
    pub fn new(repair: Repair) -> Option<Self> {
        let (data, parity) = match repair {
            Repair::None => return None,
            Repair::Xor { data } => (data, 1),
            Repair::ReedSolomon { data, parity } => (data, parity),
        };
        Some(Self {
            data_max: data.clamp(1, REPAIR_DATA_MAX),
            first: 0,
            data: 0,
            longest: 0,
            parities: vec![Vec::new(); usize::from(parity.clamp(1, REPAIR_PARITY_MAX))],
        })
    }

    /// Puts a DATA to the group, before it is sealed. Returns whether the group is full: then
    /// [`GroupEncoder::finish`] is due. The header's flags have [`crate::wire::flags::REPAIR`], so
    /// that the receiver keeps it. A datagram that is not the next one begins another group, and the
    /// one that was not finished has no parity.
    pub fn add(&mut self, header: &Header, body: &[u8]) -> bool {
        let next = self.first + u64::from(self.data);
        if self.data == self.data_max || header.sequence != next {
            self.abandon();
        }
        if self.data == 0 {
            self.first = header.sequence;
        }
        let block = Block::new(header, body);
        self.longest = self.longest.max(block.bytes());
        for (index, parity) in self.parities.iter_mut().enumerate() {
            if parity.len() < self.longest {
                parity.resize(self.longest, 0);
            }
            block.add_to(parity, coefficient(index as u8, self.data));
        }
        self.data += 1;
        self.data == self.data_max
    }

    /// Returns whether there is no group to finish.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.data == 0
    }

    /// Returns the number of datagrams that the group still takes.
    #[must_use]
    pub const fn room(&self) -> u8 {
        self.data_max - self.data
    }

    /// Returns how many parities a group gets: as many sequences follow its own.
    #[must_use]
    pub const fn parities(&self) -> usize {
        self.parities.len()
    }

    /// Returns how many bytes a parity's body has, the longest so far: what `finish` would give.
    #[must_use]
    pub const fn body_bytes(&self) -> usize {
        crate::wire::parity::PARITY_HEAD_BYTES + self.longest
    }

    /// Ends the group: gives the head and the rest of the body of each of its PARITY datagrams, and
    /// begins the next group. Nothing if the group is empty.
    pub fn finish(&mut self, mut give: impl FnMut(Parity, &[u8])) {
        if self.data == 0 {
            return;
        }
        let parity = self.parities.len() as u8;
        for (index, sum) in self.parities.iter().enumerate() {
            let head = Parity { first: self.first, data: self.data, parity, index: index as u8 };
            give(head, &sum[..self.longest]);
        }
        self.abandon();
    }

    fn abandon(&mut self) {
        self.data = 0;
        self.longest = 0;
        for parity in &mut self.parities {
            parity.clear();
        }
    }
}
