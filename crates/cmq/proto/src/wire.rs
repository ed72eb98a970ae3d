//! The datagrams of Quelea's CMQ, version 1 (docs/formats/cmq.md). Little-endian throughout.
//!
//! A datagram is a [`header::Header`] and a body. Nothing here keeps state: what is wrong with a
//! datagram is a [`Malformed`], and nothing of a datagram is used before all of it was checked.

pub mod data;
pub mod flags;
pub mod handshake;
pub mod header;
pub mod malformed;
pub mod parity;
pub mod probe;
pub mod refusal;
pub mod status;
pub mod varint;

pub use header::{HANDSHAKE_TAG_BYTES, HEADER_BYTES, Header, Kind, NUMBER_MAX, TAG_BYTES};
pub use malformed::Malformed;
