//! Every limit of a relay, with its reason.

/// A listener's ring where the queue says nothing else. Some 13,000 messages of 5 kB: a pause of half a
/// second at full speed is ridden out.
pub const RING_BYTES_DEFAULT: u64 = 64 << 20;
/// The smallest ring: below it, one read of a busy producer would fill it.
pub const RING_BYTES_MIN: u64 = 64 << 10;
/// Items of a ring, each with some 80 bytes of its own beside the messages: bounds the memory of rings
/// full of tiny messages.
pub const RING_ITEMS_MAX: usize = 262_144;
/// A ring that had too many items has room again below this, as one with too many bytes has.
pub const RING_ITEMS_LOW: usize = RING_ITEMS_MAX / 4 * 3;
/// Control frames (START, FIN, GAP, ACK and others) that wait for one client. They are never dropped,
/// so a client that lets so many pile up is cut off.
pub const CONTROL_BYTES_MAX: usize = 4 << 20;

/// What all producers together may have under way. Enough for a millisecond's round trip at 8 GB/s,
/// small enough to stay in a processor's cache between the read and the last write.
pub const WINDOW_BYTES: u64 = 8 << 20;
/// The largest share of one producer.
pub const WINDOW_BYTES_MAX: u64 = 4 << 20;
/// The smallest share: with less, a producer would wait for credit after each few messages.
pub const WINDOW_BYTES_MIN: u64 = 64 << 10;
/// Beyond its credit a producer may have sent its last message: one that begins within the credit is
/// taken whole, or else a message larger than the window could never be sent.
pub const OVERDRAFT_BYTES: u64 = (quelea_elastic_proto::limits::MESSAGE_BYTES_MAX
    + quelea_elastic_proto::limits::DATA_HEADER_BYTES) as u64;

/// Time between two looks at which listeners lag behind the others.
pub const LAG_CHECK_MS: u64 = 20;

/// That messages are dropped for a listener is logged at most once in this time, for each listener.
pub const SLOW_NOTICE_MS: u64 = 60_000;
/// Listeners of which a relay remembers in that time that they were logged, so that one that connects again is not
/// logged again. Beyond it the oldest are forgotten: each takes some 100 bytes.
pub const SLOW_NOTICES_MAX: usize = 16_384;

/// Bytes that are given to that store at once, at least if there are so many.
pub const SPILL_WRITE_BYTES: usize = 1 << 20;
/// Bytes that are taken back from it at once: a ring is refilled when it is half empty.
pub const SPILL_READ_BYTES: u64 = 1 << 20;
/// Runs of one listener in the store whose producers wait for their acknowledgement: each takes some
/// 40 bytes of memory. At the level Relayed there are none.
pub const SPILL_HELD_MAX: usize = 262_144;

/// Runs that were written to one listener and that it has not said it received: each takes some 40
/// bytes, and as much in its producer's ledger. A listener that never says it is cut off.
pub const AWAITING_MAX: usize = 262_144;
/// Listeners that may miss what is acknowledged, which a relay remembers to report to producers that come. Beyond
/// it, those that only a producer has vouched for are forgotten first, then the oldest.
pub const MISSED_LISTENERS_MAX: usize = quelea_elastic_proto::limits::MISSED_MAX;
/// A listener for whom a message has waited for so long in its ring lags, however little waits: producers
/// do not wait for it at the level Relayed. Half the time between two PINGs, when it is looked for.
pub const RING_MS_MAX: u64 = HEARTBEAT_MS as u64 / 2;
/// A listener that has not said it received anything for so long, while something waits for that, is
/// left behind: producers do not wait for it until it says so again. Longer than a program takes for a
/// few messages.
pub const RECEIVED_MS_MAX: u64 = 10_000;
/// The same for one with the policy Disconnect, which is disconnected: above the time for which a
/// listener may hold messages until a producer's former relay has sent all.
pub const RECEIVED_DISCONNECT_MS_MAX: u64 =
    quelea_elastic_proto::limits::HOLD_DELIVERED_MS_MAX + 10_000;

/// Milliseconds after which a silent peer is asked for a sign of life; three times that end it.
pub const HEARTBEAT_MS: u32 = 5_000;
/// Whoever connects has this long for HELLO.
pub const HANDSHAKE_MS: u64 = 10_000;
/// How long a connection that we close may take to read what is left for it.
pub const LINGER_MS: u64 = 5_000;

/// Connections of one relay where its command line says nothing else.
pub const CONNECTIONS_DEFAULT: usize = 65_536;
/// Producers on one connection: a client has one for each queue and program part, and a new one for
/// each epoch that it begins here.
pub const SLOTS_PER_CLIENT_MAX: usize = 1_024;
/// Producers whose epochs below a bound are remembered as refused. The oldest are forgotten first; a
/// zombie older than that many failovers has long lost its connection.
pub const FENCED_PRODUCERS_MAX: usize = 65_536;
