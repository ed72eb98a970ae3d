//! Virtual hosts of a node whose accounts are in Cassandra: they come and go as accounts.

use axum::http::StatusCode;
use quelea_sqs_protocol::IdentityDirectory;

use super::{FrontEnd, accounts};
use crate::api::StatusAnswer;
use crate::call::Call;
use crate::operation::existed;
use crate::state::SharedState as _;

/// `PUT /api/vhosts/{vhost}`: 201 if it is new, 204 if it was there. Its maker gets all permissions.
pub(crate) async fn put<D: IdentityDirectory>(call: Call<FrontEnd<D>>) -> StatusAnswer {
    let (api, user, [vhost]) = call.parts();
    user.require_administrator()?;
    accounts::make(&api, &user, api.account_of(&vhost)).await
}

/// `DELETE /api/vhosts/{vhost}`. One that has queues, of whatever class, is refused.
pub(crate) async fn delete<D: IdentityDirectory>(call: Call<FrontEnd<D>>) -> StatusAnswer {
    let (api, user, [vhost]) = call.parts();
    user.require_administrator()?;
    existed(api.directory.delete_account(api.account_of(&vhost)).await?)?;
    Ok(StatusCode::NO_CONTENT)
}
