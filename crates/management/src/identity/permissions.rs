//! `/api/permissions`.

use axum::Json;
use axum::http::StatusCode;
use quelea_broker::access::check_pattern;
use quelea_sqs_protocol::{IdentityDirectory as _, PermissionRecord};
use serde_json::{Value, json};

use crate::answer::{JsonAnswer, StatusAnswer};
use crate::call::Call;
use crate::error::ApiError;
use crate::fields::texts;
use crate::list_query::{Columns, ListQuery};
use crate::listed::Row;
use crate::operation::existed;
use crate::state::SharedState;

/// `GET /api/permissions`.
pub(super) async fn list<S: SharedState>(call: Call<S>) -> JsonAnswer {
    let query = ListQuery::of(&call)?;
    let (api, user, []) = call.parts();
    user.require_administrator()?;
    query.answer(&(), api.directory().permissions().await?)
}

/// `GET /api/users/{user}/permissions`.
pub(super) async fn of_user<S: SharedState>(call: Call<S>) -> JsonAnswer {
    let query = ListQuery::of(&call)?;
    let (api, user, [name]) = call.parts();
    user.require_administrator()?;
    existed(api.directory().user(&name).await?.is_some())?;
    let mut permissions = api.directory().permissions().await?;
    permissions.retain(|permission| *permission.user == *name);
    query.answer(&(), permissions)
}

/// `GET /api/vhosts/{vhost}/permissions`.
pub(super) async fn of_vhost<S: SharedState>(call: Call<S>) -> JsonAnswer {
    let query = ListQuery::of(&call)?;
    let (api, user, [vhost]) = call.parts();
    user.require_administrator()?;
    existed(api.directory().vhosts().await?.iter().any(|known| *known.name == *vhost))?;
    let mut permissions = api.directory().permissions().await?;
    permissions.retain(|permission| *permission.vhost == *vhost);
    query.answer(&(), permissions)
}

/// `GET /api/permissions/{vhost}/{user}`.
pub(super) async fn one<S: SharedState>(call: Call<S>) -> JsonAnswer {
    let columns = Columns::of(&call)?;
    let (api, user, [vhost, name]) = call.parts();
    user.require_administrator()?;
    let permissions = api.directory().permissions().await?;
    let found = permissions.iter().find(|one| *one.vhost == *vhost && *one.user == *name);
    let found = found.ok_or(ApiError::NotFound)?;
    Ok(Json(columns.shown(to_json(found))))
}

/// `PUT /api/permissions/{vhost}/{user}` with `configure`, `write` and `read`. 201 if the user had none there, else
/// 204.
pub(super) async fn put<S: SharedState>(call: Call<S>) -> StatusAnswer {
    let (api, user, [vhost, name], body) = call.parts_and_body().await?;
    user.require_administrator()?;
    let [configure, write, read] = texts(&body, ["configure", "write", "read"])?;
    check_patterns(&configure, &write, &read)?;
    let (user, vhost) = (name.into(), vhost.into());
    let permission = PermissionRecord { user, vhost, configure, write, read };
    let is_new = api.directory().put_permission(permission).await?;
    Ok(if is_new { StatusCode::CREATED } else { StatusCode::NO_CONTENT })
}

/// `DELETE /api/permissions/{vhost}/{user}`.
pub(super) async fn delete<S: SharedState>(call: Call<S>) -> StatusAnswer {
    let (api, user, [vhost, name]) = call.parts();
    user.require_administrator()?;
    existed(api.directory().delete_permission(&name, &vhost).await?)?;
    Ok(StatusCode::NO_CONTENT)
}

/// # Errors
/// [`ApiError::BadRequest`], which names the field.
pub(crate) fn check_patterns(configure: &str, write: &str, read: &str) -> Result<(), ApiError> {
    for (field, pattern) in [("configure", configure), ("write", write), ("read", read)] {
        check_pattern(field, pattern).map_err(ApiError::bad)?;
    }
    Ok(())
}

pub(crate) fn to_json(permission: &PermissionRecord) -> Value {
    json!({
        "user": &*permission.user,
        "vhost": &*permission.vhost,
        "configure": permission.configure,
        "write": permission.write,
        "read": permission.read,
    })
}

impl Row<()> for PermissionRecord {
    fn name(&self) -> &str {
        &self.user
    }

    fn to_json(&self, (): &()) -> Value {
        to_json(self)
    }
}
