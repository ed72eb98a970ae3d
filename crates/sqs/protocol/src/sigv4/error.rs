//! Why a request was refused, as facts. The texts and codes are those of AWS where it has them.

use super::AmzTime;

/// What a signature was compared with. It holds no secret, and goes to the debug log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Computed {
    /// The request in the one form that both ends have to bring it into.
    pub canonical_request: String,
    /// What is signed: time, scope and hash of the canonical request.
    pub string_to_sign: String,
}

/// Why a signature was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// There is neither a header `Authorization` nor a signature in the query.
    #[error("Request is missing Authentication Token")]
    MissingToken,
    /// There are two signatures, in two headers or in header and query.
    #[error(
        "Only one auth mechanism allowed; only the X-Amz-Algorithm query parameter, Signature query string parameter or the Authorization header should be specified"
    )]
    TwoSignatures,
    /// It is signed by other rules.
    #[error("Unsupported AWS 'algorithm': '{algorithm}'.")]
    UnsupportedAlgorithm {
        /// What was given.
        algorithm: String,
    },
    /// A part of the header is no `Key=value`, or comes twice.
    #[error("'{part}' not a valid key=value pair (missing equal-sign) in Authorization header.")]
    NotKeyValue {
        /// The part.
        part: String,
    },
    /// Parts of the header, or the date, are missing.
    #[error("{}", header_text(.missing))]
    IncompleteHeader {
        /// `Credential`, `SignedHeaders`, `Signature`, `Date`.
        missing: Vec<&'static str>,
    },
    /// Parameters of a presigned request are missing, or come twice.
    #[error("{}", query_text(.missing))]
    IncompleteQuery {
        /// Their names.
        missing: Vec<&'static str>,
    },
    /// The credential is no credential.
    #[error(
        "Credential must have exactly 5 slash-delimited elements, e.g. keyid/date/region/service/term, got '{credential}'"
    )]
    CredentialShape {
        /// What was given.
        credential: String,
    },
    /// The time is no time.
    #[error(
        "Date must be in ISO-8601 'basic format'. Got '{date}'. See http://en.wikipedia.org/wiki/ISO_8601"
    )]
    DateShape {
        /// What was given.
        date: String,
    },
    /// How long a presigned request is good for is no number between 1 and 604,800.
    #[error("X-Amz-Expires must be a number of seconds between 1 and 604800, got '{expires}'")]
    ExpiresRange {
        /// What was given.
        expires: String,
    },
    /// A percent sign in the query is not followed by two hexadecimal digits.
    #[error("Illegal hex character in escape % pattern: '{part}'")]
    MalformedQuery {
        /// The name or value.
        part: String,
    },
    /// The list of signed headers is not sorted, or not in small letters.
    #[error("SignedHeaders must be in lower case, sorted and distinct, got '{signed_headers}'")]
    SignedHeadersShape {
        /// What was given.
        signed_headers: String,
    },
    /// The host is not signed, so the request may have been meant for another.
    #[error("'Host' or ':authority' must be a 'SignedHeader' in the AWS Authorization.")]
    HostNotSigned,
    /// A header that may change the meaning of the request is not signed.
    #[error("'{name}' must be a 'SignedHeader' in the AWS Authorization.")]
    HeaderNotSigned {
        /// The header.
        name: String,
    },
    /// A signed header did not come.
    #[error("The signed header '{name}' is not in the request.")]
    SignedHeaderAbsent {
        /// The header.
        name: String,
    },
    /// The scope is of another day than the request.
    #[error("Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: '{date}' != '{}', from '{timestamp}'.", &timestamp[..8])]
    ScopeDate {
        /// The day in the scope.
        date: String,
        /// The request's time.
        timestamp: String,
    },
    /// The scope has no region, or one that is too long for one.
    #[error("Credential should be scoped to a valid region.")]
    ScopeRegion,
    /// The scope is for another service.
    #[error("Credential should be scoped to correct service: '{expected}'.")]
    ScopeService {
        /// This service.
        expected: String,
    },
    /// The scope ends with another word.
    #[error("Credential should be scoped with a valid terminator: 'aws4_request', not '{got}'.")]
    ScopeTerminator {
        /// What was given.
        got: String,
    },
    /// The request was signed too long ago, or its clock is behind.
    #[error("Signature expired: {signed} is now earlier than {} ({now} - 15 min.)", .now.minus(crate::limits::SKEW_S_MAX))]
    Expired {
        /// When it was signed.
        signed: AmzTime,
        /// The time here.
        now: AmzTime,
    },
    /// The request's clock is ahead.
    #[error("Signature not yet current: {signed} is still later than {} ({now} + 15 min.)", .now.plus(crate::limits::SKEW_S_MAX))]
    NotYetCurrent {
        /// When it was signed.
        signed: AmzTime,
        /// The time here.
        now: AmzTime,
    },
    /// The time of a presigned request is over.
    #[error(
        "Request has expired: it was signed at {signed} for {expires_s} seconds, it is {now} now"
    )]
    PresignedExpired {
        /// When it was signed.
        signed: AmzTime,
        /// For how long.
        expires_s: u64,
        /// The time here.
        now: AmzTime,
    },
    /// There is no such access key, or it is disabled; callers do not learn which.
    #[error("The security token included in the request is invalid.")]
    UnknownKey,
    /// The signature is another one.
    #[error(
        "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method. Consult the service documentation for details."
    )]
    Mismatch(Box<Computed>),
    /// `x-amz-content-sha256` promises a form of body that this service does not take.
    #[error(
        "The x-amz-content-sha256 '{value}' is not supported: the hash of the body, or STREAMING-AWS4-HMAC-SHA256-PAYLOAD, is expected."
    )]
    UnsupportedPayload {
        /// What was given.
        value: String,
    },
    /// The body is another one than was signed.
    #[error("The provided 'x-amz-content-sha256' header does not match what was computed.")]
    ContentHash,
    /// The body is not cut into chunks as it should be.
    #[error("The aws-chunked body is malformed: {problem}.")]
    ChunkShape {
        /// What is wrong.
        problem: &'static str,
    },
    /// A chunk of the body is another one than was signed.
    #[error("The signature of chunk {number} does not match its content.")]
    ChunkMismatch {
        /// Which chunk, counted from 0.
        number: usize,
    },
}

