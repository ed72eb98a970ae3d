//! The SQS server over replicated queues: alone, as one of several front-ends, or over the queues of a broker too, each call
//! going to the store of its queue's class. It must never hold what a later request needs, and it is compiled for speed,
//! like `sqs/embedded`, since the server is generic over its store. Start with `cluster.rs`, which is connected once.

mod api;
mod away;
mod cluster;
mod cluster_thread;
mod counters;
mod error;
mod mirror;
mod name_locks;
mod name_questions;
mod peer_socket;
mod retry;
mod serve;
mod takeover;
mod with_node;

pub use api::routes;
pub use away::{AWAY, serve_away};
pub use cluster::Cluster;
pub use error::FrontError;
pub use mirror::MirroredIdentity;
pub use peer_socket::PeerSettings;
pub use quelea_cassandra_store::{CassandraIdentity, CassandraSettings, ConnectError};
pub use serve::{FrontStore, StoreOfBoth, serve_alone, serve_both};
pub use with_node::{Bootstrap, HeldNames, NodeChannels};
