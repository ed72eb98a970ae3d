//! Signatures: public vectors, botocore's, and what has to be refused.

mod chunks;
mod fixture;
mod flipped;
mod refusals;
mod vectors;

use std::sync::Arc;

use quelea_sqs_protocol::{Claim, HttpRequest, Payload, SignatureError, Verifier};

const KEY: &str = "AKIDEXAMPLE";
const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

/// 2015-08-30 12:36:00.
const NOON_MS: u64 = 1_440_938_160_000;

/// Reads the claim and verifies it, as the service does when it knows the key.
fn verify(
    verifier: &mut Verifier,
    request: &HttpRequest<'_>,
    now_ms: u64,
) -> Result<Payload, SignatureError> {
    let claim = Claim::read(request)?;
    if claim.access_key_id() != KEY {
        return Err(SignatureError::UnknownKey);
    }
    verifier.verify(request, &claim, &Arc::from(SECRET), now_ms)
}
