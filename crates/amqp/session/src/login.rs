//! A login that the shell verifies, and its verdict.

use bytes::Bytes;
use quelea_amqp_codec::Mechanism;

/// What the shell is to verify: see [`Session::poll_auth`](crate::Session::poll_auth).
#[derive(Clone)]
pub struct AuthRequest {
    /// The user name.
    pub user: String,
    /// With which password.
    pub password: Bytes,
    /// How it was sent.
    pub mechanism: Mechanism,
    /// The user may come from this machine only, and does not: whatever the password is, it is refused as late as a wrong
    /// one, and counted with those.
    pub is_elsewhere: bool,
}

impl std::fmt::Debug for AuthRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AuthRequest")
            .field("user", &self.user)
            .field("mechanism", &self.mechanism)
            .finish_non_exhaustive()
    }
}

/// What the shell found: see [`Session::authenticated`](crate::Session::authenticated).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthOutcome {
    /// The password is the user's.
    Accepted,
    /// No such user, or another password. The client does not learn which.
    Refused,
}
