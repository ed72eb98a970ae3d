//! What SQS and this implementation of it allow at most, with the reasons. Where SQS has a limit it is SQS's.

/// Letters of a queue's name, the suffix `.fifo` included.
pub(crate) const QUEUE_NAME_LENGTH_MAX: usize = 80;

/// The largest message, its attributes included, and the most of a whole batch, in bytes.
pub(crate) const MESSAGE_BYTES_MAX: u64 = 1_048_576;

/// Attributes of one message.
pub(crate) const MESSAGE_ATTRIBUTES_MAX: usize = 10;

/// Bytes that an attribute's name, and its type, have to stay below: a header's name in AMQP has 255.
pub(crate) const ATTRIBUTE_NAME_BYTES_MAX: usize = 256;

/// Letters of a group's or a deduplication's id, and of a receive's attempt id.
pub(crate) const GROUP_ID_LENGTH_MAX: usize = 128;

/// Entries of one batch.
pub(crate) const BATCH_ENTRIES_MAX: usize = 10;

/// Letters of an entry's id.
pub(crate) const BATCH_ID_LENGTH_MAX: usize = 80;

/// The longest time that a message is kept, in seconds: 14 days.
pub(crate) const RETENTION_S_MAX: u64 = 1_209_600;

/// The longest delay, in seconds.
pub(crate) const DELAY_S_MAX: i64 = 900;

/// Messages of one receive.
pub(crate) const RECEIVED_MESSAGES_MAX: i64 = 10;

/// Names of message attributes that a receive may ask for, which it keeps for as long as it waits. A
/// message has ten.
pub(crate) const ATTRIBUTE_NAMES_MAX: usize = 100;

/// The longest wait, in seconds.
pub(crate) const WAIT_S_MAX: i64 = 20;

/// The longest visibility timeout: 12 hours.
pub(crate) const VISIBILITY_TIMEOUT_S_MAX: i64 = 43_200;

/// Letters of a handle; SQS's own are some hundreds. Longer ones are not decoded.
pub(crate) const HANDLE_LENGTH_MAX: usize = 1024;

/// The most messages that one look returns: each is a row of a cluster.
pub const PEEKED_MESSAGES_MAX: usize = 100;

/// Bytes of messages at which a look ends, what they carry included; one message at least is looked at.
pub const PEEKED_BYTES_MAX: usize = 8 * 1024 * 1024;

/// How often a message may be received before it goes to the dead-letter queue.
pub(crate) const RECEIVE_COUNT_MAX: u64 = 1000;

/// Queues that an allow policy may name.
pub(crate) const REDRIVE_SOURCES_MAX: usize = 10;

/// The highest rate that a task may ask for.
pub(crate) const MOVED_MESSAGES_PER_S_MAX: i64 = 500;

/// Tasks of one list.
pub(crate) const MOVE_TASKS_LISTED_MAX: i64 = 10;

/// Queues of one page.
pub(crate) const PAGE_MAX: usize = 1000;

/// Tags of a queue.
pub(crate) const TAGS_MAX: usize = 50;

/// Letters of a tag's key.
pub(crate) const TAG_KEY_LENGTH_MAX: usize = 128;

/// Letters of a tag's value.
pub(crate) const TAG_VALUE_LENGTH_MAX: usize = 256;

/// Actions of one statement.
pub(crate) const PERMISSION_ACTIONS_MAX: usize = 7;

/// Bytes of an error's message.
pub(crate) const ERROR_MESSAGE_BYTES_MAX: usize = 2_048;

/// Letters of a label.
pub(crate) const LABEL_LENGTH_MAX: usize = 80;

/// A policy's text is no longer than this. SQS's own limit.
pub const POLICY_BYTES_MAX: usize = 8192;

/// Statements of one policy.
pub const STATEMENTS_MAX: usize = 20;

/// Of all statements together.
pub const PRINCIPALS_MAX: usize = 50;

/// Of all statements together.
pub const CONDITIONS_MAX: usize = 10;

/// Bytes of the region that a request is signed for: a label of a host's name, as regions are at AWS, has no more. The
/// key that is derived for it is kept by it.
pub(crate) const REGION_BYTES_MAX: usize = 63;

/// How far the clocks of the two ends may be apart.
pub const SKEW_S_MAX: u64 = 15 * 60;

/// A presigned request is good for a week at most.
pub const EXPIRES_S_MAX: u64 = 7 * 24 * 60 * 60;

/// Items of lists and maps, and members of structures, in one request. Ten messages with ten
/// attributes each have some 500; an item takes more memory than its three bytes on the wire.
pub(crate) const REQUEST_ITEMS_MAX: u32 = 10_000;

/// Ten messages with ten attributes have some 400; an oversized batch is refused as such.
pub(crate) const QUERY_PARAMETERS_MAX: usize = 4_000;
