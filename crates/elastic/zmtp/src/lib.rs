//! ZMTP 3.0 and 3.1, ZeroMQ's wire protocol (rfc.zeromq.org/spec/37): greeting, the mechanisms NULL,
//! PLAIN and CURVE, frames, commands, heartbeats and subscriptions, as a state machine.
//! This crate must never do I/O or read a clock; bytes, time and randomness come in as arguments.
//! Start with [`Connection`]; every limit is in [`limits`].

mod command;
mod connection;
mod curve;
mod error;
mod frame;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod greeting;
pub mod limits;
mod mechanism;
mod message;
mod metadata;
mod security;
mod socket_type;
mod time;
mod z85;

pub use connection::{Connection, Event, Heartbeat, Peer, Settings};
pub use curve::{Entropy, PublicKey, SecretKey};
pub use error::Error;
pub use frame::{Header, put_frame};
pub use message::{Parts, frame_parts};
pub use security::{AllowedKeys, Security, Users};
pub use socket_type::SocketType;
pub use time::ZmtpTime;
pub use z85::KeyError;
