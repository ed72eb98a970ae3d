//! What of a DATA is protected: all that cannot be known from its neighbours.

use crate::repair::field::add_product;
use crate::wire::parity::BLOCK_HEAD_BYTES;
use crate::wire::{HEADER_BYTES, Header, Kind, flags};

/// A DATA as the code sees it: a head (the body's length, the flags, a zero, the count and the first
/// message), the body, and zeros without end.
pub(super) struct Block<'a> {
    head: [u8; BLOCK_HEAD_BYTES],
    body: &'a [u8],
}

impl<'a> Block<'a> {
    pub(super) fn new(header: &Header, body: &'a [u8]) -> Self {
        let mut head = [0; BLOCK_HEAD_BYTES];
        head[..2].copy_from_slice(&(body.len() as u16).to_le_bytes());
        // How it was sent is no part of what it was; a recovered one wants no STATUS.
        head[2] = header.flags & !(flags::SEALED | flags::STATUS_WANTED);
        head[4..6].copy_from_slice(&header.count.to_le_bytes());
        head[6..].copy_from_slice(&header.first_message.to_le_bytes());
        Self { head, body }
    }

    pub(super) const fn bytes(&self) -> usize {
        BLOCK_HEAD_BYTES + self.body.len()
    }

    /// Adds `factor` times the block to `to`, which is at least as long.
    pub(super) fn add_to(&self, to: &mut [u8], factor: u8) {
        let (head, body) = to.split_at_mut(BLOCK_HEAD_BYTES);
        add_product(head, &self.head, factor);
        add_product(body, self.body, factor);
    }
}

/// Makes a segment of a block that was computed: header and body. `like` is a header of the same
/// flow. None if the block is not one that a sender could have made.
pub(super) fn segment_of(block: &[u8], like: &Header, sequence: u64) -> Option<(Header, Vec<u8>)> {
    let (head, rest) = block.split_first_chunk::<BLOCK_HEAD_BYTES>()?;
    let length = usize::from(u16::from_le_bytes([head[0], head[1]]));
    let (body, padding) = rest.split_at_checked(length)?;
    let sealed_or_wanting = flags::SEALED | flags::STATUS_WANTED;
    if head[2] & sealed_or_wanting != 0 || head[3] != 0 || padding.iter().any(|byte| *byte != 0) {
        return None;
    }
    let header = Header {
        kind: Kind::Data,
        flags: head[2] & !flags::MODE_MASK | like.flags & flags::MODE_MASK,
        sequence,
        count: u16::from_le_bytes([head[4], head[5]]),
        first_message: u32::from_le_bytes([head[6], head[7], head[8], head[9]]),
        ..*like
    };
    if head[2] != header.flags {
        return None;
    }
    let mut segment = vec![0; HEADER_BYTES + length];
    segment[HEADER_BYTES..].copy_from_slice(body);
    header.write(&mut segment);
    Some((header, segment))
}
