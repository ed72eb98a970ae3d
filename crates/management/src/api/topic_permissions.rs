//! `/api/topic-permissions`: the broker's own, wherever its users are, since exchanges are.

use axum::Json;
use axum::http::StatusCode;
use quelea_broker::access::TopicPermission;
use quelea_sqs_protocol::IdentityDirectory as _;
use serde_json::{Value, json};

use super::exchanges::name_of;
use super::listing::matching;
use crate::answer::{JsonAnswer, StatusAnswer};
use crate::call::Call;
use crate::error::ApiError;
use crate::fields::{text_field, texts};
use crate::list_query::ListQuery;
use crate::listed::{Listed, array};
use crate::operation::{done, existed, vhost_exists};
use crate::paging::fetch;
use crate::state::{ApiState, BrokerState};

/// `GET /api/users/{user}/topic-permissions`.
pub(crate) async fn of_user<S: BrokerState>(call: Call<S>) -> JsonAnswer {
    let query = ListQuery::of(&call)?;
    let (api, user, [name]) = call.parts();
    user.require_administrator()?;
    existed(api.directory().user(&name).await?.is_some())?;
    matching(api.broker(), &query, |p: &TopicPermission| *p.user == *name).await
}

/// `GET /api/vhosts/{vhost}/topic-permissions`.
pub(crate) async fn of_vhost(call: Call) -> JsonAnswer {
    let query = ListQuery::of(&call)?;
    let (api, user, [vhost]) = call.parts();
    user.require_administrator()?;
    existed(vhost_exists(&api, &vhost).await?)?;
    matching(&api, &query, |p: &TopicPermission| p.vhost() == vhost).await
}

/// `GET /api/topic-permissions/{vhost}/{user}`: a list, one entry an exchange.
pub(crate) async fn one(call: Call) -> JsonAnswer {
    let (api, user, [vhost, name]) = call.parts();
    user.require_administrator()?;
    let mut permissions = fetch::<TopicPermission>(&api, None).await?;
    permissions.retain(|p| p.vhost() == vhost && *p.user == *name);
    existed(!permissions.is_empty())?;
    Ok(array(permissions.iter().map(|permission| permission.to_json(&api))))
}

/// `PUT /api/topic-permissions/{vhost}/{user}` with `exchange`, `write` and `read`. 201 if the user had none in the virtual
/// host, as RabbitMQ says it, else 204.
pub(crate) async fn put(call: Call) -> StatusAnswer {
    let (api, user, [vhost, name], body) = call.parts_and_body().await?;
    user.require_administrator()?;
    let [exchange, write, read] = texts(&body, ["exchange", "write", "read"])?;
    let permissions = fetch::<TopicPermission>(&api, None).await?;
    let known = permissions.iter().any(|p| p.vhost() == vhost && *p.user == *name);
    done(&api, move |core| {
        core.broker.set_topic_permissions(core.now(), &name, &vhost, &exchange, &write, &read)
    })
    .await?;
    Ok(if known { StatusCode::NO_CONTENT } else { StatusCode::CREATED })
}

/// `DELETE /api/topic-permissions/{vhost}/{user}`: of one `exchange` if the body names it, or all.
pub(crate) async fn delete(call: Call) -> StatusAnswer {
    let (api, user, [vhost, name], body) = call.parts_and_body().await?;
    user.require_administrator()?;
    let exchange = text_field(&body, "exchange")?.map(str::to_owned);
    let permissions = fetch::<TopicPermission>(&api, None).await?;
    existed(permissions.iter().any(|p| p.vhost() == vhost && *p.user == *name))?;
    done(&api, move |core| {
        core.broker.clear_topic_permissions(core.now(), &name, &vhost, exchange.as_deref())
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `GET /api/topic-permissions/{vhost}/{user}/{exchange}`.
pub(crate) async fn one_of_exchange(call: Call) -> JsonAnswer {
    let (api, user, [vhost, name, exchange]) = call.parts();
    user.require_administrator()?;
    let permissions = fetch::<TopicPermission>(&api, None).await?;
    let found = permissions.iter().find(|p| is_of(p, &vhost, &name, name_of(&exchange)));
    found.map(|permission| Json(permission.to_json(&api))).ok_or(ApiError::NotFound)
}

/// `DELETE /api/topic-permissions/{vhost}/{user}/{exchange}`.
pub(crate) async fn delete_of_exchange(call: Call) -> StatusAnswer {
    let (api, user, [vhost, name, exchange]) = call.parts();
    user.require_administrator()?;
    let exchange = name_of(&exchange).to_owned();
    let permissions = fetch::<TopicPermission>(&api, None).await?;
    existed(permissions.iter().any(|p| is_of(p, &vhost, &name, &exchange)))?;
    done(&api, move |core| {
        core.broker.clear_topic_permissions(core.now(), &name, &vhost, Some(&exchange))
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}

fn is_of(permission: &TopicPermission, vhost: &str, user: &str, exchange: &str) -> bool {
    permission.vhost() == vhost && *permission.user == *user && *permission.exchange == *exchange
}

impl Listed for TopicPermission {
    fn vhost(&self) -> &str {
        self.vhost.as_str()
    }

    fn name(&self) -> &str {
        &self.user
    }

    fn to_json(&self, _api: &ApiState) -> Value {
        json!({
            "user": &*self.user,
            "vhost": self.vhost.as_str(),
            "exchange": &*self.exchange,
            "write": &*self.write,
            "read": &*self.read,
        })
    }
}
