//! Every limit of the replicated queues, with its reason.

/// Rows of a batch that is sent to one partition. A batch of ten costs Cassandra nearly what one row costs; beyond some
/// hundred, the rows themselves do.
pub const BATCH_ROWS_MAX: usize = 100;

/// Bytes of a batch, save when one message alone is larger. Cassandra takes mutations of half a commit-log segment, which
/// is 4 MiB where segments have 8 MiB, and a message 1 MiB at most.
pub const BATCH_BYTES_MAX: usize = 1024 * 1024;

/// Batches of one queue that are under way at once, of each kind. More would only wait in Cassandra.
pub const BATCHES_AT_ONCE: usize = 4;

/// Messages of one queue that may wait to be sent or deleted here; further ones are refused with 503.
pub const WAITING_ROWS_MAX: usize = 10_000;

/// Bytes of one queue's messages that may wait to be sent here.
pub const WAITING_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The same of all queues, those included that are being written: as much as the SQS server takes of bodies, which counts those of clients
/// only that have not hung up.
pub const WAITING_BYTES_IN_ALL_MAX: usize = 256 * 1024 * 1024;

/// Bytes of messages of all queues, FIFO queues as well, that are being read to be received: of standard queues until their calls have
/// them, 64 queues with as much as one reads at a time. What is beyond waits.
pub const READING_BYTES_IN_ALL_MAX: usize = 256 * 1024 * 1024;

/// How long a call's messages may wait here to be sent, deleted or hidden otherwise, in ms, or a change of a queue for others; after that
/// they are refused with 503. Where Cassandra does not answer each takes seconds, and together longer than clients wait.
pub const WAITING_MS_MAX: u64 = 10_000;

/// Messages of all standard queues whose visibility is being changed here; further ones are refused with 503.
pub const VISIBILITY_CHANGES_MAX: usize = 10_000;

/// Receives of one queue that may wait here, long polls included.
pub const WAITING_RECEIVES_MAX: usize = 5_000;

/// So much later than its wait ends a receive is answered at most while reads go on behind messages that cannot be had, in ms: where
/// Cassandra is quick one that does not wait gets behind them.
pub const RECEIVE_LATE_MS_MAX: u64 = 1_000;

/// Messages that one look at a queue's head takes.
pub const TAKEN_ROWS_MAX: usize = 100;

/// Rows of the index that one read asks for at most.
pub const READ_ROWS_MAX: usize = 1_000;

/// Buckets that one look reads at most, beside those that begin before the place where the last one has ended; the next look goes on behind
/// them.
pub const READ_BUCKETS_MAX: usize = 8;

/// Rows that a bucket should hold. At 6,000 deleted rows before the first live one a read takes eight times as long.
pub const BUCKET_ROWS_MAX: u32 = 4_000;

/// Shards of one second of a queue, each a bucket: together they hold 128,000 rows. With more each holds more.
pub const SHARDS_MAX: usize = 32;

/// Front-ends that know each other; further ones work alone.
pub const FRONT_ENDS_MAX: usize = 256;

/// How often a front-end renews its row among the others' and reads theirs.
pub const HEARTBEAT_MS: u64 = 2_000;

/// For how long a row lives that is not renewed, in seconds.
pub const HEARTBEAT_TTL_S: i32 = 10;

/// A front-end whose row was not renewed for so long, by the clock of whoever reads it, is dead. It may miss four renewals.
pub const DEAD_AFTER_MS: u64 = 10_000;

/// For how long a front-end takes another to poll a queue that said so, in ms. Each says it anew ten times in that time,
/// or as often as it comes to that: to tell one that polls no more costs a datagram, not to tell one that does a duplicate.
pub const INTEREST_MS: u64 = 20_000;

/// Front-ends of one queue that are known to poll it.
pub const INTERESTED_MAX: usize = 64;

/// Front-ends that are notified of one new message, of those that poll its queue: enough for one of them to be waiting still.
pub const NUDGED_MAX: usize = 8;

/// How long the answer to a change of a queue waits for the other front-ends to have heard of it, in ms: some hundred times
/// what a datagram and its acknowledgement take. One that has died costs it that time, until it is known to be dead.
pub const NOTED_MS_MAX: u64 = 250;

/// For how long an entry that another front-end takes is left to it, in ms: as long as a request to Cassandra may last. So
/// long a message waits when that front-end dies.
pub const CLAIM_MS: u64 = 5_000;

/// Entries that a front-end knows to be taken, some hundred bytes each. With more, duplicates come back.
pub const CLAIMS_MAX: usize = 50_000;

/// How old messages are that the sweep looks at, in ms: older than the longest delay, so that none is visible too soon.
pub const SWEPT_AGE_MS_MIN: u64 = 20 * 60 * 1000;

/// Messages of one queue that the sweep remembers to be in the index, four bytes each. Of a queue that has more it looks at a part of the
/// messages, another one each time.
pub const SWEPT_HASHES_MAX: usize = 1 << 20;

/// Queues whose sweeps are under way at once; so many with a million messages each keep the others waiting.
pub const SWEPT_QUEUES_AT_ONCE: usize = 16;

/// How old a count of messages in flight may be by which receives are refused, in ms.
pub const IN_FLIGHT_COUNTED_MS: u64 = 5_000;

/// Queues of which a front-end remembers something; the longest unused is forgotten first.
pub const REMEMBERED_QUEUES_MAX: usize = 10_000;

