//! What arrived, and every cause for which something was dropped.

/// Counters of the receiving side. Each datagram that an inbox is given counts in `datagrams`, and
/// then either its messages in `messages` or itself in one cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Datagrams of data that came to the inbox.
    pub datagrams: u64,
    /// Their bytes, headers too.
    pub bytes: u64,
    /// Messages delivered to mailboxes.
    pub messages: u64,
    /// Bytes of what was delivered, as it stood in the datagrams.
    pub message_bytes: u64,
    /// Datagrams that had come before.
    pub duplicates: u64,
    /// Datagrams that came after what followed them (and were delivered all the same).
    pub reordered: u64,
    /// Datagrams that came when they were counted as lost, or after newer ones where only the latest
    /// counts.
    pub late: u64,
    /// Datagrams too far ahead of what is missing before them.
    pub beyond_window: u64,
    /// Datagrams that contradict their flow: another mode or mailbox, messages numbered wrongly.
    pub inconsistent: u64,
    /// Datagrams of a session that has ended: its peer was started anew.
    pub old_session: u64,
    /// Datagrams for mailboxes that are not open.
    pub unknown_mailbox: u64,
    /// Datagrams for which their mailbox had no room.
    pub mailbox_full: u64,
    /// Messages in them that will not come again.
    pub mailbox_full_messages: u64,
    /// Datagrams for which there was no memory to let them wait, or fragments of too long a message.
    pub reassembly_full: u64,
    /// Messages of which only a part came in time.
    pub incomplete_messages: u64,
    /// Datagrams that never came.
    pub lost_datagrams: u64,
    /// Messages that never came, of lossy flows or given up by their senders.
    pub lost_messages: u64,
    /// Datagrams that never came, by the numbers of senders that had proven nothing: a forger may have made them
    /// up. Those of senders that proved themselves later are in `lost_datagrams` too.
    pub unproven_lost_datagrams: u64,
    /// Messages, in the same way.
    pub unproven_lost_messages: u64,
    /// Datagrams brought back by parity.
    pub repaired: u64,
    /// Parity that came for nothing.
    pub parity_unused: u64,
    /// PROBEs taken.
    pub probes: u64,
    /// PROBEs and HELLOs that were older than one taken before, or proved nothing.
    pub replayed: u64,
    /// STATUSes given.
    pub statuses: u64,
    /// CHALLENGEs given.
    pub challenges: u64,
    /// REFUSALs given.
    pub refusals: u64,
    /// Answers withheld: more were asked for than may be given.
    pub withheld: u64,
    /// Flows that proved their address.
    pub proven: u64,
    /// Proven flows forgotten to make room, the one silent longest first: of all, or of an address that has as many
    /// as it may.
    pub evicted: u64,
    /// Flows of unproven addresses forgotten to make room.
    pub evicted_unproven: u64,
    /// Peers that were started anew.
    pub restarts: u64,
    /// Events that nobody asked for in time.
    pub events_dropped: u64,
}
