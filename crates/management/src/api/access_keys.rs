//! `/api/access-keys`: what clients of the SQS interface sign with. A secret is shown once, in the
//! answer to the request that makes it.

use axum::Json;
use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use quelea_broker::{AccessKey, NewAccessKey};
use serde_json::{Value, json};

use super::listing::array;
use super::{JsonAnswer, StatusAnswer, owner, required_field, text_field};
use crate::authentication::ApiUser;
use crate::call::Call;
use crate::error::ApiError;
use crate::operation::done;
use crate::state::{ApiState, SharedState as _};

/// `GET /api/access-keys`: without secrets, those that the user may see: an administrator all, others their own.
pub(crate) async fn list(call: Call) -> JsonAnswer {
    let (api, user, []) = call.parts();
    let keys = api.ask(move |core| {
        let keys = core.broker.access().keys().iter();
        keys.filter(|key| user.has_keys_of(&key.user)).cloned().collect::<Vec<_>>()
    });
    Ok(array(keys.await?.iter().map(|key| to_json(&api, key))))
}

/// `GET /api/access-keys/{id}`: without its secret.
pub(crate) async fn one(call: Call) -> JsonAnswer {
    let (api, user, [id]) = call.parts();
    let key = of_user(&api, &user, &id).await?;
    Ok(Json(to_json(&api, &key)))
}

/// A key that the user may see and change; to others it is not there.
async fn of_user(api: &ApiState, user: &ApiUser, id: &str) -> Result<AccessKey, ApiError> {
    let id = id.to_owned();
    let key = api.ask(move |core| core.broker.access().keys().get(&id).cloned()).await?;
    key.filter(|key| user.has_keys_of(&key.user)).ok_or(ApiError::NotFound)
}

/// `POST /api/access-keys` with `user` and `account`, which is that of virtual host `/` if absent.
/// 201 with the key and its secret, which is shown this once.
pub(crate) async fn create(call: Call) -> Result<(StatusCode, Json<Value>), ApiError> {
    let (api, user, [], body) = call.parts_and_body().await?;
    let owner = required_field(&body, "user")?.to_owned();
    let account = text_field(&body, "account")?.unwrap_or(&api.account_id).to_owned();
    owner::may_make_key(&api, &user, &owner, &account)?;
    let vhost = api.vhost_of(&account).to_owned();
    let (id, secret) = (new_id()?, new_secret()?);
    let answer = json!({
        "access_key_id": id, "secret_access_key": secret,
        "user": owner, "account": account, "enabled": true,
    });
    done(&api, move |core| {
        let new = NewAccessKey { id: &id, secret: &secret, user: &owner, vhost: &vhost };
        core.broker.create_access_key(core.now(), new)
    })
    .await?;
    Ok((StatusCode::CREATED, Json(answer)))
}

/// `PUT /api/access-keys/{id}` with `enabled`.
pub(crate) async fn enable(call: Call) -> StatusAnswer {
    let (api, user, [id], body) = call.parts_and_body().await?;
    let Value::Bool(enabled) = body["enabled"] else {
        return Err(ApiError::bad("enabled must be true or false"));
    };
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

fn to_json(api: &ApiState, key: &AccessKey) -> Value {
    json!({
        "access_key_id": &*key.id,
        "user": &*key.user,
        "account": api.account_of(key.vhost.as_str()),
        "enabled": key.enabled,
        "created_at": key.created_at.as_millis(),
    })
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
