//! The limits of the core and of AMQP that users can feel, each with its reason; docs/operate/limits.md lists
//! them. What a user may change has a configuration key whose default is the constant here. The other
//! families have a `limits.rs` of their own: `cmq/proto`, `elastic/proto`, `elastic/core`,
//! `elastic/zmtp`, `management` and the server of SQS; the rules of SQS's own names and attributes stand with
//! their texts in `sqs/protocol`. Sizes internal to one algorithm, such as the bytes of one read
//! or the entries of a chunk, stand beside it.

/// Bytes of a short string, and so of every AMQP name and routing key (AMQP 0-9-1 §4.2.5.3).
pub const SHORT_STRING_BYTES_MAX: usize = 255;

/// Largest frame that we offer in `tune`: RabbitMQ's default, what clients are tested with.
pub const FRAME_BYTES_MAX: u32 = 131_072;

/// Smallest frame-max a peer may ask for (AMQP 0-9-1 §4.2.3, `frame-min-size`).
pub const FRAME_BYTES_MIN: u32 = 4_096;

/// Channels that one connection may have open at a time: RabbitMQ's default. With some 1 KiB a channel it bounds a connection
/// that opens all of them to a few megabytes.
pub const CHANNELS_MAX: u16 = 2_047;

/// Seconds between heartbeats that we propose: RabbitMQ's default.
pub const HEARTBEAT_S: u16 = 60;

/// Milliseconds for the handshake: RabbitMQ's default. It bounds what strangers can hold open.
pub const HANDSHAKE_TIMEOUT_MS: u64 = 10_000;

/// Milliseconds for the client's close-ok after our close. The client may have much to read before
/// it sees the close; one that is gone should not hold its socket for long.
pub const CLOSE_OK_TIMEOUT_MS: u64 = 10_000;

/// Bytes of unfinished messages that one connection may have on all its channels together, or twice
/// the largest message if that is more: a client may begin a message on each of its channels, and
/// properties alone may be as long as a frame.
pub const UNFINISHED_MESSAGES_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Largest body of one message, 128 MiB: RabbitMQ 3's limit. It is one allocation and one record.
pub const MESSAGE_BYTES_MAX: u64 = 128 * 1024 * 1024;

/// Nesting of field tables and arrays; deeper input is refused before it can exhaust the stack.
pub const TABLE_DEPTH_MAX: usize = 32;

/// Entries of one field table or array, counted over all its nested ones.
pub const TABLE_ENTRIES_MAX: usize = 16_384;

/// Bytes waiting to be written to one connection before its consumers are held back. Two of the
/// kernel's default socket buffers: enough to keep a fast reader busy between two turns.
pub const OUTPUT_BYTES_MAX: usize = 512 * 1024;

/// Publishes of one connection that may wait for their confirm before we stop reading from it. Other
/// replies are limited by their bytes: reading stops at twice [`OUTPUT_BYTES_MAX`].
pub const REPLIES_WAITING_MAX: usize = 16_384;

/// Bytes that a peer may send while its password is checked: no client can know yet what to say. They are read
/// since only so is it seen that a peer is gone.
pub const EARLY_BYTES_MAX: usize = 4 * 1024;

/// Logins that wait for the thread, which hashes some 50 passwords a second (a second thread would
/// take the other core of a small machine). A connection has at most one, so this is a burst of
/// logins; beyond it one is refused, which clients answer by trying again.
pub const LOGINS_WAITING_MAX: usize = 8_192;

/// Declarations, bindings and deletions of one connection that are carried out and may wait for the disk before
/// their answers, all its channels together. One sync carries as many; at some 400 bytes each this is 400 kB.
pub const PROMISES_WAITING_MAX: usize = 1_024;

/// Deliveries that one channel may leave unacknowledged. RabbitMQ has no such limit and lets a
/// consumer that never acknowledges fill the memory; at some 100 bytes each this is 20 MB.
pub const UNACKED_PER_CHANNEL_MAX: usize = 200_000;

/// Deliveries that one connection may leave unacknowledged, all its channels together: the limit of
/// a channel alone would let one with 2,047 of them take 40 GB.
pub const UNACKED_PER_CONNECTION_MAX: usize = 400_000;

/// Consumers of one channel.
pub const CONSUMERS_PER_CHANNEL_MAX: usize = 16_384;

