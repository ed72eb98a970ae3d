//! Every limit of a FIFO queue at its owner, with its reason.

/// Messages of a queue that its owner has in memory: the oldest that are not deleted. Those behind them are in Cassandra
/// only, and are received when there is room. It is what Amazon's FIFO queues look through for groups that do not wait.
pub const WINDOW_MESSAGES_MAX: usize = 20_000;

/// While owners have taken all the memory that they may, one reads further messages only if it has fewer.
pub const WINDOW_MESSAGES_MIN: usize = 1_000;

/// Bytes of bodies that an owner keeps of a queue's messages, the oldest; others are read when they are received.
pub const CACHED_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Rows of one partition of messages.
pub const SEGMENT_ROWS_MAX: usize = 512;

/// Bytes of one partition of messages, save for the last of them. Whoever takes a queue over reads one at once, and what a
/// replica lacks of it is repaired in one mutation, of which Cassandra takes 16 MiB by default, and some sites less.
pub const SEGMENT_BYTES_MAX: usize = 2 * 1024 * 1024;

/// For how long messages come into one partition, in ms. Its place in the list of partitions lives for 30 days from its
/// begin, and messages live for up to 14 days.
pub const SEGMENT_AGE_MS_MAX: u64 = 24 * 3600 * 1000;

/// Partitions of messages that a queue has; further messages are refused with 503.
pub const SEGMENTS_MAX: usize = 100_000;

/// Partitions that one load of the window reads.
pub const LOADED_SEGMENTS_MAX: usize = 8;

/// Rows and bytes of a batch: as of standard queues.
pub const BATCH_ROWS_MAX: usize = 100;

/// Bytes of a batch, save when one message alone is larger.
pub const BATCH_BYTES_MAX: usize = 1024 * 1024;

/// Messages that wait to be written, and sends that wait to be confirmed; further ones are refused with 503.
pub const WAITING_ROWS_MAX: usize = 10_000;

/// Bytes of messages that wait to be written.
pub const WAITING_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Receives that wait, long polls included; further ones are refused with 503.
pub const WAITING_RECEIVES_MAX: usize = 5_000;

/// Deletions that wait to be written; further ones are refused with 503.
pub const WAITING_DELETIONS_MAX: usize = 20_000;

/// Requests of one queue under way at once that delete rows, read bodies, or move messages away, of each kind.
pub const AT_ONCE_MAX: usize = 8;

/// Rows that one request to delete names, of any partitions.
pub const DELETED_ROWS_MAX: usize = 400;

/// Bytes of one receive's messages, save for the first.
pub const RECEIVE_BYTES_MAX: usize = 1024 * 1024;

/// For how long a deduplication id counts, and the result of a receive's attempt, in ms (SQS).
pub const DEDUPLICATION_MS: u64 = 300_000;

/// For how much longer their rows live, and count when they are read: what clocks differ by, and more.
pub const DEDUPLICATION_SLACK_MS: u64 = 60_000;

/// Deduplication ids of a queue, each some 100 bytes; further messages are refused with 503. It is 3,300 messages a second.
pub const DEDUPLICATIONS_MAX: usize = 1_000_000;

/// Attempts of receives that are remembered.
pub const ATTEMPTS_MAX: usize = 10_000;

/// For how long an owner may confirm after it asked for its lease, in ms.
pub const LEASE_MS: u64 = 6_000;

/// By how much earlier it stops, in ms, by its steady clock.
pub const LEASE_MARGIN_MS: u64 = 1_000;

/// How often a lease is renewed, in ms, and how soon again when that failed.
pub const RENEW_EVERY_MS: u64 = 2_000;

/// How soon a renewal is repeated that failed, in ms.
pub const RENEW_AGAIN_MS: u64 = 500;

/// For how long others have to see the same lease, by their steady clocks, until it is over, in ms.
pub const OBSERVE_MS: u64 = LEASE_MS + LEASE_MARGIN_MS;

/// An owner of which nothing was asked for so long lets go of its queue, if nothing is in flight, in ms.
pub const IDLE_MS: u64 = 30_000;

/// Earlier epochs of which a queue may have messages before its owner no longer lets go of it when it is idle.
pub const SEALS_IDLE_MAX: usize = 1_024;

/// Earlier epochs of which a queue may have messages; then nobody takes it over until somebody looks after it.
pub const SEALS_MAX: usize = 16_384;

/// A visibility timeout may end this long after the message was received, as in SQS, in ms.
pub const VISIBILITY_MS_MAX: u64 = 12 * 3600 * 1000;

/// For how long a receive that finds nothing waits for messages that it has moved to the dead-letter queue, in ms: then those behind
/// them can be received.
pub const MOVE_WAITED_MS: u64 = 1_000;

/// After which time a message that could not be moved to its dead-letter queue is tried again, in ms.
pub const MOVE_AGAIN_MS: u64 = 1_000;
