//! Password hashes that RabbitMQ made. They come with its definitions and are verified as they are, until their users sign
//! in: then the password is known, and gets a better hash.
//!
//! RabbitMQ hashes a salt of four bytes and the password once, and shows salt and hash together as base64
//! (its documentation, "Credentials and Passwords").

use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256, Sha512};

const SALT_BYTES: usize = 4;

/// RabbitMQ's name of an algorithm, what a stored hash begins with, and the bytes of a hash.
const ALGORITHMS: [(&str, &str, usize); 2] = [
    ("rabbit_password_hashing_sha256", "$rabbitmq-sha256$", 32),
    ("rabbit_password_hashing_sha512", "$rabbitmq-sha512$", 64),
];

/// RabbitMQ's algorithm where none is named.
pub const RABBITMQ_DEFAULT_ALGORITHM: &str = ALGORITHMS[0].0;

/// Why a text is not a hash of RabbitMQ's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoRabbitmqHash {
    /// The algorithm is not one of those that are verified.
    #[error("hashing_algorithm {0:?} is not known: only {first} and {second} are", first = ALGORITHMS[0].0, second = ALGORITHMS[1].0)]
    Algorithm(String),
    /// It is not base64, or not as long as the algorithm's.
    #[error("password_hash is not {bytes} bytes in base64, as {algorithm} has it")]
    Shape {
        /// RabbitMQ's name of it.
        algorithm: &'static str,
        /// Salt and hash.
        bytes: usize,
    },
}

/// Returns what is to be stored of a hash that RabbitMQ exported.
///
/// # Errors
/// [`NoRabbitmqHash`].
pub fn from_rabbitmq(algorithm: &str, hash: &str) -> Result<String, NoRabbitmqHash> {
    let found = ALGORITHMS.iter().find(|(name, ..)| *name == algorithm);
    let (algorithm, prefix, bytes) =
        *found.ok_or_else(|| NoRabbitmqHash::Algorithm(algorithm.to_owned()))?;
    let bytes = SALT_BYTES + bytes;
    match STANDARD.decode(hash) {
        Ok(decoded) if decoded.len() == bytes => Ok(format!("{prefix}{hash}")),
        _ => Err(NoRabbitmqHash::Shape { algorithm, bytes }),
    }
}

/// Hashes a password as RabbitMQ does by its default algorithm, in base64 with a fresh salt.
///
/// # Errors
/// If the system gives no random bytes.
pub fn hash_as_rabbitmq(password: &[u8]) -> io::Result<String> {
    let mut salt = [0; SALT_BYTES];
    getrandom::fill(&mut salt).map_err(io::Error::other)?;
    let digest = Sha256::new().chain_update(salt).chain_update(password).finalize();
    Ok(STANDARD.encode([&salt[..], &digest[..]].concat()))
}

/// Returns RabbitMQ's algorithm and hash, of a stored hash that is one.
#[must_use]
pub fn to_rabbitmq(stored: &str) -> Option<(&'static str, &str)> {
    ALGORITHMS.iter().find_map(|(name, prefix, _)| Some((*name, stored.strip_prefix(prefix)?)))
}

/// Returns whether the password belongs to a stored hash; `None` if RabbitMQ did not make that.
pub(crate) fn verify(password: &[u8], stored: &str) -> Option<bool> {
    let (algorithm, hash) = to_rabbitmq(stored)?;
    let Ok(decoded) = STANDARD.decode(hash) else { return Some(false) };
    let Some((salt, hash)) = decoded.split_at_checked(SALT_BYTES) else { return Some(false) };
    let is_sha256 = algorithm == RABBITMQ_DEFAULT_ALGORITHM;
    Some(match is_sha256 {
        true => is_same(hash, &Sha256::new().chain_update(salt).chain_update(password).finalize()),
        false => is_same(hash, &Sha512::new().chain_update(salt).chain_update(password).finalize()),
    })
}

/// Returns whether both are the same; takes as long wherever they differ.
fn is_same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |seen, (a, b)| seen | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RabbitMQ's documentation computes it: salt 0x908DC60A, password `test12`.
    const DOCUMENTED: &str = "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR";

    #[test]
    fn the_documented_hash_is_of_its_password_alone() {
        let stored = from_rabbitmq(RABBITMQ_DEFAULT_ALGORITHM, DOCUMENTED).unwrap();
        assert_eq!(verify(b"test12", &stored), Some(true));
        assert_eq!(verify(b"test13", &stored), Some(false));
        assert_eq!(to_rabbitmq(&stored), Some((RABBITMQ_DEFAULT_ALGORITHM, DOCUMENTED)));
    }

    #[test]
    fn a_hash_of_ours_is_one_of_rabbitmqs() {
        let hash = hash_as_rabbitmq(b"secret").unwrap();
        assert_ne!(hash, hash_as_rabbitmq(b"secret").unwrap());
        let stored = from_rabbitmq(RABBITMQ_DEFAULT_ALGORITHM, &hash).unwrap();
        assert_eq!(verify(b"secret", &stored), Some(true));
        assert_eq!(verify(b"Secret", &stored), Some(false));
    }

    #[test]
    fn a_long_hash_is_verified_too() {
        let salt = [1, 2, 3, 4];
        let digest = Sha512::new().chain_update(salt).chain_update(b"secret").finalize();
        let hash = STANDARD.encode([&salt[..], &digest[..]].concat());
        let stored = from_rabbitmq("rabbit_password_hashing_sha512", &hash).unwrap();
        assert_eq!(verify(b"secret", &stored), Some(true));
        assert_eq!(verify(b"", &stored), Some(false));
        assert!(from_rabbitmq(RABBITMQ_DEFAULT_ALGORITHM, &hash).is_err());
    }

    #[test]
    fn other_hashes_are_not_rabbitmqs() {
        assert_eq!(verify(b"x", "$argon2id$v=19$m=7168,t=5,p=1$c2FsdA$aGFzaA"), None);
        assert_eq!(verify(b"x", "$rabbitmq-sha256$"), Some(false));
        for (algorithm, hash) in
            [("rabbit_password_hashing_md5", DOCUMENTED), (RABBITMQ_DEFAULT_ALGORITHM, "a%")]
        {
            assert!(from_rabbitmq(algorithm, hash).is_err(), "{algorithm} {hash}");
        }
    }
}
