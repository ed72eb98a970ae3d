//! `/quelea/v1/tokens`: what scripts show instead of a password.

use axum::Json;
use quelea_openapi::{Operation, Route};
use quelea_sqs_protocol::IdentityDirectory as _;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::call::Call;
use crate::error::ApiError;
use crate::limits::{TOKEN_VALID_S, TOKEN_VALID_S_MAX};
use crate::state::{ApiState, SharedState as _};

pub(super) fn routes() -> Vec<Route<ApiState>> {
    let operation = Operation::new(
        "Makes a token, by which the user who asks may sign in instead of by the password: Authorization: Bearer TOKEN",
    );
    vec![
        Route::at("/tokens")
            .post(create, operation.optional_body::<NewToken>().answers::<Token>(200)),
    ]
}

/// How long the token is to hold.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewToken {
    /// Seconds; absent: a day.
    #[schemars(range(min = 1, max = TOKEN_VALID_S_MAX))]
    valid_s: Option<u32>,
}

/// A token, which is shown this once.
#[derive(Serialize, JsonSchema)]
struct Token {
    token: String,
    /// Milliseconds since 1970. Another password of the user ends it sooner.
    expires_at: u64,
}

/// `POST /tokens`: 200, since a token has no address at which it would be found. Signed in by the password: tokens make no tokens, or one would hold for ever.
async fn create(call: Call) -> Result<Json<Token>, ApiError> {
    let (api, user, [], body) = call.parts_and_body().await?;
    if user.by_token {
        return Err(ApiError::Forbidden("a token makes no tokens: sign in by the password".into()));
    }
    let wanted: NewToken = quelea_openapi::from_value(body).map_err(ApiError::bad)?;
    let valid_s = wanted.valid_s.unwrap_or(TOKEN_VALID_S);
    if !(1..=TOKEN_VALID_S_MAX).contains(&valid_s) {
        let reason = format!("valid_s must be from 1 to {TOKEN_VALID_S_MAX}, it is {valid_s}");
        return Err(ApiError::BadRequest(reason));
    }
    let known = api.directory().user(&user.name).await?.ok_or(ApiError::Unauthorized)?;
    if !known.password_hash.starts_with("$argon2") {
        // One from RabbitMQ is replaced at the sign-in, and tokens of the old one would end.
        return Err(ApiError::Busy("the password's hash is being replaced, try again"));
    }
    let tokens = api.tokens.as_deref();
    let tokens = tokens.ok_or_else(|| ApiError::bad("there is no key for tokens here"))?;
    let (token, expires_at) = tokens.make(&user.name, &known.password_hash, valid_s);
    Ok(Json(Token { token, expires_at }))
}
