//! Who sends a request: whoever holds the access key that signed it, or anybody on this machine.

use std::cell::RefCell;
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use quelea_sqs_protocol::{
    Claim, Error, ErrorKind, HttpRequest, Queues, SignatureError, User, Verifier,
};

/// Which requests have to be signed with a key that is known here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verify {
    /// Those from other machines. From loopback any credentials are accepted, unless their key is
    /// known here: then they have to be right.
    Remote,
    /// All.
    Always,
}

/// Finds out who sends.
pub(crate) struct Authentication {
    verify: Verify,
    /// The account of those who need no key.
    account: Arc<str>,
    verifier: RefCell<Verifier>,
}

impl Authentication {
    pub(crate) fn new(verify: Verify, account: Arc<str>) -> Self {
        Self { verify, account, verifier: RefCell::default() }
    }

    /// Who sends a request, and the content of its body, which may be signed in chunks.
    pub(crate) async fn check(
        &self,
        queues: &impl Queues,
        request: &HttpRequest<'_>,
        body: Bytes,
        peer: IpAddr,
        now_ms: u64,
    ) -> Result<(User, Bytes), Error> {
        let is_local = self.verify == Verify::Remote && peer.to_canonical().is_loopback();
        let forwarding_header = forwarding_header(request);
        let lenient = is_local && forwarding_header.is_none();
        let refused = |error: &SignatureError| match forwarding_header {
            Some(header) if is_local => needs_key(header),
            _ => signature_error(error),
        };
        let anybody = || User { name: None, account: self.account.clone() };
        let claim = match Claim::read(request) {
            Ok(claim) => claim,
            Err(_) if lenient => return Ok((anybody(), body)),
            Err(error) => return Err(refused(&error)),
        };
        let key = queues.access_key(claim.access_key_id()).await;
        let key =
            key.map_err(|fault| Error::new(ErrorKind::ServiceUnavailable, fault.to_string()))?;
        let key = match key {
            None if lenient => return Ok((anybody(), body)),
            Some(key) if key.enabled => key,
            _ => return Err(refused(&SignatureError::UnknownKey)),
        };
        let verified = self.verifier.borrow_mut().verify(request, &claim, &key.secret, now_ms);
        let payload = verified.map_err(|error| signature_error(&error))?;
        let body = payload.open(body).map_err(|error| signature_error(&error))?;
        Ok((key.user, body))
    }
}

/// The header that says that somebody else than a program on this machine may be behind a request
/// from it: a proxy has passed it on, or a browser sends it for a web page, which needs no leave to
/// do so.
fn forwarding_header<'a>(request: &HttpRequest<'a>) -> Option<&'a str> {
    let forwards = |name: &str, value: &[u8]| {
        let name = name.to_ascii_lowercase();
        // The user has entered it, or the page came from here: there are none.
        let harmless = [&b"none"[..], b"same-origin"].contains(&value);
        FORWARDING_HEADERS.contains(&&*name) || (name == "sec-fetch-site" && !harmless)
    };
    request.headers.iter().find(|(name, value)| forwards(name, value)).map(|(name, _)| *name)
}

/// Headers of proxies, and of web pages.
const FORWARDING_HEADERS: [&str; 6] =
    ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via", "origin"];

fn needs_key(header: &str) -> Error {
    let message = format!(
        "A request with the header {header} comes from a proxy or a web page, so it has to be signed \
         with an access key that is known here, as all have to be where sqs.verify is \"always\"."
    );
    Error::new(ErrorKind::AccessDenied, message)
}

/// A signature's error as the client gets it; what it was compared with goes to the debug log, which
/// never holds the secret.
fn signature_error(error: &SignatureError) -> Error {
    if let SignatureError::Mismatch(computed) = error {
        tracing::debug!(
            canonical_request = computed.canonical_request,
            string_to_sign = computed.string_to_sign,
            "a signature does not match"
        );
    }
    let code = error.code();
    let kind = ErrorKind::ALL.iter().copied().find(|kind| kind.code() == code);
    Error::new(kind.unwrap_or(ErrorKind::AccessDenied), error.to_string())
}
