//! `/api/access-keys`: what clients of the SQS interface sign with. A secret is shown once, in the
//! answer to the request that makes it.

use axum::http::StatusCode;
use axum::http::header::{HeaderName, LOCATION};
use axum::{Extension, Json};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use quelea_sqs_protocol::{AccessKeyRecord, IdentityDirectory as _};

use super::owner;
use super::shapes::{AccessKeyState, MadeAccessKey, NewAccessKey, ShownAccessKey};
use crate::answer::{AuditedAnswer, StatusAnswer};
use crate::audit::Details;
use crate::authentication::ApiUser;
use crate::call::Call;
use crate::error::ApiError;
use crate::operation::existed;
use crate::state::SharedState;
use quelea_net::unix_ms;

/// `GET /api/access-keys`: without secrets, those that the user may see: an administrator all, others their own.
pub(super) async fn list<S: SharedState>(
    call: Call<S>,
) -> Result<Json<Vec<ShownAccessKey>>, ApiError> {
    let (api, user, []) = call.parts();
    let keys = api.directory().access_keys().await?;
    let seen = keys.iter().filter(|key| user.has_keys_of(&key.user));
    Ok(Json(seen.map(|key| shown(&api, key)).collect()))
}

/// `GET /api/access-keys/{id}`: without its secret.
pub(super) async fn one<S: SharedState>(call: Call<S>) -> Result<Json<ShownAccessKey>, ApiError> {
    let (api, user, [id]) = call.parts();
    Ok(Json(shown(&api, &of_user(&api, &user, &id).await?)))
}

/// Returns a key that the user may see and change; to others it is not there.
async fn of_user(
    api: &impl SharedState,
    user: &ApiUser,
    id: &str,
) -> Result<AccessKeyRecord, ApiError> {
    let key = api.directory().access_key_record(id).await?;
    key.filter(|key| user.has_keys_of(&key.user)).ok_or(ApiError::NotFound)
}

/// Where a new key is, what the audit trail says of it, and the key itself.
pub(super) type CreatedAccessKey =
    (StatusCode, [(HeaderName, String); 1], Extension<Details>, Json<MadeAccessKey>);

/// `POST /api/access-keys` with `user` and `account`, which is that of virtual host `/` if absent.
/// 201 with the key's place, and the key with its secret, which is shown this once.
pub(super) async fn create<S: SharedState>(call: Call<S>) -> Result<CreatedAccessKey, ApiError> {
    let (api, user, [], body) = call.parts_and_body().await?;
    let wanted: NewAccessKey = quelea_openapi::from_value(body).map_err(ApiError::bad)?;
    let NewAccessKey { user: owner, account } = wanted;
    let account = account.unwrap_or_else(|| api.account_id().to_owned());
    owner::may_make_key(&api, &user, &owner, &account)?;
    let (id, secret) = (new_id()?, new_secret()?);
    let key = AccessKeyRecord {
        id: id.clone(),
        user: owner.as_str().into(),
        vhost: api.vhost_of(&account).into(),
        enabled: true,
        created_at_ms: unix_ms(),
    };
    api.directory().create_access_key(key, &secret).await?;
    let place = format!("/api/access-keys/{id}");
    let details = Details(format!("{id}, user {owner}, account {account}"));
    let answer = MadeAccessKey {
        access_key_id: id,
        secret_access_key: secret,
        user: owner,
        account,
        enabled: true,
    };
    Ok((StatusCode::CREATED, [(LOCATION, place)], Extension(details), Json(answer)))
}

/// `PUT /api/access-keys/{id}` with `enabled`.
pub(super) async fn enable<S: SharedState>(call: Call<S>) -> AuditedAnswer {
    let (api, user, [id], body) = call.parts_and_body().await?;
    let AccessKeyState { enabled } = quelea_openapi::from_value(body).map_err(ApiError::bad)?;
    of_user(&api, &user, &id).await?;
    existed(api.directory().enable_access_key(&id, enabled).await?)?;
    let details = if enabled { "enabled" } else { "disabled" };
    Ok((StatusCode::NO_CONTENT, Extension(Details(details.to_owned()))))
}

/// `DELETE /api/access-keys/{id}`.
pub(super) async fn delete<S: SharedState>(call: Call<S>) -> StatusAnswer {
    let (api, user, [id]) = call.parts();
    of_user(&api, &user, &id).await?;
    existed(api.directory().delete_access_key(&id).await?)?;
    Ok(StatusCode::NO_CONTENT)
}

fn shown(api: &impl SharedState, key: &AccessKeyRecord) -> ShownAccessKey {
    ShownAccessKey {
        access_key_id: key.id.clone(),
        user: key.user.to_string(),
        account: api.account_of(&key.vhost).to_owned(),
        enabled: key.enabled,
        created_at: key.created_at_ms,
    }
}

/// Makes an id: `AKIA` and 16 letters of base32, as AWS has them: 80 random bits.
fn new_id() -> Result<String, ApiError> {
    const LETTERS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let letters = random::<16>()?.map(|byte| char::from(LETTERS[usize::from(byte % 32)]));
    Ok(letters.into_iter().fold(String::from("AKIA"), |mut id, letter| {
        id.push(letter);
        id
    }))
}

/// Makes a secret: 40 letters of base64, which are 240 random bits.
fn new_secret() -> Result<String, ApiError> {
    Ok(STANDARD.encode(random::<30>()?))
}

/// Returns random bytes of the operating system: this is a secret, and a name that nobody may
/// guess.
fn random<const N: usize>() -> Result<[u8; N], ApiError> {
    let mut bytes = [0; N];
    let filled = getrandom::fill(&mut bytes);
    filled.map_err(|error| ApiError::System(format!("no randomness: {error}")))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_secrets_are_unique_and_have_the_form_of_aws() {
        let ids: Vec<String> = (0..100).map(|_| new_id().unwrap()).collect();
        let secrets: Vec<String> = (0..100).map(|_| new_secret().unwrap()).collect();
        for id in &ids {
            assert_eq!(id.len(), 20);
            assert!(id.starts_with("AKIA") && id.bytes().all(|b| b.is_ascii_alphanumeric()));
        }
        assert!(secrets.iter().all(|secret| secret.len() == 40 && !secret.contains('=')));
        for mut all in [ids, secrets] {
            all.sort();
            all.dedup();
            assert_eq!(all.len(), 100);
        }
    }
}
