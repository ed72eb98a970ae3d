//! How much a destination asks for.

use std::time::Duration;

use crate::charge::charge;
use crate::limits;

/// What the sender and the receiver do for the messages of one destination. The sender chooses; every
/// datagram says it, so the receiver needs no configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// As UDP: delivered as it arrives, duplicates dropped, never repeated. Losses are counted.
    #[default]
    Lossy,
    /// Only what is newer than everything delivered before; never repeated.
    LatestOnly,
    /// Each message once, as it arrives.
    ReliableUnordered,
    /// Each message once, in the order in which it was pushed.
    ReliableOrdered,
    /// As [`Mode::ReliableOrdered`] until a message is older than this; then it is given up, counted
    /// as lost, and the ones behind it go on.
    ReliableUntil(Duration),
}

impl Mode {
    /// Returns whether what is lost is sent again.
    #[must_use]
    pub const fn is_reliable(self) -> bool {
        matches!(self, Self::ReliableUnordered | Self::ReliableOrdered | Self::ReliableUntil(_))
    }

    /// Returns whether messages wait for those before them.
    #[must_use]
    pub const fn is_ordered(self) -> bool {
        matches!(self, Self::ReliableOrdered | Self::ReliableUntil(_))
    }
}

/// Parity sent along, so that a loss is recovered without waiting for a repetition. That of a message
/// in fragments comes behind the last of them; one of more than
/// [`crate::limits::REPAIR_MESSAGE_BYTES_MAX`] has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Repair {
    /// None.
    #[default]
    None,
    /// One XOR datagram for every `data` datagrams: recovers one loss among them.
    Xor {
        /// Datagrams in a group, 1 to [`crate::limits::REPAIR_DATA_MAX`].
        data: u8,
    },
    /// Reed–Solomon: `parity` datagrams for every `data`: recovers as many losses among them.
    ReedSolomon {
        /// Datagrams in a group, 1 to [`crate::limits::REPAIR_DATA_MAX`].
        data: u8,
        /// Parity datagrams of a group, 1 to [`crate::limits::REPAIR_PARITY_MAX`].
        parity: u8,
    },
}

impl Repair {
    /// Returns whether the group's sizes are within their limits.
    pub(crate) fn is_valid(self) -> bool {
        let (data, parity) = match self {
            Self::None => return true,
            Self::Xor { data } => (data, 1),
            Self::ReedSolomon { data, parity } => (data, parity),
        };
        (1..=limits::REPAIR_DATA_MAX).contains(&data)
            && (1..=limits::REPAIR_PARITY_MAX).contains(&parity)
    }

    /// Returns what a datagram takes of the receiver's credit, with its part of its group's parity.
    pub(crate) fn charge(self, bytes: usize) -> u64 {
        let charge = u64::from(charge(bytes));
        match self {
            Self::None => charge,
            Self::Xor { data } => charge + charge / u64::from(data.max(1)),
            Self::ReedSolomon { data, parity } => {
                charge + charge * u64::from(parity) / u64::from(data.max(1))
            }
        }
    }
}
