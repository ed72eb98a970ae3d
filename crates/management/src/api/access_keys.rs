//! `/api/access-keys`: what clients of the SQS interface sign with. A secret is shown once, in the
//! answer to the request that makes it.

use axum::Json;
use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use quelea_broker::AccessKey;

use super::account_shapes::{AccessKeyState, MadeAccessKey, NewAccessKey, ShownAccessKey};
use super::{StatusAnswer, owner};
use crate::authentication::ApiUser;
use crate::call::Call;
use crate::error::ApiError;
use crate::operation::done;
use crate::state::{ApiState, SharedState as _};

/// `GET /api/access-keys`: without secrets, those that the user may see: an administrator all, others their own.
pub(crate) async fn list(call: Call) -> Result<Json<Vec<ShownAccessKey>>, ApiError> {
    let (api, user, []) = call.parts();
    let keys = api.ask(move |core| {
        let keys = core.broker.access().keys().iter();
        keys.filter(|key| user.has_keys_of(&key.user)).cloned().collect::<Vec<_>>()
    });
    Ok(Json(keys.await?.iter().map(|key| shown(&api, key)).collect()))
}

/// `GET /api/access-keys/{id}`: without its secret.
pub(crate) async fn one(call: Call) -> Result<Json<ShownAccessKey>, ApiError> {
    let (api, user, [id]) = call.parts();
    let key = of_user(&api, &user, &id).await?;
    Ok(Json(shown(&api, &key)))
}

/// A key that the user may see and change; to others it is not there.
async fn of_user(api: &ApiState, user: &ApiUser, id: &str) -> Result<AccessKey, ApiError> {
    let id = id.to_owned();
    let key = api.ask(move |core| core.broker.access().keys().get(&id).cloned()).await?;
    key.filter(|key| user.has_keys_of(&key.user)).ok_or(ApiError::NotFound)
}

/// `POST /api/access-keys` with `user` and `account`, which is that of virtual host `/` if absent.
/// 201 with the key and its secret, which is shown this once.
pub(crate) async fn create(call: Call) -> Result<(StatusCode, Json<MadeAccessKey>), ApiError> {
    let (api, user, [], body) = call.parts_and_body().await?;
    let wanted: NewAccessKey = quelea_openapi::from_value(body).map_err(ApiError::bad)?;
    let owner = wanted.user;
    let account = wanted.account.unwrap_or_else(|| api.account_id.to_string());
    owner::may_make_key(&api, &user, &owner, &account)?;
    let vhost = api.vhost_of(&account).to_owned();
    let (id, secret) = (new_id()?, new_secret()?);
    let answer = MadeAccessKey {
        access_key_id: id.clone(),
        secret_access_key: secret.clone(),
        user: owner.clone(),
        account,
        enabled: true,
    };
    done(&api, move |core| {
        let new =
            quelea_broker::NewAccessKey { id: &id, secret: &secret, user: &owner, vhost: &vhost };
        core.broker.create_access_key(core.now(), new)
    })
    .await?;
    Ok((StatusCode::CREATED, Json(answer)))
}

/// `PUT /api/access-keys/{id}` with `enabled`.
pub(crate) async fn enable(call: Call) -> StatusAnswer {
    let (api, user, [id], body) = call.parts_and_body().await?;
    let AccessKeyState { enabled } = quelea_openapi::from_value(body).map_err(ApiError::bad)?;
    of_user(&api, &user, &id).await?;
    done(&api, move |core| core.broker.enable_access_key(core.now(), &id, enabled)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `DELETE /api/access-keys/{id}`.
pub(crate) async fn delete(call: Call) -> StatusAnswer {
    let (api, user, [id]) = call.parts();
    of_user(&api, &user, &id).await?;
    done(&api, move |core| core.broker.delete_access_key(core.now(), &id)).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn shown(api: &ApiState, key: &AccessKey) -> ShownAccessKey {
    ShownAccessKey {
        access_key_id: key.id.to_string(),
        user: key.user.to_string(),
        account: api.account_of(key.vhost.as_str()).to_owned(),
        enabled: key.enabled,
        created_at: key.created_at.as_millis(),
    }
}

/// `AKIA` and 16 letters of base32, as AWS has them: 80 random bits.
pub(crate) fn new_id() -> Result<String, ApiError> {
    const LETTERS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let letters = random::<16>()?.map(|byte| char::from(LETTERS[usize::from(byte % 32)]));
    Ok(letters.into_iter().fold(String::from("AKIA"), |mut id, letter| {
        id.push(letter);
        id
    }))
}

/// 40 letters of base64: 240 random bits.
pub(crate) fn new_secret() -> Result<String, ApiError> {
    Ok(STANDARD.encode(random::<30>()?))
}

/// From the operating system: this is a secret, and a name that nobody may guess.
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
