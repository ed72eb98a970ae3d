//! How front-ends prove to each other that they know the cluster's key: by what stands in a call's head, so that no body is
//! read of who does not.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};

pub(super) const TIME_HEADER: &str = "x-quelea-time";
pub(super) const DIGEST_HEADER: &str = "x-quelea-digest";
pub(super) const MAC_HEADER: &str = "x-quelea-mac";

/// Returns what stands for a body.
pub(super) fn digest(body: &[u8]) -> String {
    hex::encode(Sha256::digest(body))
}

/// Returns what proves that a call comes from a front-end of the same keyspace, and is meant for
/// that address.
pub(super) fn mac(secret: &[u8], time_ms: u64, address: &str, digest: &str) -> Option<String> {
    Some(hex::encode(hmac(secret, time_ms, address, digest)?.finalize().into_bytes()))
}

/// Returns whether it is that proof.
pub(super) fn is_proof(
    secret: &[u8],
    time_ms: u64,
    address: &str,
    digest: &str,
    proof: &str,
) -> bool {
    let (Ok(bytes), Some(hmac)) = (hex::decode(proof), hmac(secret, time_ms, address, digest))
    else {
        return false;
    };
    hmac.verify_slice(&bytes).is_ok()
}

fn hmac(secret: &[u8], time_ms: u64, address: &str, digest: &str) -> Option<Hmac<Sha256>> {
    let mut hmac = Hmac::<Sha256>::new_from_slice(secret).ok()?;
    hmac.update(&time_ms.to_le_bytes());
    hmac.update(&(address.len() as u64).to_le_bytes());
    hmac.update(address.as_bytes());
    hmac.update(digest.as_bytes());
    Some(hmac)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_good_for_one_call_to_one_front_end() {
        let (body, other) = (digest(b"body"), digest(b"other"));
        let proof = mac(b"secret", 5, "127.0.0.1:1", &body).unwrap();
        assert!(is_proof(b"secret", 5, "127.0.0.1:1", &body, &proof));
        assert!(!is_proof(b"secret", 6, "127.0.0.1:1", &body, &proof));
        assert!(!is_proof(b"secret", 5, "127.0.0.1:2", &body, &proof));
        assert!(!is_proof(b"secret", 5, "127.0.0.1:1", &other, &proof));
        assert!(!is_proof(b"other", 5, "127.0.0.1:1", &body, &proof));
        for wrong in ["", "0", "zz", "é", &proof[2..], &proof[1..]] {
            assert!(!is_proof(b"secret", 5, "127.0.0.1:1", &body, wrong), "{wrong}");
        }
    }
}
