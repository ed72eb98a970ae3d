//! Who asks: HTTP basic authentication against the broker's users, or a token of one, and what their tags allow.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use quelea_net::Front;
use quelea_node::{Authenticator, Credentials, Verdict};
use quelea_sqs_protocol::{IdentityDirectory as _, UserWithVhosts};

use crate::error::ApiError;
use crate::places::Place;
use crate::state::SharedState;
use crate::tokens::ShownToken;
use crate::web_pages::{DEFAULT_USER, UnknownHost};

/// An authenticated user of the management API.
#[derive(Debug)]
pub(crate) struct ApiUser {
    pub(crate) name: String,
    pub(crate) tags: Vec<String>,
    /// Virtual hosts in which the user has permissions.
    vhosts: Vec<Arc<str>>,
    /// Where from.
    pub(crate) peer: IpAddr,
    /// Whether by a token instead of the password.
    pub(crate) by_token: bool,
}

impl ApiUser {
    pub(crate) fn is_administrator(&self) -> bool {
        self.has("administrator")
    }

    /// Returns whether access keys of that user may be seen and changed.
    pub(crate) fn has_keys_of(&self, user: &str) -> bool {
        self.is_administrator() || *user == *self.name
    }

    /// Returns whether all virtual hosts may be seen, and what is of the whole broker.
    pub(crate) fn is_monitoring(&self) -> bool {
        self.is_administrator() || self.has("monitoring")
    }

    /// Returns the virtual hosts that a user sees who does not see all.
    pub(crate) fn vhosts(&self) -> &[Arc<str>] {
        &self.vhosts
    }

    /// Returns whether the user asks from this machine.
    pub(crate) fn is_local(&self) -> bool {
        self.peer.is_loopback()
    }

    fn has(&self, tag: &str) -> bool {
        self.tags.iter().any(|t| t == tag)
    }

    /// Refuses everybody but administrators.
    pub(crate) fn require_administrator(&self) -> Result<(), ApiError> {
        if self.is_administrator() {
            Ok(())
        } else {
            Err(ApiError::Forbidden("Not administrator user".to_owned()))
        }
    }

    /// Refuses everybody but administrators and monitoring users.
    pub(crate) fn require_monitoring(&self) -> Result<(), ApiError> {
        if self.is_monitoring() {
            Ok(())
        } else {
            Err(ApiError::Forbidden("Not monitor user".to_owned()))
        }
    }

    /// Returns whether objects of this virtual host may be shown.
    pub(crate) fn sees(&self, vhost: &str) -> bool {
        self.is_monitoring() || self.vhosts.iter().any(|v| **v == *vhost)
    }

    /// Refuses virtual hosts that may not be shown.
    pub(crate) fn require_vhost(&self, vhost: &str) -> Result<(), ApiError> {
        if self.sees(vhost) {
            Ok(())
        } else {
            Err(ApiError::Forbidden("User not authorised to access virtual host".into()))
        }
    }
}

impl<S: SharedState> FromRequestParts<S> for ApiUser {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &S) -> Result<Self, ApiError> {
        let shown = Shown::of(parts).ok_or(ApiError::Unauthorized)?;
        let name = shown.user().to_owned();
        let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>();
        // Who is nowhere, which does not happen, is elsewhere.
        let peer = peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |ConnectInfo(peer)| peer.ip());
        let peer = peer.to_canonical();
        let is_default_elsewhere =
            name == DEFAULT_USER && parts.extensions.get::<UnknownHost>().is_some();
        // Who has not signed in is not at work: else wrong passwords, whose answers are late, could hold all places.
        let place = parts.extensions.get::<Arc<Place>>();
        place.into_iter().for_each(|place| place.set_at_work(false));
        if (!peer.is_loopback() && api.loopback_users().contains(&name)) || is_default_elsewhere {
            return Err(refused(api.authenticator(), peer, &name).await);
        }
        let known = api.directory().user_with_vhosts(&name).await?;
        let (hash, tags, vhosts) = match known {
            Some(UserWithVhosts { user, vhosts }) => (Some(user.password_hash), user.tags, vhosts),
            None => (None, Vec::new(), Vec::new()),
        };
        let by_token = matches!(shown, Shown::Token(_));
        match shown {
            Shown::Password(user, password) => {
                let credentials = Credentials { user, password: password.into(), hash };
                verify(api.authenticator(), peer, credentials).await?;
            }
            Shown::Token(token) => verify_token(api, peer, &token, hash.as_deref()).await?,
        }
        place.into_iter().for_each(|place| place.set_at_work(true));
        let user = Self { name, tags, vhosts, peer, by_token };
        let enters = ["administrator", "monitoring", "management", "policymaker"];
        match enters.iter().any(|tag| user.has(tag)) {
            true => Ok(user),
            false => Err(ApiError::Forbidden("Not management user".to_owned())),
        }
    }
}

