//! Tokens for scripts: what a user may show instead of the password, until a time. No list of them is kept: a token says
//! whose it is and until when, sealed by a key of this broker and by the stored hash of the user's password. So another
//! password, or the user's end, ends all tokens of the user, and another key all there are.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use quelea_node::Clock;
use sha2::Sha256;

/// What tokens begin with, so that those who find one know what it is.
const PREFIX: &str = "quelea1.";
const KEY_BYTES: usize = 32;
/// Bytes of the time at the beginning of what is sealed.
const TIME_BYTES: usize = 8;

/// The key by which this broker's tokens are sealed.
#[derive(Clone)]
pub struct TokenKey([u8; KEY_BYTES]);

impl TokenKey {
    /// Reads the key, or makes it if the file is not there: then only its owner may read it.
    ///
    /// # Errors
    /// If it cannot be read or made, or is not of 32 bytes.
    pub fn open(path: &Path) -> io::Result<Self> {
        match File::open(path) {
            Ok(file) => Self::read(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::make(path),
            Err(error) => Err(error),
        }
    }

    fn read(file: File) -> io::Result<Self> {
        let mut bytes = Vec::new();
        file.take(KEY_BYTES as u64 + 1).read_to_end(&mut bytes)?;
        let found = bytes.len();
        bytes.try_into().map(Self).map_err(|_| {
            let reason = format!("a key has {KEY_BYTES} bytes, this one has {found} or more");
            io::Error::new(io::ErrorKind::InvalidData, reason)
        })
    }

    /// Makes a key and stores it, by another name first: a crash leaves no half of a key.
    fn make(path: &Path) -> io::Result<Self> {
        let mut key = [0; KEY_BYTES];
        getrandom::fill(&mut key).map_err(io::Error::other)?;
        let new = path.with_extension("new");
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        file.write_all(&key)?;
        file.sync_all()?;
        fs::rename(&new, path)?;
        Ok(Self(key))
    }
}

/// Makes tokens and looks at them.
pub(crate) struct Tokens {
    key: TokenKey,
    clock: Clock,
}

/// A token as it was shown: whose it says that it is. Whether that is so [`Tokens::verify`] knows.
pub(crate) struct ShownToken {
    pub(crate) user: String,
    expires_at_ms: u64,
    seal: Vec<u8>,
}

impl Tokens {
    pub(crate) fn new(key: TokenKey) -> Self {
        Self { key, clock: Clock::start() }
    }

    /// Makes a token of a user, whose password's stored hash this is; and returns it with when it
    /// ends, in milliseconds since 1970.
    pub(crate) fn make(&self, user: &str, hash: &str, valid_s: u32) -> (String, u64) {
        let expires_at_ms = self.clock.now().as_millis() + u64::from(valid_s) * 1_000;
        let seal = self.sealed(user, hash, expires_at_ms).finalize().into_bytes();
        let said = [&expires_at_ms.to_be_bytes()[..], user.as_bytes()].concat();
        let [said, seal] = [&said[..], &seal[..]].map(|bytes| URL_SAFE_NO_PAD.encode(bytes));
        (format!("{PREFIX}{said}.{seal}"), expires_at_ms)
    }

    /// Returns whether it is a token of the user whose password's stored hash this is, and still
    /// holds.
    pub(crate) fn verify(&self, token: &ShownToken, hash: &str) -> bool {
        let ShownToken { user, expires_at_ms, seal } = token;
        self.clock.now().as_millis() < *expires_at_ms
            && self.sealed(user, hash, *expires_at_ms).verify_slice(seal).is_ok()
    }

    fn sealed(&self, user: &str, hash: &str, expires_at_ms: u64) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key.0).expect("a key has any length");
        mac.update(PREFIX.as_bytes());
        mac.update(&expires_at_ms.to_be_bytes());
        // A length in front: what follows it is no part of the name.
        mac.update(&(user.len() as u64).to_be_bytes());
        mac.update(user.as_bytes());
        mac.update(hash.as_bytes());
        mac
    }
}

impl ShownToken {
    /// Parses a token; `None` if it is not one at all.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (said, seal) = text.strip_prefix(PREFIX)?.split_once('.')?;
        let [said, seal] = [said, seal].map(|part| URL_SAFE_NO_PAD.decode(part).ok());
        let (said, seal) = (said?, seal?);
        let (time, user) = said.split_at_checked(TIME_BYTES)?;
        let expires_at_ms = u64::from_be_bytes(time.try_into().ok()?);
        let user = String::from_utf8(user.to_vec()).ok()?;
        Some(Self { user, expires_at_ms, seal })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(key: u8) -> Tokens {
        Tokens::new(TokenKey([key; KEY_BYTES]))
    }

    #[test]
    fn a_token_holds_for_its_user_password_key_and_time() {
        let (ours, text) = (tokens(1), tokens(1).make("ada", "hash", 60).0);
        let token = ShownToken::parse(&text).unwrap();
        assert_eq!(token.user, "ada");
        assert!(ours.verify(&token, "hash"));
        assert!(!ours.verify(&token, "another hash"));
        assert!(!tokens(2).verify(&token, "hash"));
        let renamed = ShownToken { user: "bob".to_owned(), ..ShownToken::parse(&text).unwrap() };
        assert!(!ours.verify(&renamed, "hash"));
        let later = token.expires_at_ms + 1;
        assert!(!ours.verify(&ShownToken { expires_at_ms: later, ..token }, "hash"));
        let over = ShownToken::parse(&ours.make("ada", "hash", 0).0).unwrap();
        assert!(!ours.verify(&over, "hash"));
    }

    #[test]
    fn what_is_no_token_is_none() {
        let (text, _) = tokens(1).make("ada", "hash", 60);
        for bad in ["", "quelea1.", "quelea1..", "quelea1.AAAA.AAAA", "quelea1.!.!", &text[8..]] {
            assert!(ShownToken::parse(bad).is_none(), "{bad:?}");
        }
        let cut = ShownToken::parse(&text[..text.len() - 3]).unwrap();
        assert!(!tokens(1).verify(&cut, "hash"));
    }
}
