//! Signs requests as a client does.

use std::sync::Arc;

use crate::limits::EXPIRES_S_MAX;
use crate::sigv4::{
    ALGORITHM, AmzTime, CanonicalRequest, Credential, Digest32, HttpRequest, SERVICE, SigningKey,
    SigningKeys, canonical_query, encode_into,
};

/// Signs with one access key for one region. It keeps the derived key from one request to the next.
pub struct Signer {
    id: String,
    secret: Arc<str>,
    session_token: Option<String>,
    region: String,
    service: &'static str,
    keys: SigningKeys,
}

/// Headers to add to a signed request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedHeaders {
    /// `Authorization`.
    pub authorization: String,
    /// `X-Amz-Date`.
    pub amz_date: String,
    /// `X-Amz-Security-Token`, if the signer has one.
    pub security_token: Option<String>,
}

/// Headers that are not signed: proxies and HTTP libraries change them.
const UNSIGNED: [&str; 9] = [
    "authorization",
    "connection",
    "content-length",
    "expect",
    "transfer-encoding",
    "user-agent",
    "x-amz-date",
    "x-amz-security-token",
    "x-amzn-trace-id",
];

impl Signer {
    /// Returns a signer of requests to SQS.
    #[must_use]
    pub fn new(access_key_id: &str, secret: &str, region: &str) -> Self {
        Self {
            id: access_key_id.to_owned(),
            secret: secret.into(),
            session_token: None,
            region: region.to_owned(),
            service: SERVICE,
            keys: SigningKeys::default(),
        }
    }

    /// Returns the same signer, which also sends a session token.
    #[must_use]
    pub fn with_session_token(mut self, token: &str) -> Self {
        self.session_token = Some(token.to_owned());
        self
    }

    /// Returns the same signer for another service than SQS.
    #[must_use]
    pub const fn for_service(mut self, service: &'static str) -> Self {
        self.service = service;
        self
    }

    /// Signs a request. Its headers have to have `host`; those that this returns are to be added, and
    /// are not among them yet. `now_ms` is in ms since 1970.
    #[must_use]
    pub fn sign(&mut self, request: &HttpRequest<'_>, now_ms: u64) -> SignedHeaders {
        let time = AmzTime::from_millis(now_ms);
        let amz_date = time.to_string();
        let mut headers = signable(request);
        headers.push(("x-amz-date", amz_date.as_bytes()));
        let security_token = self.session_token.clone();
        if let Some(token) = &security_token {
            headers.push(("x-amz-security-token", token.as_bytes()));
        }
        let signed_headers = list(&headers);
        let request = HttpRequest { headers: &headers, ..*request };
        let (credential, signature) =
            self.signature(&request, request.query, &signed_headers, time);
        let authorization = format!(
            "{ALGORITHM} Credential={}, SignedHeaders={signed_headers}, Signature={signature}",
            credential.text()
        );
        SignedHeaders { authorization, amz_date, security_token }
    }

    /// Signs a request in its query: returns the query to send, which is good for `expires_s` seconds
    /// (at least 1, at most a week). Whoever sends it has to send the request's headers too.
    #[must_use]
    pub fn presign(&mut self, request: &HttpRequest<'_>, expires_s: u64, now_ms: u64) -> String {
        let time = AmzTime::from_millis(now_ms);
        let headers = signable(request);
        let signed_headers = list(&headers);
        let credential = Credential::new(&self.id, time, &self.region, self.service);
        let mut query = request.query.as_bytes().to_vec();
        let mut add = |name: &str, value: &str| {
            if !query.is_empty() {
                query.push(b'&');
            }
            query.extend_from_slice(name.as_bytes());
            query.push(b'=');
            encode_into(&mut query, value.as_bytes());
        };
        add("X-Amz-Algorithm", ALGORITHM);
        add("X-Amz-Credential", credential.text());
        add("X-Amz-Date", &time.to_string());
        add("X-Amz-Expires", &expires_s.clamp(1, EXPIRES_S_MAX).to_string());
        add("X-Amz-SignedHeaders", &signed_headers);
        if let Some(token) = &self.session_token {
            add("X-Amz-Security-Token", token);
        }
        let mut query = String::from_utf8(query).expect("text and ASCII");
        let request = HttpRequest { headers: &headers, ..*request };
        let (_, signature) = self.signature(&request, &query, &signed_headers, time);
        query.push_str("&X-Amz-Signature=");
        query.push_str(&signature.to_string());
        query
    }

    fn signature(
        &mut self,
        request: &HttpRequest<'_>,
        query: &str,
        signed_headers: &str,
        time: AmzTime,
    ) -> (Credential, Digest32) {
        // A query that is no query is signed as none: the other end refuses it for what it is.
        let query = canonical_query(query, "").unwrap_or_default();
        let payload_hash = Digest32::of(request.body).to_string();
        let canonical = CanonicalRequest::new(request, &query, signed_headers, &payload_hash)
            .expect("only headers that are there are signed");
        let credential = Credential::new(&self.id, time, &self.region, self.service);
        let string_to_sign = canonical.string_to_sign(&time.to_string(), credential.scope());
        if let Some(key) = self.keys.get(&credential, &self.secret) {
            return (credential, key.sign(&string_to_sign));
        }
        let key = SigningKey::derive(&self.secret, &credential);
        let signature = key.sign(&string_to_sign);
        self.keys.keep(&credential, &self.secret, key);
        (credential, signature)
    }
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Signer")
            .field("id", &self.id)
            .field("region", &self.region)
            .finish_non_exhaustive()
    }
}

fn signable<'a>(request: &HttpRequest<'a>) -> Vec<(&'a str, &'a [u8])> {
    let signed = |name: &str| !UNSIGNED.iter().any(|other| other.eq_ignore_ascii_case(name));
    request.headers.iter().filter(|(name, _)| signed(name)).copied().collect()
}

/// Returns the names as `host;x-amz-date`: sorted, distinct, in small letters.
fn list(headers: &[(&str, &[u8])]) -> String {
    let mut names: Vec<String> =
        headers.iter().map(|(name, _)| name.to_ascii_lowercase()).collect();
    names.sort_unstable();
    names.dedup();
    names.join(";")
}