/// Queues of one answer of a front-end's API: each costs some requests to Cassandra.
pub const QUEUES_SHOWN_MAX: usize = 100;

/// FIFO queues that one front-end owns; it takes no further ones over.
pub const OWNED_QUEUES_MAX: usize = 2_000;

/// Bytes that all FIFO queues of a front-end may take of its memory, about, unless its settings say otherwise; sends to them are
/// refused with 503 then.
pub const OWNED_BYTES_MAX: usize = 1024 * 1024 * 1024;

/// For how long no further shards of a second are used after a front-end was there that does not read them, in ms: one that was stopped
/// for longer, and goes on, has to be ended.
pub const SHARDS_HELD_MS: u64 = 600_000;

/// For how long a front-end goes by what it knows of a queue's attributes where it may have missed a change of them.
pub const FACTS_AGE_MS_MAX: u64 = 2_000;

/// The same where it hears all the others, in ms, and so of each change. As long takes only what nobody notifies of: what is written into
/// the tables by other means, or was begun by a front-end that was killed, and is finished by a later change of another queue of its
/// account.
pub const FACTS_AGE_HEARD_MS_MAX: u64 = 30_000;

/// How old the list of a queue's buckets may be by which its head is read, in ms, where others may have begun one unheard.
pub const BUCKETS_AGE_MS_MAX: u64 = 1_000;

/// The same where all others are heard, in ms, and know that the queue is polled here. If the datagram about a bucket is lost, what
/// was put into it is seen so much later.
pub const BUCKETS_AGE_HEARD_MS_MAX: u64 = 5_000;

/// How often a front-end sends how many changes of queues it has notified of, in ms: three in a row may be lost.
pub const CHANGES_COUNTED_EVERY_MS: u64 = 500;

/// For how long the front-ends whose rows were read are taken to be all, in ms: two heartbeats.
pub const OBSERVED_MS_MAX: u64 = 2 * HEARTBEAT_MS;

/// Changes of queues that are under way at once; further ones are refused with 503.
pub const CHANGES_AT_ONCE: usize = 1_000;

/// How long a front-end that stops waits for changes of queues that are under way, in ms. The others take one that is gone to have
/// made a change for ten seconds more.
pub const CHANGES_AWAITED_MS_MAX: u64 = 1_000;

/// Buckets of a queue that were heard of since the last look at its head; with more, their list is read again.
pub const HEARD_BUCKETS_MAX: usize = 64;

/// How far behind the present an entry of the index may be inserted, and so how far behind it the low-water mark stays.
/// A front-end that takes longer than half of it for a write inserts again. It covers what clocks differ by.
pub const GRACE_MS: u64 = 10_000;

/// The grace of queues with consistency ONE, whose writes may reach a replica late.
pub const GRACE_OF_ONE_MS: u64 = 600_000;

/// A visibility timeout may end this long after the message was received, as in SQS.
pub const VISIBILITY_MS_MAX: u64 = 12 * 3600 * 1000;

/// Rows that a count of a queue's messages reads at most; it is extrapolated from there.
pub const COUNTED_ROWS_MAX: usize = 20_000;

/// Buckets that a count reads at most, each with a request; the others are taken to be as full.
pub const COUNTED_BUCKETS_MAX: usize = 64;

/// Buckets that are counted to say whether too many messages are in flight.
pub const IN_FLIGHT_BUCKETS_MAX: usize = 256;

/// Entries of messages that were received, which a count looks after one by one: some may lead nowhere, since their message was
/// deleted by a receipt from before its visibility was changed. Where there are more, all are counted.
pub const LOOKED_AFTER_ROWS_MAX: usize = 200;

/// Buckets that a look which is no reception reads at most, some at once: at rates of hundreds of messages a second those between
/// the low-water mark and the head are some dozens.
pub const PEEKED_BUCKETS_MAX: usize = 256;

/// Partitions of a FIFO queue that such a look reads at most where no owner answers: those whose messages are all deleted stay
/// for minutes, and each has 512 rows at most.
pub const PEEKED_SEGMENTS_MAX: usize = 256;

/// How long a FIFO queue's owner may take to say to such a look what it has, before the rows are read without it.
pub const PEEKED_OWNER_MS_MAX: u64 = 2_000;

/// For how long a count is good.
pub const COUNT_AGE_MS_MAX: u64 = 500;

/// Messages that a move task moves in a step.
pub const MOVED_ROWS_MAX: usize = 100;

/// Bytes of messages that a move task moves in a step, save when one message alone is larger: as much as a receive reads at a time.
pub const MOVED_BYTES_MAX: usize = BATCH_BYTES_MAX * BATCHES_AT_ONCE;

/// Move tasks of a queue that are remembered, as in SQS.
pub const MOVE_TASKS_MAX: usize = 10;

/// For how long a front-end goes by what it knows of keys and permissions: a key that was disabled signs for so long.
pub const IDENTITY_AGE_MS_MAX: u64 = 2_000;

/// Keys and permissions, of each kind, that a front-end remembers, those included that there are not.
pub const REMEMBERED_IDENTITIES_MAX: usize = 10_000;

/// Rows of a page of users, permissions or keys.
pub const IDENTITY_PAGE_ROWS: i32 = 1_000;

/// Attempts at a change of an account, a user, a permission or a key that others overtake, a second and a half in all.
pub const REVISED_ATTEMPTS: usize = 8;
