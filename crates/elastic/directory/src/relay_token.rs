//! How a relay proves that it is the one that was asked for: by a token of 128 bits that nobody can guess, which the
//! provider hands it in its environment and which it shows in REGISTER, behind its request. Tokens are made of the
//! request and of a secret that the site's directories share by their metadata store; so nothing has to be kept of
//! each, and every directory of the site knows the relays that another one has started.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use hmac::{Hmac, KeyInit as _, Mac as _};
use quelea_elastic_core::ownership::keys::RELAY_SECRET as SECRET_KEY;
use quelea_elastic_proto::frame::{ErrorCode, Register, WireError};
use sha2::Sha256;

use crate::meta::{Compare, MetaError, MetaStore, Op, Revision, Txn};

/// Environment variable in which a relay gets its token.
pub const TOKEN_VARIABLE: &str = "QUELEA_RELAY_TOKEN";

/// What stands between the request and the token in REGISTER.
const SEPARATOR: char = '#';

/// Bytes of a token: 128 bits.
const TOKEN_BYTES: usize = 16;

const SECRET_BYTES: usize = 32;

/// Until a store that does not answer is asked for it again.
const RETRY: Duration = Duration::from_millis(500);

/// What all tokens of a site are made of; not known while the metadata store does not answer. Then no queue can be
/// owned, so that no relay is started or expected.
#[derive(Clone, Default)]
pub struct TokenSecret(Arc<OnceLock<[u8; SECRET_BYTES]>>);

impl std::fmt::Debug for TokenSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TokenSecret(…)")
    }
}

impl TokenSecret {
    /// Creates a new secret, for a site that has none.
    ///
    /// # Errors
    /// If the system gives no random bytes.
    pub fn random() -> std::io::Result<Self> {
        random().map(Self::from)
    }

    /// Reads the site's secret, which is made if there is none yet. A store that does not answer is
    /// asked again in the background.
    ///
    /// # Errors
    /// [`MetaError`] if the store answers and refuses.
    pub(crate) async fn of_site(meta: &Arc<dyn MetaStore>) -> Result<Self, MetaError> {
        let secret = Self::default();
        match secret.read(meta.as_ref()).await {
            Err(error @ MetaError::Unavailable { .. }) => {
                tracing::warn!(%error, "relays are started when the metadata store answers");
                let (meta, secret) = (Arc::clone(meta), secret.clone());
                tokio::spawn(async move {
                    while let Err(MetaError::Unavailable { .. }) = secret.read(meta.as_ref()).await
                    {
                        tokio::time::sleep(RETRY).await;
                    }
                });
            }
            read => read?,
        }
        Ok(secret)
    }

    async fn read(&self, meta: &dyn MetaStore) -> Result<(), MetaError> {
        let unavailable = |cause: String| MetaError::Unavailable {
            store: meta.name(),
            what: format!("keep {SECRET_KEY:?}"),
            cause,
        };
        let new = random().map_err(|error| unavailable(error.to_string()))?;
        let put = Op::Put {
            key: SECRET_KEY.to_owned(),
            value: Bytes::copy_from_slice(&new),
            lease: None,
        };
        // Refused if another directory has made it, now or long ago.
        let compares = vec![Compare::Created(SECRET_KEY.to_owned(), Revision(0))];
        meta.txn(Txn { compares, changes: vec![put] }).await?;
        let kept = meta.get(SECRET_KEY).await?;
        let kept = kept.ok_or_else(|| unavailable("it was removed".to_owned()))?;
        let bytes = <[u8; SECRET_BYTES]>::try_from(&*kept.value);
        let bytes = bytes.map_err(|_| {
            unavailable(format!("it has {} bytes, not {SECRET_BYTES}", kept.value.len()))
        })?;
        // It is the same whoever reads it.
        let _ = self.0.set(bytes);
        Ok(())
    }

    /// Returns the token of the relay of a request, as hexadecimal digits; `None` if the secret is
    /// not known yet.
    #[must_use]
    pub fn token(&self, queue: &str, request: &str) -> Option<String> {
        let tag = self.tag(queue, request)?.finalize().into_bytes();
        Some(hex::encode(&tag[..TOKEN_BYTES]))
    }

