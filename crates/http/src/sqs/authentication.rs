//! Who sends a request: whoever holds the access key that signed it, or anybody on this machine.

use std::cell::RefCell;
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use quelea_sqs::{Claim, Error, ErrorKind, HttpRequest, Queues, SignatureError, User, Verifier};

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
        let lenient = self.verify == Verify::Remote && peer.to_canonical().is_loopback();
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
        let payload = verified.map_err(|error| refused(&error))?;
        let body = payload.open(body).map_err(|error| refused(&error))?;
        Ok((key.user, body))
    }
}

/// How a signature's error is told to the client; what it was compared with goes to the debug log,
/// and never holds the secret.
fn refused(error: &SignatureError) -> Error {
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
