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
pub(super) struct Authentication {
    verify: Verify,
    /// The account of those who need no key.
    account: Arc<str>,
    verifier: RefCell<Verifier>,
}

impl Authentication {
    pub(super) fn new(verify: Verify, account: Arc<str>) -> Self {
        Self { verify, account, verifier: RefCell::default() }
    }

    /// Who sends a request, and the content of its body, which may be signed in chunks.
    pub(super) async fn check(
        &self,
        queues: &impl Queues,
        request: &HttpRequest<'_>,
        body: Bytes,
        peer: IpAddr,
        now_ms: u64,
    ) -> Result<(User, Bytes), Error> {
        let here = self.verify == Verify::Remote && peer.to_canonical().is_loopback();
        let passed_on = passed_on(request);
        let lenient = here && passed_on.is_none();
        let refused = |error: &SignatureError| match passed_on {
            Some(header) if here => needs_key(header),
            _ => told(error),
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
        let payload = verified.map_err(|error| told(&error))?;
        let body = payload.open(body).map_err(|error| told(&error))?;
        Ok((key.user, body))
    }
}

/// The header that says that somebody else than a program on this machine may be behind a request
/// from it: a proxy has passed it on, or a browser sends it for a web page, which needs no leave to
/// do so.
fn passed_on<'a>(request: &HttpRequest<'a>) -> Option<&'a str> {
    let tells = |name: &str, value: &[u8]| {
        let name = name.to_ascii_lowercase();
        // The user has entered it, or the page came from here: there are none.
        let harmless = [&b"none"[..], b"same-origin"].contains(&value);
        PASSED_ON.contains(&&*name) || (name == "sec-fetch-site" && !harmless)
    };
    request.headers.iter().find(|(name, value)| tells(name, value)).map(|(name, _)| *name)
}

/// Headers of proxies, and of web pages.
const PASSED_ON: [&str; 6] =
    ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via", "origin"];

fn needs_key(header: &str) -> Error {
    let message = format!(
        "A request with the header {header} comes from a proxy or a web page, so it has to be signed \
         with an access key that is known here, as all have to be where sqs.verify is \"always\"."
    );
    Error::new(ErrorKind::AccessDenied, message)
}

/// How a signature's error is told to the client; what it was compared with goes to the debug log,
/// and never holds the secret.
fn told(error: &SignatureError) -> Error {
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
