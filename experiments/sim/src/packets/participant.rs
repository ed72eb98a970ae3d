//! Who takes part in a run, and how a fault names them.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

/// A machine or a service of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Participant {
    /// The directory of this number.
    Directory(u32),
    /// The relay process that was started as the n-th, from 0 on.
    Relay(u32),
    /// The producer of this number, whichever incarnation it lives.
    Producer(u32),
    /// The listener of this number, whichever incarnation it lives.
    Listener(u32),
    /// Where the directories keep what they agree on.
    Store,
    /// Who starts relays.
    Provider,
    /// Who stores messages at the level `stored`.
    Keeper,
}

impl Display for Participant {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(number) => write!(f, "d{number}"),
            Self::Relay(number) => write!(f, "r{number}"),
            Self::Producer(number) => write!(f, "p{number}"),
            Self::Listener(number) => write!(f, "l{number}"),
            Self::Store => f.write_str("store"),
            Self::Provider => f.write_str("provider"),
            Self::Keeper => f.write_str("keeper"),
        }
    }
}

impl FromStr for Participant {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "store" => return Ok(Self::Store),
            "provider" => return Ok(Self::Provider),
            "keeper" => return Ok(Self::Keeper),
            _ => {}
        }
        let unknown =
            || format!("{text:?} is no participant: d0, r0, p0, l0, store, provider, keeper");
        let mut letters = text.chars();
        let kind = letters.next().ok_or_else(unknown)?;
        let number = letters.as_str().parse().map_err(|_| unknown())?;
        match kind {
            'd' => Ok(Self::Directory(number)),
            'r' => Ok(Self::Relay(number)),
            'p' => Ok(Self::Producer(number)),
            'l' => Ok(Self::Listener(number)),
            _ => Err(unknown()),
        }
    }
}
