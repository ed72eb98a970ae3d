//! Password hashes: argon2id in PHC strings, with a cost that suits a broker's memory.

use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use argon2::{Algorithm, Argon2, Params, Version};

use crate::rabbitmq_password;

/// Memory of one hash in KiB. OWASP's sheet gives 7 MiB with 5 passes as equal to its first choice
/// of 19 MiB with 2; the smaller one keeps an idle broker small after a login.
const MEMORY_KIB: u32 = 7 * 1024;
const PASSES: u32 = 5;
const LANES: u32 = 1;

/// A stored hash that asks for more than this is refused instead of computed: it bounds what a
/// forged hash can cost.
const MEMORY_KIB_MAX: u32 = 256 * 1024;
const PASSES_MAX: u32 = 32;

/// A hash nobody can match (its output is not a hash of anything known), with the current cost. It
/// is verified for users that do not exist, so that the answer takes as long as for one that does.
const NOBODY: &str = "$argon2id$v=19$m=7168,t=5,p=1$cXVlbGVhLW5vYm9keS0wMQ$\
                      AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// Why a password could not be hashed: the system's random source or memory failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot hash the password: {reason}")]
pub struct HashError {
    /// What the hash function said.
    pub reason: String,
}

/// Hashes a password with a fresh salt. Takes tens of milliseconds and 7 MiB: never call it on the
/// core thread. An empty password has an empty hash, by which nobody signs in.
///
/// # Errors
/// [`HashError`] if the system gives no random bytes.
pub fn hash_password(password: &[u8]) -> Result<String, HashError> {
    if password.is_empty() {
        return Ok(String::new());
    }
    let hash: PasswordHash = argon2()
        .hash_password(password)
        .map_err(|error| HashError { reason: error.to_string() })?;
    Ok(hash.to_string())
}

/// Returns whether `password` belongs to the PHC string `hash`; `None` is a user that does not
/// exist, takes as long, and is never verified. Nor is an empty password, whatever is stored, or
/// any by an empty hash, as in RabbitMQ. Not for the core thread either.
#[must_use]
pub fn verify_password(password: &[u8], hash: Option<&str>) -> bool {
    let hash = hash.filter(|hash| !password.is_empty() && !hash.is_empty());
    if let Some(is_good) = hash.and_then(|hash| rabbitmq_password::verify(password, hash)) {
        // It takes as long as for everybody else.
        return !verify_password(password, None) && is_good;
    }
    let Ok(parsed) = PasswordHash::new(hash.unwrap_or(NOBODY)) else { return false };
    let Ok(params) = Params::try_from(&parsed) else { return false };
    if params.m_cost() > MEMORY_KIB_MAX || params.t_cost() > PASSES_MAX {
        return false;
    }
    argon2().verify_password(password, &parsed).is_ok() && hash.is_some()
}

fn argon2() -> Argon2<'static> {
    let params = Params::new(MEMORY_KIB, PASSES, LANES, None)
        .expect("constant parameters lie within argon2's limits");
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_right_password_matches_its_hash() {
        let hash = hash_password(b"secret").unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=7168,t=5,p=1$"), "{hash}");
        assert!(verify_password(b"secret", Some(&hash)));
        assert!(!verify_password(b"Secret", Some(&hash)));
        assert!(!verify_password(b"", Some(&hash)));
    }

    #[test]
    fn an_empty_password_signs_nobody_in_whatever_is_stored() {
        assert_eq!(hash_password(b"").unwrap(), "");
        // As earlier versions stored it.
        let stored: PasswordHash = argon2().hash_password(b"").unwrap();
        // RabbitMQ's, of the salt alone.
        let rabbitmqs = "$rabbitmq-sha256$AQIDBJ9kp0fhuX8TH6u2tEcpbJtvAgHnn7PFNW5sd+ibaoBq";
        assert_eq!(rabbitmq_password::verify(b"", rabbitmqs), Some(true));
        for hash in [Some(&*stored.to_string()), Some(rabbitmqs), Some(""), None] {
            assert!(!verify_password(b"", hash), "{hash:?}");
        }
        assert!(!verify_password(b"secret", Some("")));
    }

    #[test]
    fn the_hash_for_unknown_users_is_well_formed_and_matches_nothing() {
        assert!(PasswordHash::new(NOBODY).unwrap().hash.is_some());
        assert!(!verify_password(b"guest", None));
    }

    #[test]
    fn a_hash_that_asks_for_too_much_is_refused() {
        let hash = hash_password(b"secret").unwrap();
        assert!(!verify_password(b"secret", Some(&hash.replace("m=7168", "m=4000000"))));
        assert!(!verify_password(b"secret", Some(&hash.replace("t=5", "t=1000000"))));
        assert!(!verify_password(b"secret", Some("not a hash")));
    }
}