    /// Checks what a relay says that it is, and takes the token off: nobody needs to see it.
    pub(crate) fn check(&self, mut register: Register) -> Result<Register, WireError> {
        let (request, token) = register.request.rsplit_once(SEPARATOR).unwrap_or_default();
        let Some(tag) = self.tag(&register.queue, request) else {
            let text = "the metadata store has not answered yet".to_owned();
            return Err(WireError::fatal(ErrorCode::Unavailable, "request", text));
        };
        let proves = bytes_of(token).is_some_and(|token| tag.verify_truncated_left(&token).is_ok());
        if !proves {
            let text = format!(
                "the request of relay {} comes without the token that its provider gave it",
                register.relay.0
            );
            return Err(WireError::fatal(ErrorCode::Key, "request", text));
        }
        register.request.truncate(request.len());
        Ok(register)
    }

    fn tag(&self, queue: &str, request: &str) -> Option<Hmac<Sha256>> {
        let secret = self.0.get()?;
        let mut tag = Hmac::new_from_slice(secret).expect("an HMAC takes a key of any length");
        tag.update(&(queue.len() as u64).to_be_bytes());
        tag.update(queue.as_bytes());
        tag.update(request.as_bytes());
        Some(tag)
    }
}

impl From<[u8; SECRET_BYTES]> for TokenSecret {
    fn from(secret: [u8; SECRET_BYTES]) -> Self {
        Self(Arc::new(OnceLock::from(secret)))
    }
}

fn random() -> std::io::Result<[u8; SECRET_BYTES]> {
    let mut secret = [0; SECRET_BYTES];
    getrandom::fill(&mut secret).map_err(std::io::Error::other)?;
    Ok(secret)
}

fn bytes_of(token: &str) -> Option<[u8; TOKEN_BYTES]> {
    let mut bytes = [0; TOKEN_BYTES];
    hex::decode_to_slice(token, &mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use quelea_elastic_proto::frame::Capacity;
    use quelea_elastic_proto::{Fence, RelayId};

    use super::*;

    fn register(queue: &str, request: &str) -> Register {
        Register {
            relay: RelayId(1),
            queue: queue.to_owned(),
            request: request.to_owned(),
            address: "127.0.0.1:1".to_owned(),
            zmtp: (String::new(), String::new()),
            capacity: Capacity::default(),
            fence: Fence(1),
        }
    }

    #[test]
    fn who_guesses_a_request_is_not_its_relay() {
        let secret = TokenSecret::from([7; SECRET_BYTES]);
        let token = secret.token("q#x", "q#x/3/1").unwrap();
        assert_eq!(token.len(), 32);
        let shown = secret.check(register("q#x", &format!("q#x/3/1#{token}"))).unwrap();
        assert_eq!(shown.request, "q#x/3/1");
        for (queue, request) in [
            ("q#x", "q#x/3/1".to_owned()),
            ("q#x", "q#x/3/1#".to_owned()),
            ("q#x", format!("q#x/3/1#{}", "0".repeat(32))),
            ("q#x", format!("q#x/3/1#{}", &token[..30])),
            ("q#x", format!("q#x/3/2#{token}")),
            ("q", format!("q#x/3/1#{token}")),
            ("q#x", format!("q#x/3/1#+{}", &token[1..])),
        ] {
            let refused = secret.check(register(queue, &request)).unwrap_err();
            assert_eq!((refused.code, refused.fatal), (ErrorCode::Key, true), "{request}");
            assert!(!refused.text.contains(&token));
        }
        // Until the secret is known nobody is taken for a fraud.
        let unknown = TokenSecret::default();
        assert_eq!(unknown.token("q#x", "q#x/3/1"), None);
        let refused = unknown.check(register("q#x", &format!("q#x/3/1#{token}"))).unwrap_err();
        assert_eq!(refused.code, ErrorCode::Unavailable);
        let other = TokenSecret::from([8; SECRET_BYTES]);
        assert!(other.check(register("q#x", &format!("q#x/3/1#{token}"))).is_err());
    }
}
