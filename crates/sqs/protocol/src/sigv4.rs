//! AWS Signature Version 4, for SQS: who calls is proved by an HMAC over the request.
//!
//! Verifying goes in steps, because the key has to be looked up in between:
//! [`Claim::read`] says which access key a request claims to be signed with, [`Verifier::verify`]
//! proves it, and the [`Payload`] that comes of it yields the body that was signed. [`Signer`] is the
//! other end. Time is an argument everywhere.
//!
//! Source: "Signature Version 4 signing process" in AWS's IAM user guide.

mod amz_time;
mod body_digest;
mod canonical;
mod chunks;
mod claim;
mod credential;
mod digest;
mod error;
mod signing_keys;
mod verifier;

pub use amz_time::AmzTime;
pub use body_digest::{BodyDigest, BodyHasher};
pub use claim::Claim;
pub use error::{Computed, SignatureError};
pub use verifier::{Payload, Verifier};

pub(crate) use amz_time::{date, number, seconds_of, time_of_day};
pub(crate) use canonical::{CanonicalRequest, RESERVED, canonical_query, encode_into};
pub(crate) use credential::Credential;
pub(crate) use digest::Digest32;
pub(crate) use signing_keys::{SigningKey, SigningKeys};

/// The algorithm's name, in the header, in the query and in the string to sign.
pub(crate) const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// The service in the scope of a credential.
pub const SERVICE: &str = "sqs";

/// The last part of the scope of a credential.
pub(crate) const TERMINATOR: &str = "aws4_request";

/// A request as it went over HTTP: nothing is decoded, nothing is reordered.
#[derive(Clone, Copy, Debug)]
pub struct HttpRequest<'a> {
    /// `POST`, `GET`.
    pub method: &'a str,
    /// The path on the request line, up to the `?`.
    pub path: &'a str,
    /// What follows the `?`, or nothing.
    pub query: &'a str,
    /// Names in any case, values; a name may come several times.
    pub headers: &'a [(&'a str, &'a [u8])],
    /// The whole body, without the transfer encoding of HTTP.
    pub body: &'a [u8],
}

impl<'a> HttpRequest<'a> {
    /// Returns all values of a header, in the order in which they came.
    pub(crate) fn values(&self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        let named =
            |(of, value): &'a (&str, &[u8])| of.eq_ignore_ascii_case(name).then_some(*value);
        self.headers.iter().filter_map(named)
    }
}
