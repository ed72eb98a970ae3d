//! Who is meant: clients, relays, and the numbers that put their messages in order.

/// A relay, for ever: a directory never gives out the same number twice for a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelayId(pub u64);

/// A producer or a listener: chosen at random by the client when it starts, kept while it lives,
/// whatever relays and directories it is connected to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u128);

/// The term of a queue's control: the revision of the lease under which a directory owns the queue.
/// Whoever has seen a higher fence refuses commands with a lower one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence(pub u64);

/// A producer's attachment to one relay. Grows with each move. The upper 32 bits are the fence's lower 32
/// bits, so that a new owner's epochs are above all of its predecessor's; the lower ones count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

impl Epoch {
    /// Returns the first epoch that may be given out under `fence`.
    #[must_use]
    pub const fn first_of(fence: Fence) -> Self {
        Self(fence.0 << 32 | 1)
    }

    /// Returns the next epoch under `fence`: above this and above all of earlier fences.
    #[must_use]
    pub const fn next_under(self, fence: Fence) -> Self {
        let first = Self::first_of(fence);
        if first.0 > self.0 { first } else { Self(self.0.saturating_add(1)) }
    }
}

/// A message's number: counts a producer's messages from 0, through all epochs. A repetition keeps its
/// number, so a listener drops what it has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageSeq(pub u64);

/// A producer's number at one relay, in the header of its messages: chosen by the relay at ATTACH and
/// announced to listeners by START. Never used again while the relay lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u32);
