//! The keys that signatures are made with, derived once a day and region instead of per request.

use std::collections::HashMap;
use std::sync::Arc;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use super::credential::Credential;
use super::digest::Digest32;

/// An HMAC that has taken in its key and nothing else yet.
#[derive(Clone)]
pub(crate) struct SigningKey(Hmac<Sha256>);

impl SigningKey {
    /// Derives a key with four HMACs: by date, region, service and terminator (some 3 µs).
    pub(crate) fn derive(secret: &str, credential: &Credential) -> Self {
        let mut key = keyed(format!("AWS4{secret}").as_bytes());
        for part in credential.scope_parts() {
            key.update(part.as_bytes());
            key = keyed(&key.finalize().into_bytes());
        }
        Self(key)
    }

    pub(crate) fn sign(&self, string_to_sign: &str) -> Digest32 {
        let mut mac = self.0.clone();
        mac.update(string_to_sign.as_bytes());
        Digest32(mac.finalize().into_bytes().into())
    }

    /// Compares in constant time.
    pub(crate) fn verify(&self, string_to_sign: &str, signature: &Digest32) -> bool {
        let mut mac = self.0.clone();
        mac.update(string_to_sign.as_bytes());
        mac.verify_slice(&signature.0).is_ok()
    }
}

fn keyed(key: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("an HMAC takes a key of any length")
}

/// Some 300 bytes each. Every client has one a day; the rest is room for regions and for the hours
/// in which two dates are in use.
const KEYS_MAX: usize = 4096;

/// Derived keys by credential, which is to say by access key, date, region and service.
#[derive(Default)]
pub(crate) struct SigningKeys {
    keys: HashMap<Box<str>, (Arc<str>, SigningKey)>,
}

impl SigningKeys {
    /// Returns the key for a credential, if it was kept and the access key still has that secret.
    pub(crate) fn get(&self, credential: &Credential, secret: &str) -> Option<&SigningKey> {
        let (of, key) = self.keys.get(credential.text())?;
        (&**of == secret).then_some(key)
    }

    /// Keeps a key. A verifier does so when a signature has proved good, so that nobody without a
    /// secret fills the cache. When it is full it begins anew: those of yesterday are not missed.
    pub(crate) fn keep(&mut self, credential: &Credential, secret: &Arc<str>, key: SigningKey) {
        if self.keys.len() >= KEYS_MAX {
            self.keys.clear();
        }
        self.keys.insert(credential.text().into(), (Arc::clone(secret), key));
    }
}

impl std::fmt::Debug for SigningKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SigningKeys({})", self.keys.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credential(id: &str) -> Credential {
        Credential::parse(&format!("{id}/20120215/us-east-1/iam/aws4_request")).unwrap()
    }

    /// Source of the signature: computed with Python's `hmac`.
    #[test]
    fn a_key_is_derived_in_four_steps() {
        let secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
        let signature = SigningKey::derive(secret, &credential("AKID")).sign("x").to_string();
        assert_eq!(signature, SIGNATURE_OF_X);
    }

    const SIGNATURE_OF_X: &str = "01b09e2713e5321656d0e9f5c31f78af9dfdc8979d52e975ff69a55831454e12";

    #[test]
    fn a_cached_key_is_good_for_its_secret_only() {
        let mut keys = SigningKeys::default();
        let (old, credential): (Arc<str>, _) = ("old".into(), credential("AKID"));
        keys.keep(&credential, &old, SigningKey::derive(&old, &credential));
        assert!(keys.get(&credential, "old").is_some());
        assert!(keys.get(&credential, "new").is_none());
    }

    #[test]
    fn no_more_keys_are_kept_than_the_limit() {
        let mut keys = SigningKeys::default();
        let secret: Arc<str> = "secret".into();
        let key = SigningKey::derive(&secret, &credential("AKID"));
        for n in 0..=KEYS_MAX {
            assert!(keys.keys.len() <= KEYS_MAX);
            keys.keep(&credential(&format!("AKID{n}")), &secret, key.clone());
        }
        assert!(keys.get(&credential(&format!("AKID{KEYS_MAX}")), "secret").is_some());
        assert_eq!(format!("{keys:?}"), "SigningKeys(1)");
    }
}
