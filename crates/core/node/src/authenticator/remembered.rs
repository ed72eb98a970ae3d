//! Verdicts of the last minute.

use std::io;
use std::time::{Duration, Instant};

use argon2::{Algorithm, Argon2, Params, Version};
use rustc_hash::FxHashMap;

use super::Credentials;

pub(super) const REMEMBERED_FOR: Duration = Duration::from_secs(60);

/// Credentials that are remembered, of the good ones and of the wrong ones; at the limit those are all forgotten,
/// which costs one hash each.
pub(super) const REMEMBERED_MAX: usize = 4_096;

/// Keyed hashes of credentials. The user's password hash is part of what is hashed, so a changed password or a
/// user made anew is forgotten by itself; neither passwords nor anything that could be compared across
/// processes is kept. Wrong ones are remembered too: a client that goes on with an old password costs one hash.
pub(super) struct Remembered {
    secret: [u8; 32],
    good: Verdicts,
    wrong: Verdicts,
}

type Verdicts = FxHashMap<[u8; 32], Instant>;

impl Remembered {
    pub(super) fn new() -> io::Result<Self> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(io::Error::other)?;
        Ok(Self { secret, good: Verdicts::default(), wrong: Verdicts::default() })
    }

    /// Returns whether these credentials are good, if they were verified lately.
    pub(super) fn verdict(&self, credentials: &Credentials, now: Instant) -> Option<bool> {
        let key = self.key(credentials)?;
        let holds = |verdicts: &Verdicts| verdicts.get(&key).is_some_and(|until| *until > now);
        if holds(&self.good) {
            return Some(true);
        }
        holds(&self.wrong).then_some(false)
    }

    pub(super) fn insert(&mut self, credentials: &Credentials, is_good: bool, now: Instant) {
        let Some(key) = self.key(credentials) else { return };
        // A flood of wrong ones pushes out no good ones.
        let verdicts = if is_good { &mut self.good } else { &mut self.wrong };
        if verdicts.len() >= REMEMBERED_MAX {
            verdicts.retain(|_, until| *until > now);
        }
        if verdicts.len() >= REMEMBERED_MAX {
            verdicts.clear();
        }
        verdicts.insert(key, now + REMEMBERED_FOR);
    }

    /// Returns the key of these credentials. Argon2 with its smallest cost (8 KiB, one pass) and a
    /// secret per process is a keyed hash.
    fn key(&self, credentials: &Credentials) -> Option<[u8; 32]> {
        // No hash that a user has is empty.
        let hash = credentials.hash.as_deref().unwrap_or_default();
        let params = Params::new(Params::MIN_M_COST, 1, 1, None).ok()?;
        let keyed =
            Argon2::new_with_secret(&self.secret, Algorithm::Argon2id, Version::V0x13, params)
                .ok()?;
        let mut input = Vec::with_capacity(
            24 + credentials.user.len() + credentials.password.len() + hash.len(),
        );
        for part in [credentials.user.as_bytes(), &credentials.password, hash.as_bytes()] {
            input.extend_from_slice(&(part.len() as u64).to_be_bytes());
            input.extend_from_slice(part);
        }
        let mut key = [0; 32];
        keyed.hash_password_into(&input, &self.secret, &mut key).ok()?;
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn credentials(user: &str) -> Credentials {
        Credentials {
            user: user.to_owned(),
            password: Bytes::from_static(b"secret"),
            hash: Some("x".into()),
        }
    }

    #[test]
    fn memory_of_credentials_ends_after_a_minute_and_is_bounded() {
        let mut remembered = Remembered::new().unwrap();
        let now = Instant::now();
        let (ada, bob) = (credentials("ada"), credentials("bob"));
        remembered.insert(&ada, true, now);
        remembered.insert(&bob, false, now);
        let half = now + REMEMBERED_FOR / 2;
        assert_eq!(remembered.verdict(&ada, half), Some(true));
        assert_eq!(remembered.verdict(&bob, half), Some(false));
        assert_eq!(remembered.verdict(&ada, now + REMEMBERED_FOR), None);
        assert_eq!(remembered.verdict(&bob, now + REMEMBERED_FOR), None);
        for n in 0..=REMEMBERED_MAX {
            remembered.insert(&credentials(&n.to_string()), false, now);
        }
        assert!(remembered.wrong.len() <= REMEMBERED_MAX);
        assert_eq!(remembered.verdict(&ada, now), Some(true), "wrong ones have pushed it out");
    }
}
