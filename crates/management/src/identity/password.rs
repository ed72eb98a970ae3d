//! `/password`: the caller's own password.

use axum::http::StatusCode;
use quelea_openapi::{Operation, Route};
use quelea_sqs_protocol::IdentityDirectory as _;
use schemars::JsonSchema;
use serde::Deserialize;

use super::users::hash;
use crate::answer::StatusAnswer;
use crate::call::Call;
use crate::error::ApiError;
use crate::state::SharedState;

pub(super) fn route<S: SharedState>() -> Route<S> {
    let operation = Operation::new(
        "Gives the user who asks another password. Their tokens end; connections that are open stay",
    )
    .body::<NewPassword>()
    .answers_status(204);
    Route::at("/password").put(change::<S>, operation)
}

/// What the user signs in with from now on.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewPassword {
    #[schemars(length(min = 1))]
    password: String,
}

/// `PUT /password`, signed in by the old one: who has found a token must not lock the user out.
async fn change<S: SharedState>(call: Call<S>) -> StatusAnswer {
    let (api, user, [], body) = call.parts_and_body().await?;
    if user.by_token {
        let reason = "a token changes no password: sign in by the old one";
        return Err(ApiError::Forbidden(reason.into()));
    }
    let NewPassword { password } = quelea_openapi::from_value(body).map_err(ApiError::bad)?;
    if password.is_empty() {
        return Err(ApiError::bad("password must not be empty"));
    }
    let hash = hash(&api, &password).await?;
    match api.directory().set_password_hash(&user.name, hash.into()).await? {
        true => Ok(StatusCode::NO_CONTENT),
        // Deleted meanwhile.
        false => Err(ApiError::Unauthorized),
    }
}
