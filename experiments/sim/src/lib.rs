//! The elastic queue in virtual time (research/eqs.md, section 6): the planner, the directory and the
//! handshake as they are in the product, at three resolutions. Nothing here may read a clock or draw
//! randomness but from a [`Seed`]: the same seed plays the same run.
//! Start with [`packets`] (nodes with faults, frame by frame), [`flow`] (many clients, message by
//! message) or [`fluid`] (a million relays as rates).

pub mod flow;
pub mod fluid;
pub mod packets;

pub use quelea_testkit::Seed;
