//! The elastic queue's core (EQS, DESIGN.md section 8): the relay's data path, the directory that knows
//! queues and their relays, service levels, and the planner that scales them.
//! This crate must never do I/O, read a clock or draw randomness: inputs and time come in as arguments,
//! effects go out as data, so one code runs in sockets, in tests and in the simulator.
//! Start with [`plan`] for what is decided, [`directory`] for how it is carried out, [`ownership`] for which
//! directory does it, [`relay`] for the
//! messages.

pub mod directory;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod limits;
pub mod ownership;
pub mod plan;
pub mod relay;
pub mod sla;
