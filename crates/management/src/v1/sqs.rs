//! `/quelea/v1/sqs/{account}/{action}`: the operations of the SQS interface for users of this API, on queues of all classes that
//! the interface serves. What is asked and answered is the JSON of the AWS service, and what a user may do is what an access
//! key of theirs may.

use std::sync::Arc;

use axum::body::Bytes;
use axum::http::header::{CONTENT_TYPE, USER_AGENT};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use quelea_openapi::{Operation, Route};
use quelea_sqs_protocol::{Action, Caller, Error, User};
use schemars::JsonSchema;
use serde_json::{Map, Value};

use crate::audit::Unaudited;
use crate::authentication::ApiUser;
use crate::call::Call;
use crate::error::ApiError;
use crate::state::SharedState;
use quelea_net::unix_ms;

/// Of the header `User-Agent`, which policies look at.
const USER_AGENT_BYTES_MAX: usize = 1_024;

/// The JSON of an operation's request, or of its result.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "the shapes are those of the AWS service's model")]
struct SqsObject(Map<String, Value>);

pub(super) fn routes<S: SharedState>() -> Vec<Route<S>> {
    let operation = Operation::new(
        "Does what the SQS operation of that name does, CreateQueue for instance, in an account; takes and answers the \
         JSON of the AWS service. ReceiveMessage does not wait here",
    )
    .optional_body::<SqsObject>()
    .answers::<SqsObject>(200)
    .refuses(&[404, 409, 503]);
    vec![Route::at("/sqs/{account}/{action}").post(call::<S>, operation)]
}

async fn call<S: SharedState>(call: Call<S>) -> Result<Response, ApiError> {
    let user_agent = user_agent(call.headers());
    let (api, user, [account, action], body) = call.parts_and_body().await?;
    let service = api.sqs_service().ok_or(ApiError::NoSqs)?;
    user.require_vhost(api.vhost_of(&account))?;
    let action = Action::from_name(&action).ok_or(ApiError::NoSqsOperation(action))?;
    let caller = caller(&user, account.into(), user_agent);
    let body = without_wait(action, body)?.to_string();
    let answer = service.call_json(&caller, action, body.as_bytes()).await?;
    Ok(answered(answer))
}

/// Returns the user who asks, as the service knows callers.
pub(super) fn caller(user: &ApiUser, account: Arc<str>, user_agent: Option<String>) -> Caller {
    Caller {
        user: User { name: Some(user.name.as_str().into()), account },
        // Queues have addresses without a host: here it would be that of another interface.
        base_url: String::new(),
        source_ip: Some(user.peer),
        user_agent,
        trace_header: None,
        now_ms: unix_ms(),
    }
}

/// Returns the body of a request that does not wait: a receive that waits would hold a connection
/// of this API for up to 20 s.
fn without_wait(action: Action, mut body: Value) -> Result<Value, ApiError> {
    const WAIT: &str = "WaitTimeSeconds";
    if action != Action::ReceiveMessage {
        return Ok(body);
    }
    let Some(request) = body.as_object_mut() else { return Ok(body) };
    match request.insert(WAIT.to_owned(), 0.into()) {
        None | Some(Value::Null) => Ok(body),
        Some(Value::Number(number)) if number.as_f64() == Some(0.0) => Ok(body),
        Some(other) => Err(ApiError::bad(format!(
            "{WAIT} must be 0 here, it is {other}: the SQS interface waits for messages"
        ))),
    }
}

/// Returns an answer that is kept out of the audit trail: the service itself tells it what has
/// changed.
fn answered(answer: Bytes) -> Response {
    let mut response = ([(CONTENT_TYPE, "application/json")], answer).into_response();
    response.extensions_mut().insert(Unaudited);
    response
}

/// Returns the beginning of the user agent: a header's text is ASCII, so that it may be cut
/// anywhere.
pub(super) fn user_agent(headers: &HeaderMap) -> Option<String> {
    let text = headers.get(USER_AGENT)?.to_str().ok()?;
    Some(text[..text.len().min(USER_AGENT_BYTES_MAX)].to_owned())
}

impl From<Error> for ApiError {
    /// Converts an error, with SQS's own status and code.
    fn from(error: Error) -> Self {
        let status = StatusCode::from_u16(error.kind.status());
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self::Sqs { status, code: error.kind.code(), reason: error.message }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_receive_does_not_wait_and_says_why_not() {
        let receive = |body| without_wait(Action::ReceiveMessage, body);
        for body in [json!({}), json!({"WaitTimeSeconds": 0}), json!({"WaitTimeSeconds": null})] {
            assert_eq!(receive(body).unwrap(), json!({"WaitTimeSeconds": 0}));
        }
        for wait in [json!(1), json!("0"), json!(0.5)] {
            let refused = receive(json!({"WaitTimeSeconds": wait})).unwrap_err().reason();
            assert!(refused.starts_with(&format!("WaitTimeSeconds must be 0 here, it is {wait}")));
        }
        let send = json!({"WaitTimeSeconds": 7});
        assert_eq!(without_wait(Action::SendMessage, send.clone()).unwrap(), send);
    }
}
