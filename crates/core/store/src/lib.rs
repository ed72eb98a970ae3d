//! The embedded log: records, segments, group commit, checkpoints, recovery, and the index of each
//! queue. This crate must never open a file but through [`Disk`], start a thread, read a clock, or
//! know what a queue means beyond its number: effects leave as [`Job`]s that the shell runs.
//! Start with the [`Store`] trait, then [`QueueIndex`]; docs/formats/log.md has every byte on disk.

mod allocation;
mod appender;
mod batch;
mod checkpoint_file;
mod checkpoint_read;
mod checkpoint_writer;
mod chunk;
mod cleared_range;
mod commit_search;
mod damage;
mod disk;
mod entry;
mod eviction;
#[cfg(feature = "testing")]
pub mod fake_disk;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod group_commit;
mod index;
mod job;
mod load;
mod load_queue;
mod log;
mod log_directory;
#[cfg(feature = "testing")]
mod mem;
mod new_message;
mod noted_ids;
mod options;
mod paged_range;
mod queued_message;
mod read_job;
mod rebuild;
mod record;
mod record_reader;
mod recovered;
mod recovery;
mod replay;
mod room;
mod scan;
mod segment;
mod segment_pool;
mod skip;
mod slot;
mod stats;
mod store;
mod ticket;
mod visibility;

pub use damage::{Damage, LostMessages};
pub use disk::{Disk, DiskFile};
pub use entry::{Entry, EntryFlags, Location, NEVER};
pub use index::QueueIndex;
pub use job::{Job, JobDone, Lane};
pub use load::{
    LoadError, LoadFault, LoadItem, LoadRequest, LoadWhat, Loaded, LoadedRange, Missed,
};
pub use log::LogStore;
#[cfg(feature = "testing")]
pub use mem::MemStore;
pub use new_message::NewMessage;
pub use options::Options;
pub use paged_range::PagedRange;
pub use queued_message::{
    CheckpointCursor, Drained, Front, NextRead, QueuedMessage, QueuedMessageRef, UnstoredMessage,
};
pub use recovered::{DroppedTail, OpenError, Recovered, RecoveryReport};
pub use segment::SegmentReport;
pub use stats::StoreStats;
pub use store::{Store, StoreState};
pub use ticket::{Durability, Progress, Ticket};
pub use visibility::{Deduplication, Visibility};
