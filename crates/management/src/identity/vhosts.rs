//! What makes and deletes virtual hosts. What is in them is shown in `api/vhosts.rs`.

use axum::http::StatusCode;
use quelea_model::VhostName;
use quelea_sqs_protocol::IdentityDirectory as _;
use serde_json::Value;

use crate::answer::StatusAnswer;
use crate::call::Call;
use crate::error::ApiError;
use crate::fields::{flag_field, text_field};
use crate::operation::existed;
use crate::state::SharedState;

/// `PUT /api/vhosts/{vhost}`: 201 if it is new, 204 if it was there. Its maker gets all permissions. Of what RabbitMQ takes
/// besides, `tracing` is refused, since messages would be missed, and another `default_queue_type` than classic; `description` and `tags` are passed over.
pub(super) async fn put<S: SharedState>(call: Call<S>) -> StatusAnswer {
    let (api, user, [vhost], body) = call.parts_and_body().await?;
    user.require_administrator()?;
    if flag_field(&body, "tracing", false)? {
        return Err(ApiError::NotSupportedYet(
            "tracing; an exchange that is bound to another one sees its messages",
        ));
    }
    if unsupported_queue_type(&body)?.is_some() {
        return Err(ApiError::NotSupportedYet(
            "another default_queue_type than classic; a queue says its own type",
        ));
    }
    VhostName::parse(&vhost).map_err(ApiError::bad)?;
    let is_new = api.directory().put_vhost(&vhost, Some(&user.name)).await?;
    Ok(if is_new { StatusCode::CREATED } else { StatusCode::NO_CONTENT })
}

/// `DELETE /api/vhosts/{vhost}`. Beside Cassandra one that has queues, of whatever class, is refused.
pub(super) async fn delete<S: SharedState>(call: Call<S>) -> StatusAnswer {
    let (api, user, [vhost]) = call.parts();
    user.require_administrator()?;
    existed(api.directory().delete_vhost(&vhost).await?)?;
    Ok(StatusCode::NO_CONTENT)
}

/// Returns the `default_queue_type` of a virtual host, on the top or in `metadata`, if it is
/// another than Quelea's: a queue that says no type is classic.
///
/// # Errors
/// [`ApiError::BadRequest`] if it is no text.
pub(crate) fn unsupported_queue_type(body: &Value) -> Result<Option<&str>, ApiError> {
    for fields in [body, &body["metadata"]] {
        let queue_type = text_field(fields, "default_queue_type")?;
        if let Some(unknown) = queue_type.filter(|it| !QUEUE_TYPES.contains(it)) {
            return Ok(Some(unknown));
        }
    }
    Ok(None)
}

/// RabbitMQ also exports names of its modules, and `undefined` where there is none.
const QUEUE_TYPES: [&str; 4] = ["", "undefined", "classic", "rabbit_classic_queue"];
