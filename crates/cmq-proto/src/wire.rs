//! The datagrams of Quelea's CMQ, version 1 (docs/cmq-format.md). Little-endian throughout.

pub mod header;
pub mod status;
