//! What the simulations of several crates share: seeds, virtual time, networks that fail, a disk that
//! crashes, a node, the examples of a format's page. It must never be part of the product (only `dev-dependencies` name it, and the
//! apparatus), read a clock, or hold what one simulation alone needs: that stands beside its tests.
//! Start with [`seeds`] and [`Agenda`].

mod agenda;
#[cfg(feature = "node")]
pub mod amqp_client;
#[cfg(feature = "broker")]
pub mod broker;
pub mod datagram_network;
pub mod golden;
#[cfg(feature = "node")]
pub mod node;
mod seed;
pub mod seeds;
pub mod stream_network;
mod trace;

pub use agenda::Agenda;
pub use seed::Seed;
pub use trace::Trace;

/// The fake disk. It stands in the store, whose fuzz targets need it within the crate: a store that
/// depended on the testkit would be a circle.
#[cfg(feature = "disk")]
pub use quelea_store::fake_disk as disk;