/// What a request shows of who it is from.
pub(crate) enum Shown {
    Password(String, Vec<u8>),
    Token(ShownToken),
}

impl Shown {
    /// Reads what a request shows; `None` without a header that makes sense.
    pub(crate) fn of(parts: &Parts) -> Option<Self> {
        let header = parts.headers.get(AUTHORIZATION)?.to_str().ok()?;
        let (scheme, shown) = header.split_once(' ')?;
        match scheme.eq_ignore_ascii_case("bearer") {
            true => ShownToken::parse(shown.trim()).map(Self::Token),
            false => {
                basic_credentials(parts).map(|(user, password)| Self::Password(user, password))
            }
        }
    }

    /// Returns who they say that they are.
    pub(crate) fn user(&self) -> &str {
        match self {
            Self::Password(user, _) => user,
            Self::Token(token) => &token.user,
        }
    }
}

/// Verifies a password. What was verified within the last minute is remembered; the rest costs tens
/// of milliseconds on a thread of its own. Only the answer to wrong credentials is late.
async fn verify(
    authenticator: &Authenticator,
    peer: IpAddr,
    credentials: Credentials,
) -> Result<(), ApiError> {
    let user = credentials.user.clone();
    let verdict = match authenticator.remembered(&credentials) {
        Some(is_good) => is_good.into(),
        None => {
            let (sender, receiver) = tokio::sync::oneshot::channel();
            let _waits = authenticator.verify(peer, credentials, move |verdict| {
                // The client may have gone: then nobody waits for the answer.
                let _ = sender.send(verdict);
            });
            receiver.await.map_err(|_| ApiError::Stopping)?
        }
    };
    match verdict {
        Verdict::Verified => Ok(()),
        Verdict::Busy => Err(ApiError::Busy("too many sign-ins wait already")),
        Verdict::Wrong => Err(refused(authenticator, peer, &user).await),
    }
}

/// Verifies a token. One that is wrong is answered as late as a wrong password, and counted with
/// those.
async fn verify_token(
    api: &impl SharedState,
    peer: IpAddr,
    token: &ShownToken,
    hash: Option<&str>,
) -> Result<(), ApiError> {
    let is_good = api.tokens().zip(hash).is_some_and(|(tokens, hash)| tokens.verify(token, hash));
    match is_good {
        true => Ok(()),
        false => Err(refused(api.authenticator(), peer, &token.user).await),
    }
}

/// Says that it is wrong, late.
async fn refused(authenticator: &Authenticator, peer: IpAddr, user: &str) -> ApiError {
    let failed = authenticator.failures().add(Front::Management, peer, user);
    if failed.is_logged() {
        let in_row = failed.in_row;
        tracing::warn!(%peer, user, in_row, "a sign-in to the management API is refused");
    }
    tokio::time::sleep(failed.delay).await;
    ApiError::Unauthorized
}

fn basic_credentials(parts: &Parts) -> Option<(String, Vec<u8>)> {
    let header = parts.headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, encoded) = header.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = STANDARD.decode(encoded.trim()).ok()?;
    let colon = decoded.iter().position(|byte| *byte == b':')?;
    let name = std::str::from_utf8(&decoded[..colon]).ok()?;
    Some((name.to_owned(), decoded[colon + 1..].to_vec()))
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    fn parts(header: &str) -> Parts {
        Request::builder().header(AUTHORIZATION, header).body(()).unwrap().into_parts().0
    }

    #[test]
    fn a_password_may_hold_colons_and_a_header_may_be_nonsense() {
        let (name, password) = basic_credentials(&parts("Basic YWRhOmE6Yg==")).unwrap();
        assert_eq!((name.as_str(), &password[..]), ("ada", &b"a:b"[..]));
        assert!(basic_credentials(&parts("Bearer x")).is_none());
        assert!(basic_credentials(&parts("Basic !!!")).is_none());
        assert!(basic_credentials(&parts("Basic")).is_none());
    }
}
