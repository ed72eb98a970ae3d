//! The metadata of elastic queues in Cassandra, for directories that share them: the trait `MetaStore`, as etcd implements
//! it, by lightweight transactions on one partition. All reads are of most replicas, and each transaction changes one
//! partition at once, so that a read sees the store as it was after some transaction. It must never look into an entry's
//! value, decide anything about a queue, or change an entry but by such a transaction.
//!
//! No clock of another machine counts. A lease's holder changes its `beat`; every directory watches all leases, and ends one
//! whose beat has stood still for the lease's time by the watcher's own clock (`lease_observations.rs`).
//! Start reading at `metadata.rs`, then `shared.rs`; `plan.rs` and `lease_observations.rs` have no I/O.

mod changes;
mod entries;
mod fault;
mod lease_observations;
mod leases;
mod limits;
mod metadata;
mod plan;
mod shared;
mod stored;
mod tables;
mod watch;

pub use metadata::CassandraMetadata;
