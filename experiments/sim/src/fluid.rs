//! Resolution L3: queues of rates, a million relays (research/eqs.md, section 6).
//!
//! A producer is a rate, a relay the sum of its producers' rates. Each second of virtual time the queue is
//! measured as the directory's monitor measures it, the product's own planner is asked, and what it says
//! is carried out: relays boot for a while and may fail, moves take a second. Queues know nothing of each
//! other, so each is played from beginning to end by one thread, and its arrays stay in the cache.
//!
//! Begin with [`Scenario`], then [`play`].

mod chance;
mod command;
mod compare;
mod events;
mod figures;
mod fleet;
mod gate;
mod producers;
mod queue;
mod relays;
mod report;
mod scenario;
mod view;

pub use command::Options;
pub use compare::Comparison;
pub use figures::{Figures, Hour};
pub use fleet::{Member, heavy_tailed, play_all, play_fleet};
pub use queue::play;
pub use report::Report;
pub use scenario::Scenario;
