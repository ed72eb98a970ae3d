//! Parity: a datagram that is lost is computed from the others of its group, without a repetition.
//!
//! A group is up to [`crate::limits::REPAIR_DATA_MAX`] DATA datagrams of consecutive sequences; its
//! PARITY datagrams follow it. As many losses as there are parities are recovered, whichever they are.
//! The code is a Cauchy Reed–Solomon code over GF(2^8) whose first parity is the XOR of the group, so
//! that XOR alone is the case of one parity (docs/formats/cmq.md has the numbers).
//!
//! Why not the crate reed-solomon-simd, which was tried: its codes are for thousands of blocks. Any
//! decoding took 0.25 ms here, for 4 + 2 blocks of 1,400 bytes as for 64 + 16, and its tables 8 MB
//! and 16 ms at the first use. Here two losses of 10 + 2 are recovered in 13 µs, and a datagram costs
//! its sender 1 µs. Only the largest groups are slower: 16 losses of 64 + 16 in 0.8 ms.

mod block;
mod code;
mod fec_decoder;
mod field;
mod group_encoder;

pub use fec_decoder::{FecDecoder, Recovered};
pub use group_encoder::GroupEncoder;

use crate::wire::parity::{BLOCK_HEAD_BYTES, PARITY_HEAD_BYTES};

/// Bytes that a PARITY has more than the longest body of its group: what a sender keeps free in the
/// DATA of a flow with repair.
pub const PARITY_OVERHEAD_BYTES: usize = PARITY_HEAD_BYTES + BLOCK_HEAD_BYTES;
