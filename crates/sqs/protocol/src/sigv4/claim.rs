//! What a request claims: which key signed it, when, and which headers.

use std::borrow::Cow;

use super::credential::Credential;
use super::digest::Digest32;
use super::{ALGORITHM, AmzTime, HttpRequest, SignatureError, canonical};

use crate::limits::EXPIRES_S_MAX;
use crate::lossy_text::lossy_text;

/// A claim that was read and not proved yet: enough to look up the key.
#[derive(Clone, Debug)]
pub struct Claim {
    pub(super) credential: Credential,
    /// Sorted, distinct, in small letters, `host` among them.
    pub(super) signed_headers: String,
    /// `None` if what was given cannot be a signature; it is refused like any wrong one.
    pub(super) signature: Option<Digest32>,
    pub(super) time: AmzTime,
    /// For how long a presigned request is good; `None` if the signature came in the header.
    pub(super) expires_s: Option<u64>,
}

/// The names of a presigned request's parameters.
const PRESIGNED: [&str; 6] = [
    "X-Amz-Algorithm",
    "X-Amz-Credential",
    "X-Amz-SignedHeaders",
    "X-Amz-Date",
    "X-Amz-Expires",
    "X-Amz-Signature",
];

impl Claim {
    /// Reads the claim of a request, from its header `Authorization` or from its query.
    ///
    /// # Errors
    /// If there is none, or if it is not complete.
    pub fn read(request: &HttpRequest<'_>) -> Result<Self, SignatureError> {
        let mut headers = request.values("authorization");
        let header = headers.next();
        // A cheap look first: most requests have no query.
        let in_query = !request.query.is_empty() && PresignedParts::are_in(request.query);
        let claim = match (header, in_query) {
            (None, false) => return Err(SignatureError::MissingToken),
            (Some(_), true) => return Err(SignatureError::TwoSignatures),
            (Some(_), false) if headers.next().is_some() => {
                return Err(SignatureError::TwoSignatures);
            }
            (Some(header), false) => Self::from_header(request, header)?,
            (None, true) => Self::from_query(request)?,
        };
        claim.check_signed_headers(request)?;
        Ok(claim)
    }

    /// Returns the id of the key that is claimed.
    #[must_use]
    pub fn access_key_id(&self) -> &str {
        self.credential.id()
    }

    /// Returns the region that the request was signed for. Any will do.
    #[must_use]
    pub fn region(&self) -> &str {
        self.credential.scope_parts()[1]
    }

    /// Reads `AWS4-HMAC-SHA256 Credential=…, SignedHeaders=…, Signature=…`.
    fn from_header(request: &HttpRequest<'_>, header: &[u8]) -> Result<Self, SignatureError> {
        let header = lossy_text(header);
        let header = header.trim();
        let (algorithm, rest) = header.split_once(' ').unwrap_or((header, ""));
        if algorithm != ALGORITHM {
            let algorithm = algorithm.to_owned();
            return Err(SignatureError::UnsupportedAlgorithm { algorithm });
        }
        let (mut credential, mut signed_headers, mut signature) = (None, None, None);
        // Without any it says what is missing; an empty one among others is none.
        let parts = (!rest.trim().is_empty()).then(|| rest.split(',').map(str::trim));
        for part in parts.into_iter().flatten() {
            let not_key_value = || SignatureError::NotKeyValue { part: part.to_owned() };
            let (name, value) = part.split_once('=').ok_or_else(not_key_value)?;
            let field = match name {
                "Credential" => &mut credential,
                "SignedHeaders" => &mut signed_headers,
                "Signature" => &mut signature,
                // A later version of the signature may add some.
                _ => continue,
            };
            if field.replace(value).is_some() {
                return Err(not_key_value());
            }
        }
        let date = request.values("x-amz-date").next().or_else(|| request.values("date").next());
        let (Some(credential), Some(signed_headers), Some(signature), Some(date)) =
            (credential, signed_headers, signature, date)
        else {
            let missing = [
                ("Credential", credential.is_none()),
                ("Signature", signature.is_none()),
                ("SignedHeaders", signed_headers.is_none()),
                ("Date", date.is_none()),
            ];
            let missing = missing.into_iter().filter_map(|(name, is)| is.then_some(name)).collect();
            return Err(SignatureError::IncompleteHeader { missing });
        };
        Ok(Self {
            credential: Credential::parse(credential)?,
            signed_headers: signed_headers.to_owned(),
            signature: Digest32::parse(signature),
            time: header_time(date)?,
            expires_s: None,
        })
    }

