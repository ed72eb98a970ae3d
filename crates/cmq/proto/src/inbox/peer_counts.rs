//! What was counted of one sender.

use core::ops::AddAssign;

/// What was counted of one sender to one mailbox, its earlier sessions included for as long as they
/// were known here when it was started anew.
///
/// These are eighty bytes of each flow, and change once a datagram. What they count, the counters of
/// the endpoint ([`Received`](crate::inbox::Received)) count too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerCounts {
    /// Datagrams of data that came, whatever became of them.
    pub datagrams: u64,
    /// Messages delivered to the mailbox.
    pub messages: u64,
    /// Datagrams that never came.
    pub lost_datagrams: u64,
    /// Messages that never came, of lossy flows or given up by their sender.
    pub lost_messages: u64,
    /// Messages that came when the mailbox had no room, and will not come again.
    pub mailbox_full_messages: u64,
    /// Datagrams that had come before; with a key also those that were dropped as replays.
    pub duplicates: u64,
    /// Datagrams that came after what followed them (and were delivered all the same). Where losses
    /// are repeated, repetitions are among them.
    pub reordered: u64,
    /// Datagrams that came when they were counted as lost, or after newer ones where only the latest
    /// counts.
    pub late: u64,
    /// Datagrams brought back by parity.
    pub repaired: u64,
    /// How often it was started anew.
    pub restarts: u64,
}

impl AddAssign for PeerCounts {
    fn add_assign(&mut self, other: Self) {
        self.datagrams += other.datagrams;
        self.messages += other.messages;
        self.lost_datagrams += other.lost_datagrams;
        // A forger may say that any number was sent.
        self.lost_messages = self.lost_messages.saturating_add(other.lost_messages);
        self.mailbox_full_messages += other.mailbox_full_messages;
        self.duplicates += other.duplicates;
        self.reordered += other.reordered;
        self.late += other.late;
        self.repaired += other.repaired;
        self.restarts += other.restarts;
    }
}
