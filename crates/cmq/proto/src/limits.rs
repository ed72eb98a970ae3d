//! Every limit of CMQ, each with its reason.

/// The most that UDP over IPv4 carries in one datagram: 65,535 less the IP and UDP headers.
pub const DATAGRAM_BYTES_MAX: usize = 65_507;

/// A datagram below this carries nothing: IPv6's smallest MTU (1,280) less headers is the least that
/// a path must carry, and whoever sets less has made a mistake.
pub const SEGMENT_BYTES_MIN: usize = 128;

/// A larger segment saves next to nothing, and its loss costs more (research/cmq.md, section 3.1).
pub const SEGMENT_BYTES_MAX_DEFAULT: usize = 8_972;

/// Datagrams that one call may hand to the kernel: Linux's UDP_MAX_SEGMENTS was 64 before 6.9.
pub const TRAIN_SEGMENTS_MAX: usize = 64;

/// Messages above this are refused unless the configuration says otherwise: they are reassembled in
/// the receiver's memory.
pub const MESSAGE_BYTES_MAX_DEFAULT: usize = 1 << 20;

/// No configuration goes beyond: a message is counted in 32 bits and lives in memory whole.
pub const MESSAGE_BYTES_MAX: usize = 64 << 20;

/// Destinations of one endpoint; the flow's number has room for more, memory for these.
pub const DESTINATIONS_MAX: usize = 1 << 20;

/// Peers' flows that are remembered; the one that was silent longest makes room.
pub const FLOWS_MAX_DEFAULT: usize = 65_536;

/// Flows of one address (of IPv6, one network of 64 bits) that are remembered: a sixteenth of all, so that no
/// host that proves itself as often as it likes pushes out the others.
pub const FLOWS_PER_ADDRESS_MAX_DEFAULT: usize = 4_096;

/// Flows of peers whose address was not proven: a forger can fill these and no others.
pub const FLOWS_UNPROVEN_MAX: usize = 1_024;

/// Flows to multicast groups whose keys are kept: a group has few senders. They make room for one
/// another only, so that what was recorded of groups pushes out no peer.
pub const GROUP_FLOWS_MAX: usize = 1_024;

/// Mailboxes that an application opens at one endpoint.
pub const MAILBOXES_MAX: usize = 65_536;

/// Bytes delivered to a mailbox and not yet popped; credit ends before, and what comes anyway is
/// dropped and counted.
pub const MAILBOX_BYTES_MAX_DEFAULT: usize = 64 << 20;

/// Bytes that wait in the batches of all destinations together, or to be acknowledged.
pub const OUTBOX_BYTES_MAX_DEFAULT: usize = 64 << 20;

/// Bytes of full batches that wait for one destination: enough that the next leaves when credit comes,
/// and no slow receiver takes the room of all others.
pub const WAITING_BYTES_MAX: usize = 256 << 10;

/// An outbox must hold some trains, or it could not even fill one while another is sent.
pub const OUTBOX_BYTES_MIN: usize = 512 << 10;

/// Datagrams of one flow that may be missing while later ones arrived.
pub const WINDOW_DATAGRAMS_MAX: usize = 8_192;

/// Bytes that wait for what is missing before them, over all flows.
pub const REASSEMBLY_BYTES_MAX_DEFAULT: usize = 64 << 20;

/// Ranges that one STATUS reports as received above the first gap.
pub const STATUS_RANGES_MAX: usize = 32;

/// Data datagrams of one repair group: larger ones come too late to help.
pub const REPAIR_DATA_MAX: u8 = 64;

/// Parity datagrams of one repair group.
pub const REPAIR_PARITY_MAX: u8 = 16;

/// Events that wait for the application; beyond, they are only counted.
pub const EVENTS_MAX: usize = 1_024;

/// Those of senders that have proven nothing: a forger can fill these and no others.
pub const EVENTS_UNPROVEN_MAX: usize = EVENTS_MAX / 8;

/// Places of peers that one question for them looks at: some tens of microseconds, for which nothing
/// else is done.
pub const PEERS_PAGE: u32 = 1_024;

/// DATA of a flow with repair that its receiver keeps before the group that parity came of: two of the
/// largest groups, since parity may come in another order.
pub const REPAIR_KEPT_MAX: usize = 128;

/// Groups of a flow whose parities wait for more of the group to come.
pub const REPAIR_GROUPS_MAX: usize = 8;

/// Bytes of a message that has parity. That comes behind the last fragment, and until then the
/// receiver keeps all of them.
pub const REPAIR_MESSAGE_BYTES_MAX: usize = MESSAGE_BYTES_MAX_DEFAULT;

/// Bytes that a flow's receiver holds for repair: a message of that size in the smallest datagrams
/// that carry it.
pub const REPAIR_HELD_BYTES_MAX: usize = 2 * REPAIR_MESSAGE_BYTES_MAX;
