//! Who sends a request: whoever holds the access key that signed it, or anybody on this machine.

use std::cell::RefCell;
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use quelea_net::{HostNames, WebHeaders};
use quelea_sqs_protocol::{
    BodyDigest, BodyHasher, Claim, Error, ErrorKind, HttpRequest, Identity, SignatureError, User,
    Verifier,
};

use crate::origins::AllowedOrigins;

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
    /// Names by which no web page can ask.
    hosts: HostNames,
    /// Of web pages that may ask.
    pub(crate) origins: AllowedOrigins,
    /// The account of those who need no key.
    account: Arc<str>,
    verifier: RefCell<Verifier>,
}

impl Authentication {
    pub(crate) fn new(
        verify: Verify,
        hosts: HostNames,
        origins: AllowedOrigins,
        account: Arc<str>,
    ) -> Self {
        Self { verify, hosts, origins, account, verifier: RefCell::default() }
    }

    /// Authenticates a request. Returns who sends it, and the content of its body, which may be
    /// signed in chunks.
    pub(crate) async fn check(
        &self,
        identity: &impl Identity,
        request: &HttpRequest<'_>,
        body: Bytes,
        peer: IpAddr,
        now_ms: u64,
    ) -> Result<(User, Bytes), Error> {
        let is_local = self.verify == Verify::Remote && peer.to_canonical().is_loopback();
        let web = web_headers(request);
        if request.method == "GET" && web.is_browser() {
            return Err(no_browser());
        }
        if let Some(header) = web.foreign()
            && !web.origin.is_some_and(|origin| self.origins.has(origin))
        {
            return Err(foreign_page(header));
        }
        let untrusted = forwarding_header(request).map(UntrustedOrigin::Header).or_else(|| {
            web.host.filter(|host| !self.hosts.is_known(host)).map(UntrustedOrigin::Host)
        });
        let lenient = is_local && untrusted.is_none();
        let refused = |error: &SignatureError| match untrusted {
            Some(untrusted) if is_local => needs_key(untrusted),
            _ => signature_error(error),
        };
        let anybody = || User { name: None, account: self.account.clone() };
        let claim = match Claim::read(request) {
            Ok(claim) => claim,
            Err(_) if lenient => return Ok((anybody(), body)),
            Err(error) => return Err(refused(&error)),
        };
        let key = identity.access_key(claim.access_key_id()).await;
        let key =
            key.map_err(|fault| Error::new(ErrorKind::ServiceUnavailable, fault.to_string()))?;
        let key = match key {
            None if lenient => return Ok((anybody(), body)),
            Some(key) if key.enabled => key,
            _ => return Err(refused(&SignatureError::UnknownKey)),
        };
        let digest = digest_in_pieces(request).await;
        let mut verifier = self.verifier.borrow_mut();
        let verified = verifier.verify_digest(request, &claim, &key.secret, digest, now_ms);
        drop(verifier);
        let payload = verified.map_err(|error| signature_error(&error))?;
        let body = payload.open(body).map_err(|error| signature_error(&error))?;
        Ok((key.user, body))
    }
}

/// Hashes the body. Others have their turn between the pieces of a large one.
async fn digest_in_pieces(request: &HttpRequest<'_>) -> BodyDigest {
    let mut hasher = BodyHasher::new(request);
    loop {
        if let Some(digest) = hasher.advance() {
            return digest;
        }
        tokio::task::yield_now().await;
    }
}

/// Returns the header that says that somebody else than a program on this machine may be behind a
/// request from it: a proxy has passed it on, or a browser sends it for a web page, which needs no
/// leave to do so.
fn forwarding_header<'a>(request: &HttpRequest<'a>) -> Option<&'a str> {
    let forwards = |name: &str, value: &[u8]| {
        let is = |header: &&str| name.eq_ignore_ascii_case(header);
        // The user has entered it, or the page came from here: there are none.
        let is_harmless = || [&b"none"[..], b"same-origin"].contains(&value);
        FORWARDING_HEADERS.iter().any(is) || (is(&"sec-fetch-site") && !is_harmless())
    };
    request.headers.iter().find(|(name, value)| forwards(name, value)).map(|(name, _)| *name)
}

/// Headers of proxies, and of web pages.
const FORWARDING_HEADERS: [&str; 6] =
    ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via", "origin"];

/// Why a request from this machine may be somebody else's.
#[derive(Clone, Copy)]
enum UntrustedOrigin<'a> {
    /// It has this header.
    Header(&'a str),
    /// It asks for this host, a name that a web page may have made point here.
    Host(&'a str),
}

fn needs_key(untrusted: UntrustedOrigin<'_>) -> Error {
    let says = match untrusted {
        UntrustedOrigin::Header(header) => {
            format!("A request with the header {header} comes from a proxy or a web page")
        }
        UntrustedOrigin::Host(host) => {
            format!(
                "A request for the host {host:?}, which is not in sqs.hosts, may come from a web page"
            )
        }
    };
    let message = format!(
        "{says}, so it has to be signed with an access key that is known here, as all have to be where \
         sqs.verify is \"always\"."
    );
    Error::new(ErrorKind::AccessDenied, message)
}

/// Returns the error for a browser's GET: a page can have a browser follow any link.
fn no_browser() -> Error {
    Error::new(ErrorKind::AccessDenied, "A GET that a browser sends carries out nothing.")
}

/// Returns the error for a web page's request. A key that a page got hold of is its user's, not its
/// origin's: whether its origin may ask is the operator's to say.
fn foreign_page(header: &str) -> Error {
    let message = format!(
        "By its header {header} the request is a web page's, whose origin is not in sqs.origins."
    );
    Error::new(ErrorKind::AccessDenied, message)
}

fn web_headers<'a>(request: &HttpRequest<'a>) -> WebHeaders<'a> {
    let text = |name: &str| {
        let value = request.headers.iter().find(|(header, _)| header.eq_ignore_ascii_case(name));
        // What is no text is there all the same, and is no known value.
        value.map(|(_, value)| std::str::from_utf8(value).unwrap_or_default())
    };
    WebHeaders {
        host: text("host"),
        origin: text("origin"),
        fetch_site: text("sec-fetch-site"),
        fetch_mode: text("sec-fetch-mode"),
        user_agent: text("user-agent"),
    }
}

/// Returns a signature's error as the client gets it; what it was compared with goes to the debug
/// log, which never holds the secret.
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

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;
    use crate::limits::BODY_BYTES_MAX;

    #[test]
    fn others_have_their_turn_while_a_large_body_is_hashed() {
        let body = vec![7; BODY_BYTES_MAX];
        let request =
            HttpRequest { method: "POST", path: "/", query: "", headers: &[], body: &body };
        let mut digest = pin!(digest_in_pieces(&request));
        let mut turns = 0;
        while digest.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
            turns += 1;
        }
        assert!(turns >= 60, "{turns} turns");
    }
}