/// Consumers of one connection, all its channels together. At some 300 bytes each, without their
/// arguments, this is 5 MB.
pub const CONSUMERS_PER_CONNECTION_MAX: usize = 16_384;

/// Encoded bytes of the arguments that a queue, an exchange, a binding or a consumer keeps for as
/// long as it lives. The longest sensible ones name a few exchanges, queues and header values.
pub const ARGUMENT_BYTES_MAX: usize = 16 * 1024;

/// Entries of such arguments, nested ones included: in memory each costs some 64 bytes, however
/// few it has on the wire.
pub const ARGUMENT_ENTRIES_MAX: usize = 256;

/// Publishes and acknowledgements that the open transactions of one connection may hold together.
pub const TX_OPERATIONS_MAX: usize = 65_536;
/// Bytes of messages that the open transactions of one connection may hold together.
pub const TX_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Queues that the messages of one transaction may be put into, each counted for each message: a commit is one turn's,
/// and takes some 100 ms then.
pub const TX_TARGETS_MAX: usize = 250_000;

/// Priorities of one queue, as RabbitMQ's `x-max-priority` allows.
pub const PRIORITY_MAX: u8 = 255;

/// Queues that one vhost may hold unless configured otherwise; each costs some 1 KiB.
pub const QUEUES_PER_VHOST_MAX: usize = 100_000;

/// Exchanges of one vhost.
pub const EXCHANGES_PER_VHOST_MAX: usize = 100_000;

/// Bindings of one vhost, of all its exchanges.
pub const BINDINGS_PER_VHOST_MAX: usize = 1_000_000;

/// `#` of one binding's pattern at a topic exchange, those that stand together or have only `*` between
/// them counted as one. A key is as good as never told apart by more.
pub const TOPIC_HASHES_MAX: usize = 8;

/// Steps that one routing key may take at most through the patterns of a topic exchange (a step is a
/// place in the tree of patterns that is visited, or a word looked up there), whatever key it is. A
/// binding that would make a longer way possible is refused. At some 10 ns a step a key then holds
/// the core for 50 µs at worst.
pub const TOPIC_STEPS_MAX: u64 = 5_000;

/// Steps that one message may take at most through the bindings of a headers exchange, whatever its headers are (a step is
/// a binding, one of its terms, or 64 bytes of a term's value). A binding that would make a longer way possible is
/// refused. At some 20 ns a step a message then holds the core for 2 ms at worst.
pub const HEADERS_STEPS_MAX: u64 = 100_000;

/// Steps that one message may take in all, with the keys of its `CC` and `BCC` and its headers, through all topic and
/// headers exchanges that it comes to: some 10 to 20 ms.
pub const ROUTE_STEPS_MAX: u64 = 1_000_000;

/// Places in the tree of the patterns of one topic exchange: one for each different beginning of a
/// pattern. At some 100 bytes each this is 200 MB.
pub const TOPIC_NODES_MAX: usize = 2_000_000;

/// Queues that one connection may declare exclusively: it bounds a client that declares endlessly.
pub const EXCLUSIVE_QUEUES_PER_CONNECTION_MAX: usize = 10_000;

/// Hops of a message through exchange-to-exchange bindings; cycles are cut, depth is bounded too.
pub const EXCHANGE_HOPS_MAX: usize = 64;

/// Entries of the route cache; at the limit it is emptied, which costs one slow route per key.
pub const ROUTE_CACHE_ENTRIES_MAX: usize = 16_384;

/// Bytes of the route cache: a fan-out to 100,000 queues with a new key each time must not fill the
/// memory before the number of entries does.
pub const ROUTE_CACHE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Users of one node.
pub const USERS_MAX: usize = 100_000;

/// Permissions of all users in all vhosts, and topic permissions likewise.
pub const PERMISSIONS_MAX: usize = 200_000;

/// Access keys of all users.
pub const ACCESS_KEYS_MAX: usize = 200_000;

/// Bytes of an access key's id, and of its secret. AWS's ids have as many at most.
pub const ACCESS_KEY_BYTES_MAX: usize = 128;

/// Access keys of one user: two at once in a handful of accounts, so that each can be replaced.
pub const ACCESS_KEYS_PER_USER_MAX: usize = 16;

/// Bytes of the text of one permission pattern: several names' worth.
pub const PATTERN_BYTES_MAX: usize = 1_024;
/// Bytes that one permission pattern may compile to; a repetition of a repetition would need more.
pub const PATTERN_COMPILED_BYTES_MAX: usize = 256 * 1024;