    /// Reads `X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=…&…`.
    fn from_query(request: &HttpRequest<'_>) -> Result<Self, SignatureError> {
        let parts = PresignedParts::read(request.query)?;
        let [algorithm, credential, signed_headers, date, expires, signature] = parts.complete()?;
        if algorithm != ALGORITHM {
            return Err(SignatureError::UnsupportedAlgorithm { algorithm });
        }
        let expires_s = expires
            .parse::<u64>()
            .ok()
            .filter(|seconds| (1..=EXPIRES_S_MAX).contains(seconds) && !expires.starts_with('+'));
        let Some(expires_s) = expires_s else {
            return Err(SignatureError::ExpiresRange { expires });
        };
        Ok(Self {
            credential: Credential::parse(&credential)?,
            signed_headers,
            signature: Digest32::parse(&signature),
            time: AmzTime::parse_basic(&date).ok_or(SignatureError::DateShape { date })?,
            expires_s: Some(expires_s),
        })
    }

    /// Checks that the headers are signed that have to be. Without the host a request could be sent
    /// to another service; without `x-amz-target` it could be turned into another action.
    fn check_signed_headers(&self, request: &HttpRequest<'_>) -> Result<(), SignatureError> {
        // Bytes, since the names are short: a search for a character in them costs more than the names.
        let signed = self.signed_headers.as_bytes();
        let plain = signed.iter().all(|byte| !byte.is_ascii_uppercase());
        let names = || signed.split(|byte| *byte == b';');
        let sorted = names().is_sorted_by(|one, next| one < next);
        if !plain || !sorted {
            let signed_headers = self.signed_headers.clone();
            return Err(SignatureError::SignedHeadersShape { signed_headers });
        }
        let is_signed =
            |name: &str| names().any(|listed| listed.eq_ignore_ascii_case(name.as_bytes()));
        if !is_signed("host") {
            return Err(SignatureError::HostNotSigned);
        }
        for (name, _) in request.headers {
            if has_to_be_signed(name) && !is_signed(name) {
                let name = name.to_ascii_lowercase();
                return Err(SignatureError::HeaderNotSigned { name });
            }
        }
        Ok(())
    }
}

/// Returns whether a header has to be signed: all of AWS's own have, except for two that change
/// nothing here. Some clients add the session token after they have signed, and some let the user
/// agent be rewritten.
fn has_to_be_signed(name: &str) -> bool {
    let amz = name.get(..6).is_some_and(|start| start.eq_ignore_ascii_case("x-amz-"));
    let free = ["x-amz-security-token", "x-amz-user-agent"];
    amz && !free.iter().any(|free| free.eq_ignore_ascii_case(name))
}

fn header_time(date: &[u8]) -> Result<AmzTime, SignatureError> {
    let text = lossy_text(date);
    let time = AmzTime::parse_basic(text.trim()).or_else(|| AmzTime::parse_http(text.trim()));
    time.ok_or_else(|| SignatureError::DateShape { date: text.into_owned() })
}

/// The parameters of a presigned request, as far as they came.
struct PresignedParts([Option<String>; PRESIGNED.len()]);

impl PresignedParts {
    /// Returns whether a query means to be signed.
    fn are_in(query: &str) -> bool {
        let names = query.split('&').map(|pair| pair.split('=').next().unwrap_or(pair));
        names.into_iter().any(|name| {
            let decoded =
                || canonical::decode(name).map_or(Cow::Borrowed(name.as_bytes()), Cow::Owned);
            let plain = [PRESIGNED[0], PRESIGNED[5]];
            plain
                .iter()
                .any(|own| name == *own || (name.contains('%') && *decoded() == *own.as_bytes()))
        })
    }

    fn read(query: &str) -> Result<Self, SignatureError> {
        let mut parts: [Option<String>; PRESIGNED.len()] = std::array::from_fn(|_| None);
        for pair in query.split('&') {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = canonical::decode(name)?;
            let Some(at) = PRESIGNED.iter().position(|own| own.as_bytes() == name) else {
                continue;
            };
            let value = lossy_text(&canonical::decode(value)?).into_owned();
            if parts[at].replace(value).is_some() {
                return Err(SignatureError::IncompleteQuery { missing: vec![PRESIGNED[at]] });
            }
        }
        Ok(Self(parts))
    }

    fn complete(self) -> Result<[String; PRESIGNED.len()], SignatureError> {
        let absent = PRESIGNED.iter().zip(&self.0).filter(|(_, part)| part.is_none());
        let missing: Vec<&str> = absent.map(|(name, _)| *name).collect();
        if missing.is_empty() {
            return Ok(self.0.map(Option::unwrap_or_default));
        }
        Err(SignatureError::IncompleteQuery { missing })
    }
}
