//! Datagrams that only the holders of a pre-shared key can read or make (docs/cmq-format.md).

/// Bytes of the tag at the end of a sealed datagram.
pub const TAG_BYTES: usize = 16;
