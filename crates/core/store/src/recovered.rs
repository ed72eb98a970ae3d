//! What a restart finds.

use std::collections::{BTreeMap, HashMap};

use quelea_model::{QueueId, Seq};

use crate::segment::SEGMENT_HEADER_BYTES;
use crate::{Damage, Deduplication, QueueIndex, Visibility};

/// The state that a log was recovered to.
#[derive(Debug)]
pub struct Recovered {
    /// All items of the topology.
    pub topology: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The durable messages of each queue that has any, bodies not loaded, priorities mixed.
    /// Delivered ones that were not settled are among them, at their old place.
    pub queues: HashMap<QueueId, QueueIndex>,
    /// From when messages may be received, and how often they have been, where that was noted. May
    /// name messages that are gone.
    pub visibility: HashMap<QueueId, BTreeMap<Seq, Visibility>>,
    /// Deduplication ids, in the order in which they were noted; some may be there twice.
    pub deduplications: HashMap<QueueId, Vec<Deduplication>>,
    /// Greater than every number that was used, also by what did not come to the disk.
    pub next_seq: Seq,
    /// Greater than every queue number that the store has seen. Queues without messages are only
    /// named in the topology, which the store cannot read: take the larger of the two.
    pub next_queue: QueueId,
    /// Whether the process before this one did not stop in good order: then any of the messages may
    /// have been delivered. The store cannot know; whoever opens it says so.
    pub after_crash: bool,
    /// What was left out because it is damaged, which [`crate::Options::accept_damage`] allows.
    pub damage: Vec<Damage>,
    /// For the line that is logged at the start.
    pub report: RecoveryReport,
}

impl Default for Recovered {
    fn default() -> Self {
        Self {
            topology: BTreeMap::new(),
            queues: HashMap::new(),
            visibility: HashMap::new(),
            deduplications: HashMap::new(),
            next_seq: Seq(1),
            next_queue: QueueId(1),
            after_crash: false,
            damage: Vec::new(),
            report: RecoveryReport::default(),
        }
    }
}

/// What recovery did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Number of the checkpoint that it started from.
    pub checkpoint: Option<u64>,
    /// Segments of the log.
    pub segments: u64,
    /// Bytes of records that were replayed.
    pub replayed_bytes: u64,
    /// Records that were replayed.
    pub replayed_records: u64,
    /// Live (queue, message) pairs found.
    pub entries: u64,
    /// What was cut off behind the last complete batch, if anything was.
    pub dropped_tail: Option<DroppedTail>,
}

/// The end of the log that was dropped: nothing says that it ever was on the disk, so nothing in it was
/// confirmed as synced.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{records} records or more from byte {offset} of {file} on: {problem}")]
pub struct DroppedTail {
    /// The last segment's file.
    pub file: String,
    /// Where the last complete batch ends.
    pub offset: u32,
    /// Why the log ends there.
    pub problem: String,
    /// Records that were found in batches which are not complete, or stand behind one. What is not readable is
    /// not counted.
    pub records: u64,
}

/// Why a log cannot be opened. Nothing was changed on the disk.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The operating system refused something.
    #[error("cannot {action} {file}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file.
        file: String,
        /// What it said.
        source: std::io::Error,
    },
    /// A file holds what no crash can explain.
    #[error("{file} is damaged at byte {offset}: {problem}")]
    Damaged {
        /// The file.
        file: String,
        /// The place.
        offset: u64,
        /// What is wrong there.
        problem: String,
    },
    /// A segment that is needed is not there.
    #[error("segment {segment} of the log is missing: {problem}")]
    Missing {
        /// Its number.
        segment: u32,
        /// Who needs it.
        problem: String,
    },
    /// Segments are shorter than they were, or not there.
    #[error("{}", damage.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Lost {
        /// What is missed.
        damage: Vec<Damage>,
        /// The topology, by which the queues have their names.
        topology: BTreeMap<Vec<u8>, Vec<u8>>,
    },
    /// Written by a newer version.
    #[error("{file} has format version {version}; this program knows versions up to {known}")]
    Version {
        /// The file.
        file: String,
        /// Its version.
        version: u16,
        /// Ours.
        known: u16,
    },
    /// The options make no sense.
    #[error("segment_bytes is {segment_bytes}, it must be a multiple of 512 from 4096 to 2^31")]
    Options {
        /// The setting.
        segment_bytes: u32,
    },
}

impl OpenError {
    /// Returns whether the log opens without what is lost, with [`crate::Options::accept_damage`].
    #[must_use]
    pub fn can_be_accepted(&self) -> bool {
        match self {
            Self::Missing { .. } | Self::Lost { .. } => true,
            // Without its header nothing is known of a segment, and of a checkpoint nothing is skipped.
            Self::Damaged { file, offset, .. } => {
                file.starts_with("segment") && *offset >= u64::from(SEGMENT_HEADER_BYTES)
            }
            _ => false,
        }
    }
}
