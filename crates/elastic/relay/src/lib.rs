//! The relay's data path over sockets: native protocol and ZMTP. One thread, one tokio runtime: each
//! connection is a task that reads, and a turn of the [`node`] writes for all of them.
//! This crate must never decide who gets a message or what is lost: that is `quelea_elastic_core::relay`.
//! Start with [`run`], then `node.rs` for a turn and `connection.rs` for a socket; edges of other
//! protocols begin at `edge.rs`, and [`entry::Entry`] is one that stays where it is while relays come
//! and go.

mod addresses;
mod clock;
mod config;
mod config_error;
mod connection;
mod control;
mod edge;
mod edge_peer;
pub mod entry;
mod frame_stream;
mod host;
mod keeper;
mod listener;
mod node;
mod ring_file;
mod run;
mod spill;
mod zmtp;

pub use addresses::Addresses;
pub use config::{Config, Directory};
pub use config_error::ConfigError;
pub use edge::EdgePort;
pub use node::SharedNode;
pub use quelea_elastic_zmtp::limits::ENTRY_CONNECTIONS_MAX;
pub use run::{RunError, Stopped, Stopper, run};
pub use spill::SpillConfig;
pub use zmtp::{
    ZMTP_HEARTBEAT_MS, ZmtpAddresses, ZmtpConfig, ZmtpMechanism, ZmtpSecurity, zmtp_heartbeat,
};
