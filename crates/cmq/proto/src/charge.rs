//! What a datagram takes of its receiver's credit.

/// What the kernel takes of a receive buffer for a datagram besides its bytes (research/cmq.md, 3.6).
pub const DATAGRAM_OVERHEAD_BYTES: u32 = 800;

/// Returns what a datagram of `bytes` takes of the receiver's credit.
#[must_use]
#[allow(clippy::cast_possible_truncation)] // A datagram has at most 65,507 bytes.
pub const fn charge(bytes: usize) -> u32 {
    bytes as u32 + DATAGRAM_OVERHEAD_BYTES
}
