//! The directory: knows each queue's relays and clients, and carries out plans: relocation, scale in and
//! out, failover. A state machine: [`Input`]s go in with the time, [`Effect`]s come out.

mod io;

pub use io::{Effect, Input, Peer, ProviderOutcome, RelayHandle, RelaySpec};
