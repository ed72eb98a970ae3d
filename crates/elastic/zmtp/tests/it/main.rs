//! A connection and its peer, in virtual time.

mod curve;
mod golden;
mod handshake;
mod heartbeat;
mod pair;
mod properties;
mod traffic;