impl SignatureError {
    /// Returns AWS's code.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::MissingToken => "MissingAuthenticationToken",
            Self::UnsupportedAlgorithm { .. }
            | Self::NotKeyValue { .. }
            | Self::IncompleteHeader { .. }
            | Self::IncompleteQuery { .. }
            | Self::CredentialShape { .. }
            | Self::DateShape { .. }
            | Self::ExpiresRange { .. }
            | Self::SignedHeadersShape { .. }
            | Self::ChunkShape { .. } => "IncompleteSignature",
            Self::MalformedQuery { .. } => "MalformedQueryString",
            Self::PresignedExpired { .. } => "AccessDenied",
            Self::UnknownKey => "InvalidClientTokenId",
            Self::TwoSignatures
            | Self::HostNotSigned
            | Self::HeaderNotSigned { .. }
            | Self::SignedHeaderAbsent { .. }
            | Self::ScopeDate { .. }
            | Self::ScopeRegion
            | Self::ScopeService { .. }
            | Self::ScopeTerminator { .. }
            | Self::Expired { .. }
            | Self::NotYetCurrent { .. }
            | Self::Mismatch(_)
            | Self::UnsupportedPayload { .. }
            | Self::ContentHash
            | Self::ChunkMismatch { .. } => "SignatureDoesNotMatch",
        }
    }

    /// Returns the HTTP status.
    #[must_use]
    pub fn status(&self) -> u16 {
        match self.code() {
            "IncompleteSignature" => 400,
            "MalformedQueryString" => 404,
            _ => 403,
        }
    }
}

fn header_text(missing: &[&str]) -> String {
    let text = |name: &&str| match *name {
        "Date" => "Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' \
                   header."
            .to_owned(),
        name => format!("Authorization header requires '{name}' parameter."),
    };
    missing.iter().map(text).collect::<Vec<_>>().join(" ")
}

fn query_text(missing: &[&str]) -> String {
    let mut text = String::new();
    for name in missing {
        text.push_str(&format!("AWS query-string parameters must include '{name}'. "));
    }
    text.push_str("Re-examine the query-string parameters.");
    text
}
