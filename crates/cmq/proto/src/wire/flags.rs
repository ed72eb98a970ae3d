//! The bits of a header's flags.

use crate::mode::Mode;

/// The three bits of the mode.
pub const MODE_MASK: u8 = 0b111;
/// The body is one fragment of a message. DATA only.
pub const FRAGMENT: u8 = 1 << 3;
/// The body is encrypted and ends in a tag; in HELLO and CHALLENGE it ends in a tag of the handshake.
pub const SEALED: u8 = 1 << 4;
/// The sender keeps within the receiver's credit, so the receiver gives it.
pub const CREDIT: u8 = 1 << 5;
/// The sender wants a STATUS at once. DATA only.
pub const STATUS_WANTED: u8 = 1 << 6;
/// The flow is closed: nothing follows the PROBE's `next`. PROBE only.
pub const END: u8 = 1 << 7;
/// A PARITY of the datagram's group follows, so the receiver keeps it to recover others with. DATA only.
pub const REPAIR: u8 = 1 << 7;

/// A flow's mode, as its datagrams say it. The time that [`Mode::ReliableUntil`] allows is the
/// sender's matter: its PROBEs say what was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FlowMode {
    /// See [`Mode::Lossy`].
    Lossy = 0,
    /// See [`Mode::LatestOnly`].
    LatestOnly = 1,
    /// See [`Mode::ReliableUnordered`].
    ReliableUnordered = 2,
    /// See [`Mode::ReliableOrdered`].
    ReliableOrdered = 3,
    /// See [`Mode::ReliableUntil`].
    ReliableUntil = 4,
}

impl FlowMode {
    /// Returns the mode in a header's flags; none if the number has no meaning.
    #[must_use]
    pub const fn of_flags(flags: u8) -> Option<Self> {
        Some(match flags & MODE_MASK {
            0 => Self::Lossy,
            1 => Self::LatestOnly,
            2 => Self::ReliableUnordered,
            3 => Self::ReliableOrdered,
            4 => Self::ReliableUntil,
            _ => return None,
        })
    }

    /// Returns whether what is lost is sent again.
    #[must_use]
    pub const fn is_reliable(self) -> bool {
        matches!(self, Self::ReliableUnordered | Self::ReliableOrdered | Self::ReliableUntil)
    }

    /// Returns whether messages wait for those before them.
    #[must_use]
    pub const fn is_ordered(self) -> bool {
        matches!(self, Self::ReliableOrdered | Self::ReliableUntil)
    }
}

impl From<Mode> for FlowMode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Lossy => Self::Lossy,
            Mode::LatestOnly => Self::LatestOnly,
            Mode::ReliableUnordered => Self::ReliableUnordered,
            Mode::ReliableOrdered => Self::ReliableOrdered,
            Mode::ReliableUntil(_) => Self::ReliableUntil,
        }
    }
}
