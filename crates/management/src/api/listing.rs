//! What the lists of all kinds of objects have in common.

use axum::Json;
use quelea_broker::Broker;
use serde_json::Value;

use super::JsonAnswer;
use crate::authentication::ApiUser;
use crate::call::Call;
use crate::error::ApiError;
use crate::operation::{existed, vhost_exists};
use crate::state::ApiState;

/// A kind of object that belongs to a virtual host, as a report of the broker.
pub(super) trait Listed: Sized + Send + 'static {
    /// Those of one virtual host, or all. What asks the broker for all of them either way may return
    /// those of others too.
    fn fetch(broker: &Broker, vhost: Option<&str>) -> Vec<Self>;

    /// The virtual host's name.
    fn vhost(&self) -> &str;

    /// As RabbitMQ shows it.
    fn to_json(&self, api: &ApiState) -> Value;
}

/// `GET /api/KIND`: those that the user may see.
pub(super) async fn list<T: Listed>(call: Call) -> JsonAnswer {
    let (api, user, []) = call.parts();
    matching(&api, |object: &T| user.sees(object.vhost())).await
}

/// `GET /api/KIND` of what only administrators see.
pub(super) async fn list_all<T: Listed>(call: Call) -> JsonAnswer {
    let (api, user, []) = call.parts();
    user.require_administrator()?;
    matching(&api, |_: &T| true).await
}

/// `GET /api/KIND/{vhost}`.
pub(super) async fn list_in<T: Listed>(call: Call) -> JsonAnswer {
    let (api, user, [vhost]) = call.parts();
    matching_in(&api, &user, vhost, |_: &T| true).await
}

/// All objects that are wanted.
pub(super) async fn matching<T: Listed>(api: &ApiState, wanted: impl Fn(&T) -> bool) -> JsonAnswer {
    let all = fetch::<T>(api, None).await?;
    Ok(array(all.iter().filter(|object| wanted(object)).map(|object| object.to_json(api))))
}

/// A virtual host's objects that are wanted, if it is there and the user may see it.
pub(super) async fn matching_in<T: Listed>(
    api: &ApiState,
    user: &ApiUser,
    vhost: String,
    wanted: impl Fn(&T) -> bool,
) -> JsonAnswer {
    user.require_vhost(&vhost)?;
    existed(vhost_exists(api, &vhost).await?)?;
    let all = fetch::<T>(api, Some(vhost.clone())).await?;
    let wanted = all.iter().filter(|object| object.vhost() == vhost && wanted(object));
    Ok(array(wanted.map(|object| object.to_json(api))))
}

/// All objects, or those of a virtual host, as [`Listed::fetch`] returns them.
pub(super) async fn fetch<T: Listed>(
    api: &ApiState,
    vhost: Option<String>,
) -> Result<Vec<T>, ApiError> {
    api.ask(move |core| T::fetch(&core.broker, vhost.as_deref())).await
}

/// A list as JSON.
pub(super) fn array(objects: impl Iterator<Item = Value>) -> Json<Value> {
    Json(Value::Array(objects.collect()))
}