/// Remembered decisions on permissions; at the limit they are forgotten, which costs one match each.
pub const ACCESS_CACHE_ENTRIES_MAX: usize = 16_384;

/// Routing keys in the `CC` and `BCC` headers of one message.
pub const CC_KEYS_MAX: usize = 1_024;

/// Bytes of message bodies and properties that are kept in memory for all queues together; beyond
/// it durable bodies are dropped (they are in the log) and transient ones are written to the log.
pub const RESIDENT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Bytes of index entries in memory before ranges of them are paged out.
pub const INDEX_BYTES_MAX: usize = 128 * 1024 * 1024;

/// Bytes of one log segment.
pub const SEGMENT_BYTES: u32 = 64 * 1024 * 1024;

/// Bytes that may be read ahead for one queue's consumers.
pub const READ_AHEAD_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Largest delay or time to live, in milliseconds: ten years, as in RabbitMQ. Celery and NServiceBus delay messages by queues
/// whose times to live are powers of two of seconds, up to 2^27.
pub const TTL_MS_MAX: u64 = 315_360_000_000;

/// Bytes appended to the log and not yet written before publishers are asked to wait: a few of the
/// largest batches. Two buffers of this size are kept.
pub const STORE_PENDING_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Connections of one node.
pub const CONNECTIONS_MAX: usize = 65_536;

/// How long a peer may take none of what is written to it. A RabbitMQ closes after 15 s; a program that is looked at with a
/// debugger should live a little longer.
pub const STALLED_WRITE_MS_MAX: u64 = 120_000;

/// Deliveries of one message of a queue declared as `quorum`: RabbitMQ 4's default.
pub const QUORUM_DELIVERY_LIMIT: u16 = 20;

/// Gets of one queue that may wait for its messages to be read from the log.
pub const GETS_WAITING_MAX: usize = 65_536;

/// Looks at queues whose messages are being read from the log. Each holds a page of bodies, at most
/// [`READ_AHEAD_BYTES_MAX`] of them, and reads beside the consumers.
pub const BROWSES_WAITING_MAX: usize = 16;

/// Messages of one queue that may wait on their way to a dead-letter exchange before the queue
/// stops to give out and to expire others. They wait only for their bodies to be read back.
pub const DEAD_LETTERS_WAITING_MAX: usize = 10_000;

/// Messages of one queue that may be in flight through SQS at once (SQS's quota).
pub const IN_FLIGHT_MAX: usize = 120_000;

/// Receives that may wait at once, in all queues together: the connections of a node twice over.
pub const RECEIVES_WAITING_MAX: usize = 300_000;

/// How long a deduplication id counts after its message was sent: five minutes (SQS).
pub const DEDUPLICATION_MS: u64 = 300_000;

/// Deduplication ids that one queue remembers: five minutes of 13,000 messages a second. Each takes
/// some 150 bytes.
pub const DEDUPLICATIONS_PER_QUEUE_MAX: usize = 4_000_000;

/// Longest time from a reception to the end of its visibility timeout: 12 hours (SQS).
pub const VISIBILITY_TIMEOUT_MS_MAX: u64 = 43_200_000;

/// Greatest order hint K of a queue: so many entries are looked at in a receive.
pub const ORDER_HINT_MAX: u16 = 1_000;

/// Attempt ids of receives that one queue remembers, for five minutes at most.
pub const RECEIVE_ATTEMPTS_MAX: usize = 10_000;

/// Bytes of all attributes and tags of one queue together: an item of the topology may have 1 MiB.
pub const QUEUE_ATTRIBUTES_BYTES_MAX: usize = 512 * 1024;

/// Move tasks that may run at once, in all queues together (SQS: 100 an account). Each is looked at
/// in every turn.
pub const MOVE_TASKS_RUNNING_MAX: usize = 100;

/// Move tasks of one source that are remembered: as many as SQS lists.
pub const MOVE_TASKS_KEPT: usize = 10;

/// Bytes of memory for what is known of hidden messages, of groups, and of deduplication ids, in all
/// queues together: it cannot be written out. Thirteen million delayed messages.
pub const HELD_BYTES_MAX: usize = 2 * 1024 * 1024 * 1024;

/// Bytes of bodies after which a receive takes no further message: SQS's largest batch.
pub const RECEIVE_BYTES_MAX: usize = 1024 * 1024;
