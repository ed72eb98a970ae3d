//! What can be wrong with a datagram.

/// Why a datagram was dropped before anything of it was used. Each cause has a counter; the numbers
/// are places in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[repr(u8)]
pub enum Malformed {
    /// It ends within its header.
    #[error("shorter than a header")]
    Short = 0,
    /// It does not begin as ours do.
    #[error("not a datagram of CMQ")]
    Magic = 1,
    /// It is of a version that is not spoken here.
    #[error("another version")]
    Version = 2,
    /// Its kind has no meaning in this version.
    #[error("an unknown kind")]
    Kind = 3,
    /// It has a flag or a mode without meaning, or one that its kind does not have.
    #[error("unknown flags")]
    Flags = 4,
    /// A number is no varint of its width.
    #[error("a number that is none")]
    Varint = 5,
    /// Its messages run past its end.
    #[error("messages run past the end")]
    Messages = 6,
    /// It is a fragment that cannot be one.
    #[error("an impossible fragment")]
    Fragment = 7,
    /// It is a STATUS that contradicts itself or is cut off.
    #[error("an impossible STATUS")]
    Status = 8,
    /// It is a PROBE that contradicts itself or is cut off.
    #[error("an impossible PROBE")]
    Probe = 9,
    /// It is a PARITY of an impossible group, or cut off.
    #[error("an impossible PARITY")]
    Parity = 10,
    /// It is a HELLO, CHALLENGE or REFUSAL that is cut off or says nothing known.
    #[error("an impossible handshake")]
    Handshake = 11,
    /// It is one of the original library's, and does not decode as what this queue takes.
    #[error("not the original's format")]
    Classic = 12,
}

impl Malformed {
    /// All of them in the order of their numbers, each with the name of its counter.
    pub const COUNTERS: [(Self, &'static str); 13] = [
        (Self::Short, "malformed_short"),
        (Self::Magic, "malformed_magic"),
        (Self::Version, "malformed_version"),
        (Self::Kind, "malformed_kind"),
        (Self::Flags, "malformed_flags"),
        (Self::Varint, "malformed_varint"),
        (Self::Messages, "malformed_messages"),
        (Self::Fragment, "malformed_fragment"),
        (Self::Status, "malformed_status"),
        (Self::Probe, "malformed_probe"),
        (Self::Parity, "malformed_parity"),
        (Self::Handshake, "malformed_handshake"),
        (Self::Classic, "malformed_classic"),
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_stand_at_their_numbers() {
        for (at, (cause, name)) in Malformed::COUNTERS.into_iter().enumerate() {
            assert_eq!(cause as usize, at, "{name}");
            assert_eq!(name, format!("malformed_{cause:?}").to_lowercase());
        }
    }
}
