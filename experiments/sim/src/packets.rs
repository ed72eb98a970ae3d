//! Resolution L1: a few nodes, every frame, every fault. The directory, the relay and both sessions are the
//! product's own; their shells (sockets, tasks, the store's and the provider's) are modelled as they are
//! written there. A seed stands for a [`Plan`]; [`play`] plays it in virtual time and says what was wrong.
//!
//! What is checked all the time: a program takes each producer's messages in their order, each once, and is
//! notified of every one that it does not get; no command of an old owner takes effect; queues are bounded; no
//! panic. And in the end: at `delivered` and `stored` nothing that was acknowledged is lost; every relay
//! that runs is known, and known once; all flows again.
//!
//! Start with [`play`]; `simulation` is the run, `check` the promises, `directory`, `relay`, `client` the shells.

mod args;
mod check;
mod client;
mod client_connection;
mod clock;
mod context;
mod control;
mod directory;
mod event;
pub mod exhaustive;
pub mod fault;
mod keeping;
mod lifecycle;
mod machine;
mod ownership;
mod participant;
pub mod plan;
mod program;
mod provider;
mod relay;
mod run;
mod shrink;
mod simulation;
mod store;
mod workload;

pub use self::args::{PacketsArgs, replay};
pub use self::fault::Fault;
pub use self::participant::Participant;
pub use self::plan::{Family, Plan};
pub use self::run::{Outcome, play};
pub use self::shrink::shrink;
pub use quelea_testkit::stream_network::Paths;
