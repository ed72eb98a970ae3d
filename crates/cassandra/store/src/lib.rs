//! Replicated SQS queues on Apache Cassandra: the store behind the trait `Queues` for queues of the class `replicated`.
//! It must never hold anything that a call to another front-end needs, and never wait for another front-end, but for FIFO
//! queues (`fifo.rs`), which have an owner.
//! Start reading at `store.rs`, then `standard/send.rs` and `standard/receive.rs`. The rooms: `standard` (queues without an
//! owner), `fifo` (those with one), `peers` (the other front-ends), `database` (the driver, the schema, statements and
//! tables: nothing else speaks CQL but `fifo`'s tables and `peers`' one). What has no I/O in it (`backoff.rs`, `bucket.rs`; `standard`'s `head.rs`,
//! `choice.rs`, `batch.rs`, `gather.rs`, `receipt.rs`, `order_hint.rs`, `indexed_messages.rs`; `peers`' `alive.rs`, `interest.rs`,
//! `claims.rs`) takes time and randomness as arguments.

mod backoff;
mod bucket;
mod clock;
mod cluster_view;
mod database;
mod entry;
mod fifo;
mod identity;
pub mod limits;
mod message_id;
mod moves;
mod name_pattern;
mod passed;
mod peers;
mod remembered;
mod shared;
mod splitmix;
mod standard;
mod store;
mod sweeping;
mod time_offset;

pub use cluster_view::NodeView;
pub use database::RequestCounts;
pub use database::connect_error::ConnectError;
pub use database::keyspace::{Change, DeserializeRow, Keyspace, OwnedValues, Prepared, Values};
pub use database::settings::CassandraSettings;
pub use identity::{CassandraIdentity, IdentityRevisions};
pub use passed::Passed;
pub use peers::PeerStats;
pub use peers::alive::FrontEndView;
pub use peers::peer_socket::{PeerSocket, Receiving};
pub use standard::order_hint::HintView;
pub use standard::sweep_counts::SweepStats;
pub use store::CassandraQueues;
