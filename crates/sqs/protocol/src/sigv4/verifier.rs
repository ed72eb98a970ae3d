//! Proves what a request claims.

use std::sync::Arc;

use bytes::Bytes;

use super::body_digest::STREAMING;
use super::chunks::ChunkVerifier;
use super::digest::Digest32;
use super::signing_keys::SigningKey;
use super::{
    AmzTime, BodyDigest, CanonicalRequest, Claim, Computed, HttpRequest, SERVICE, SignatureError,
    SigningKeys, canonical,
};

use crate::limits::SKEW_S_MAX;
use crate::lossy_text::lossy_text;

/// Verifies signatures, and keeps the keys that it derived for them.
#[derive(Debug)]
pub struct Verifier {
    service: &'static str,
    keys: SigningKeys,
}

impl Default for Verifier {
    fn default() -> Self {
        Self::new(SERVICE)
    }
}

impl Verifier {
    /// Returns a verifier of requests to a service.
    #[must_use]
    pub fn new(service: &'static str) -> Self {
        Self { service, keys: SigningKeys::default() }
    }

    /// Proves that a request was signed with a secret, for this service and for about this time.
    /// `now_ms` is in ms since 1970.
    ///
    /// # Errors
    /// If that is not proved.
    pub fn verify(
        &mut self,
        request: &HttpRequest<'_>,
        claim: &Claim,
        secret: &Arc<str>,
        now_ms: u64,
    ) -> Result<Payload, SignatureError> {
        let digest = BodyDigest::of(request);
        self.verify_digest(request, claim, secret, digest, now_ms)
    }

    /// Proves the same as [`Self::verify`] with the digest of the body, which may have been
    /// computed in pieces.
    ///
    /// # Errors
    /// If that is not proved.
    pub fn verify_digest(
        &mut self,
        request: &HttpRequest<'_>,
        claim: &Claim,
        secret: &Arc<str>,
        digest: BodyDigest,
        now_ms: u64,
    ) -> Result<Payload, SignatureError> {
        claim.credential.check(claim.time, self.service)?;
        check_time(claim, AmzTime::from_millis(now_ms))?;
        let payload = PayloadHash::of(request, digest)?;
        // The header form leaves out nothing: its own signature is not in the query.
        let query = canonical::canonical_query(request.query, claim.own_parameter())?;
        let canonical =
            CanonicalRequest::new(request, &query, &claim.signed_headers, payload.text())?;
        let timestamp = claim.time.basic();
        let string_to_sign = canonical.string_to_sign(&timestamp, claim.credential.scope());

        let kept = self.keys.get(&claim.credential, secret);
        let derived = match kept {
            Some(_) => None,
            None => Some(SigningKey::derive(secret, &claim.credential)),
        };
        let key = kept.or(derived.as_ref()).expect("one of the two is there");
        let signature = claim.signature.filter(|signature| key.verify(&string_to_sign, signature));
        let Some(signature) = signature else {
            let canonical_request = canonical.to_text();
            let computed = Computed { canonical_request, string_to_sign };
            return Err(SignatureError::Mismatch(Box::new(computed)));
        };
        let payload = match payload {
            PayloadHash::Whole(_) => Payload(None),
            PayloadHash::Streaming => {
                let scope = claim.credential.scope().to_owned();
                let length = decoded_length(request)?;
                let chunks = ChunkVerifier::new(key.clone(), timestamp, scope, signature, length);
                Payload(Some(Box::new(chunks)))
            }
        };
        if let Some(key) = derived {
            self.keys.keep(&claim.credential, secret, key);
        }
        Ok(payload)
    }
}

impl Claim {
    /// Returns the parameter that is not signed, because it is the signature.
    const fn own_parameter(&self) -> &'static str {
        if self.expires_s.is_some() { "X-Amz-Signature" } else { "" }
    }
}

/// A body whose request was verified.
#[derive(Debug)]
#[must_use = "a body in chunks is not verified before it is opened"]
pub struct Payload(Option<Box<ChunkVerifier>>);

impl Payload {
    /// Returns the content of the body: the body itself, or what its chunks hold, each of which is
    /// verified.
    ///
    /// # Errors
    /// If a chunk is malformed, or not as it was signed.
    pub fn open(self, body: Bytes) -> Result<Bytes, SignatureError> {
        match self.0 {
            None => Ok(body),
            Some(chunks) => chunks.open(&body),
        }
    }
}

/// Checks the time. The clock may be off by a quarter of an hour to either side; a presigned
/// request is good for as long as it says, and may be early by as much.
fn check_time(claim: &Claim, now: AmzTime) -> Result<(), SignatureError> {
    let signed = claim.time;
    if signed > now.plus(SKEW_S_MAX) {
        return Err(SignatureError::NotYetCurrent { signed, now });
    }
    match claim.expires_s {
        None if signed < now.minus(SKEW_S_MAX) => Err(SignatureError::Expired { signed, now }),
        Some(expires_s) if signed.plus(expires_s) < now => {
            Err(SignatureError::PresignedExpired { signed, expires_s, now })
        }
        _ => Ok(()),
    }
}

/// The last line of the canonical request.
enum PayloadHash {
    Whole([u8; 64]),
    Streaming,
}

impl PayloadHash {
    /// Checks the header: where it says something, it has to be true. `UNSIGNED-PAYLOAD` is for S3
    /// only: this service takes no body that nobody vouches for.
    fn of(request: &HttpRequest<'_>, digest: BodyDigest) -> Result<Self, SignatureError> {
        let Some(given) = request.values("x-amz-content-sha256").next() else {
            return Ok(Self::Whole(digest.0.hex()));
        };
        let given = lossy_text(given);
        match (given.trim(), Digest32::parse(given.trim())) {
            (STREAMING, _) => Ok(Self::Streaming),
            (_, Some(given)) if given == digest.0 => Ok(Self::Whole(given.hex())),
            (_, Some(_)) => Err(SignatureError::ContentHash),
            (value, None) => Err(SignatureError::UnsupportedPayload { value: value.to_owned() }),
        }
    }

    fn text(&self) -> &str {
        match self {
            Self::Whole(hex) => std::str::from_utf8(hex).expect("digits are ASCII"),
            Self::Streaming => STREAMING,
        }
    }
}

/// Returns what the content of a body in chunks adds up to.
fn decoded_length(request: &HttpRequest<'_>) -> Result<Option<usize>, SignatureError> {
    let Some(value) = request.values("x-amz-decoded-content-length").next() else {
        return Ok(None);
    };
    let length = std::str::from_utf8(value).ok().and_then(|text| text.trim().parse().ok());
    let problem = "x-amz-decoded-content-length is no number";
    length.map(Some).ok_or(SignatureError::ChunkShape { problem })
}
