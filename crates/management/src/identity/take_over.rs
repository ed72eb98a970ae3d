//! `/api/take-over`: what the log beside Cassandra has of users, permissions, accounts and keys goes there.

use axum::Json;
use quelea_sqs_protocol::IdentityDirectory as _;
use serde_json::json;

use crate::answer::JsonAnswer;
use crate::call::Call;
use crate::fields::flag_field;
use crate::state::SharedState;

/// `POST /api/take-over` with `replace` (default false). Answers with how much was taken over, and what was there already.
pub(super) async fn take_over<S: SharedState>(call: Call<S>) -> JsonAnswer {
    let (api, user, [], body) = call.parts_and_body().await?;
    user.require_administrator()?;
    let taken = api.directory().take_over(flag_field(&body, "replace", false)?).await?;
    Ok(Json(json!({
        "accounts": taken.accounts,
        "users": taken.users,
        "permissions": taken.permissions,
        "access_keys": taken.access_keys,
        "kept": taken.kept,
    })))
}
