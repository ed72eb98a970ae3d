//! Who may connect, as data: what a ZAP handler (rfc.zeromq.org/spec/27) would be asked.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::curve::{Entropy, PublicKey, SecretKey};
use crate::limits::CREDENTIAL_BYTES_MAX;

/// A connection's mechanism, its side, and what it needs to know.
#[derive(Clone, Debug)]
pub enum Security {
    /// None: everybody may connect, everything is readable.
    Null,
    /// Names and passwords are checked, readable on the wire.
    PlainServer(Arc<Users>),
    /// Says this name and password.
    PlainClient {
        /// The user's name.
        user: String,
        /// The password.
        password: String,
    },
    /// Encrypted; clients are known by their keys.
    CurveServer {
        /// The server's long-term key.
        secret: SecretKey,
        /// Who may connect.
        clients: Arc<AllowedKeys>,
        /// Randomness for this connection only.
        entropy: Entropy,
    },
    /// Encrypted; the server is who has this key.
    CurveClient {
        /// The client's long-term key.
        secret: SecretKey,
        /// The server's public key.
        server: PublicKey,
        /// Randomness for this connection only.
        entropy: Entropy,
    },
}

impl Security {
    /// Returns the mechanism's name in the greeting.
    #[must_use]
    pub const fn mechanism(&self) -> &'static str {
        match self {
            Self::Null => "NULL",
            Self::PlainServer(_) | Self::PlainClient { .. } => "PLAIN",
            Self::CurveServer { .. } | Self::CurveClient { .. } => "CURVE",
        }
    }

    pub(crate) const fn is_server(&self) -> bool {
        matches!(self, Self::PlainServer(_) | Self::CurveServer { .. })
    }
}

/// PLAIN's users with their passwords.
#[derive(Clone, Default)]
pub struct Users {
    passwords: BTreeMap<String, String>,
}

impl Users {
    /// Adds a user; false if name or password are longer than the wire's 255 bytes.
    #[must_use]
    pub fn insert(&mut self, user: &str, password: &str) -> bool {
        let fits = user.len() <= CREDENTIAL_BYTES_MAX && password.len() <= CREDENTIAL_BYTES_MAX;
        if fits {
            self.passwords.insert(user.to_owned(), password.to_owned());
        }
        fits
    }

    /// Returns whether the user has this password. Takes as long for a wrong one as for the right
    /// one of the same length.
    pub(crate) fn allows(&self, user: &[u8], password: &[u8]) -> bool {
        let user = core::str::from_utf8(user).ok();
        let right = user.and_then(|user| self.passwords.get(user)).map(String::as_bytes);
        right.is_some_and(|right| {
            let differences = right.iter().zip(password).fold(0, |sum, (a, b)| sum | (a ^ b));
            right.len() == password.len() && differences == 0
        })
    }
}

impl core::fmt::Debug for Users {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Users({})", self.passwords.len())
    }
}

/// Whose CURVE keys are let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllowedKeys {
    /// Whoever knows the server's public key.
    All,
    /// These clients.
    Only(BTreeSet<PublicKey>),
}

impl AllowedKeys {
    pub(crate) fn allows(&self, key: &PublicKey) -> bool {
        match self {
            Self::All => true,
            Self::Only(keys) => keys.contains(key),
        }
    }
}
