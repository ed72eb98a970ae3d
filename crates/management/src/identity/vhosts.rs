//! What makes and deletes virtual hosts. What is in them is shown in `api/vhosts.rs`.

use axum::http::StatusCode;
use quelea_model::VhostName;
use quelea_sqs_protocol::IdentityDirectory as _;

use crate::api::{StatusAnswer, flag_field};
use crate::call::Call;
use crate::error::ApiError;
use crate::operation::existed;
use crate::state::SharedState;

/// `PUT /api/vhosts/{vhost}`: 201 if it is new, 204 if it was there. Its maker gets all permissions. Of what RabbitMQ takes
/// besides, `tracing` is refused, since messages would be missed; `description`, `tags` and `default_queue_type` are passed over.
pub(super) async fn put<S: SharedState>(call: Call<S>) -> StatusAnswer {
    let (api, user, [vhost], body) = call.parts_and_body().await?;
    user.require_administrator()?;
    if flag_field(&body, "tracing", false)? {
        return Err(ApiError::NotSupportedYet(
            "tracing; an exchange that is bound to another one sees its messages",
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
