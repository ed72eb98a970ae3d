//! Replicated SQS queues on Apache Cassandra: the store behind the trait `Queues` for queues of the class `replicated`.
//! It must never hold anything that a call to another front-end needs, and never wait for another front-end, but for FIFO
//! queues (`fifo.rs`), which have an owner.
//! Start reading at `store.rs`, then `send.rs` and `receive.rs`; what has no I/O in it (`bucket.rs`, `head.rs`, `choice.rs`,
//! `batch.rs`, `gather.rs`, `receipt.rs`, `backoff.rs`, `time_offset.rs`; `alive.rs`, `interest.rs`, `claims.rs`, `order_hint.rs` of the
//! other front-ends) takes time and randomness as arguments.

mod alive;
mod backoff;
mod batch;
mod beats;
mod bucket;
mod cassandra_tables;
mod choice;
mod claims;
mod clock;
mod cluster_view;
mod connect;
mod connect_error;
mod content;
mod counted;
mod counting;
mod database;
mod datagram;
mod dead_letter;
mod delete;
mod directory;
mod driver;
mod entry;
mod fair;
mod fault;
mod fifo;
mod front_end_table;
mod gather;
mod head;
mod heartbeat;
mod identity;
mod identity_table;
mod in_flight;
mod interest;
mod internal_address;
mod jobs;
mod keyspace;
pub mod limits;
mod look;
mod message_id;
mod move_table;
mod moves;
mod name_pattern;
mod order_hint;
mod passed;
mod peer_socket;
mod peers;
mod preparing;
mod queue;
mod queue_table;
mod receipt;
mod receive;
mod remembered;
mod rendezvous;
mod row_write;
mod rows;
mod schema;
mod send;
mod settings;
mod shared;
#[cfg(test)]
mod simulation;
mod standard;
mod statements;
mod store;
mod sweep;
mod sweeping;
mod tables;
mod take_over_table;
mod time_offset;
mod tls;
mod transaction;
mod visibility;

pub use alive::FrontEndView;
pub use cluster_view::NodeView;
pub use connect_error::ConnectError;
pub use database::RequestCounts;
pub use identity::CassandraIdentity;
pub use keyspace::{Change, DeserializeRow, Keyspace, OwnedValues, Prepared, Values};
pub use order_hint::HintView;
pub use passed::Passed;
pub use peer_socket::{PeerSocket, Receiving};
pub use peers::PeerStats;
pub use settings::CassandraSettings;
pub use store::CassandraQueues;
