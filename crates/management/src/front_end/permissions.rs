//! `/api/permissions` of a front-end. A virtual host is an account, and `/` the account of `sqs.account_id`.

use axum::Json;
use axum::http::StatusCode;
use quelea_sqs_protocol::{IdentityDirectory, PermissionRecord};
use serde_json::{Value, json};

use super::FrontEnd;
use crate::api::permissions::texts;
use crate::api::{JsonAnswer, StatusAnswer};
use crate::call::Call;
use crate::error::ApiError;
use crate::operation::existed;
use crate::state::SharedState as _;

/// `GET /api/permissions`.
pub(super) async fn list<D: IdentityDirectory>(call: Call<FrontEnd<D>>) -> JsonAnswer {
    let (api, user, []) = call.parts();
    user.require_administrator()?;
    matching(&api, |_| true).await
}

/// `GET /api/users/{user}/permissions`.
pub(super) async fn of_user<D: IdentityDirectory>(call: Call<FrontEnd<D>>) -> JsonAnswer {
    let (api, user, [name]) = call.parts();
    user.require_administrator()?;
    matching(&api, |permission| *permission.user == *name).await
}

/// `GET /api/vhosts/{vhost}/permissions`.
pub(super) async fn of_vhost<D: IdentityDirectory>(call: Call<FrontEnd<D>>) -> JsonAnswer {
    let (api, user, [vhost]) = call.parts();
    user.require_administrator()?;
    matching(&api, |permission| *permission.account == *api.account_of(&vhost)).await
}

/// `GET /api/permissions/{vhost}/{user}`.
pub(super) async fn one<D: IdentityDirectory>(call: Call<FrontEnd<D>>) -> JsonAnswer {
    let (api, user, [vhost, name]) = call.parts();
    user.require_administrator()?;
    let permissions = api.directory.permissions().await?;
    let account = api.account_of(&vhost);
    let found = permissions.iter().find(|one| *one.account == *account && *one.user == *name);
    found.map(|permission| Json(to_json(&api, permission))).ok_or(ApiError::NotFound)
}

/// `PUT /api/permissions/{vhost}/{user}` with `configure`, `write` and `read`.
pub(super) async fn put<D: IdentityDirectory>(call: Call<FrontEnd<D>>) -> StatusAnswer {
    let (api, user, [vhost, name], body) = call.parts_and_body().await?;
    user.require_administrator()?;
    let [configure, write, read] = texts(&body, ["configure", "write", "read"])?;
    let (user, account) = (name.into(), api.account_of(&vhost).into());
    let permission = PermissionRecord { user, account, configure, write, read };
    api.directory.put_permission(permission).await?;
    Ok(StatusCode::CREATED)
}

/// `DELETE /api/permissions/{vhost}/{user}`.
pub(super) async fn delete<D: IdentityDirectory>(call: Call<FrontEnd<D>>) -> StatusAnswer {
    let (api, user, [vhost, name]) = call.parts();
    user.require_administrator()?;
    existed(api.directory.delete_permission(&name, api.account_of(&vhost)).await?)?;
    Ok(StatusCode::NO_CONTENT)
}

async fn matching<D: IdentityDirectory>(
    api: &FrontEnd<D>,
    is_wanted: impl Fn(&PermissionRecord) -> bool,
) -> JsonAnswer {
    let permissions = api.directory.permissions().await?;
    let wanted = permissions.iter().filter(|permission| is_wanted(permission));
    Ok(Json(Value::Array(wanted.map(|permission| to_json(api, permission)).collect())))
}

fn to_json<D: IdentityDirectory>(api: &FrontEnd<D>, permission: &PermissionRecord) -> Value {
    json!({
        "user": &*permission.user,
        "vhost": api.vhost_of(&permission.account),
        "configure": permission.configure,
        "write": permission.write,
        "read": permission.read,
    })
}
