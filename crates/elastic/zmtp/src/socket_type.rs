//! The sockets that speak here.

use core::fmt;

/// The kinds of sockets of the publish-subscribe pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SocketType {
    /// Publishes.
    Pub,
    /// Subscribes.
    Sub,
    /// Publishes, and sees the subscriptions.
    Xpub,
    /// Subscribes by subscription messages.
    Xsub,
}

impl SocketType {
    /// Returns its name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pub => "PUB",
            Self::Sub => "SUB",
            Self::Xpub => "XPUB",
            Self::Xsub => "XSUB",
        }
    }

    /// Returns whether it sends messages and gets subscriptions.
    #[must_use]
    pub const fn publishes(self) -> bool {
        matches!(self, Self::Pub | Self::Xpub)
    }

    pub(crate) fn parse(name: &[u8]) -> Option<Self> {
        [Self::Pub, Self::Sub, Self::Xpub, Self::Xsub]
            .into_iter()
            .find(|known| known.name().as_bytes() == name)
    }
}

impl fmt::Display for SocketType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
