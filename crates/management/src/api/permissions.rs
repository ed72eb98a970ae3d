//! `/api/permissions` and `/api/topic-permissions`.

use axum::Json;
use axum::http::StatusCode;
use quelea_broker::Broker;
use quelea_broker::access::{Permission, TopicPermission};
use serde_json::{Value, json};

use super::listing::{Listed, array, fetch, matching, query};
use super::{JsonAnswer, StatusAnswer, required_field, text_field};
use crate::call::Call;
use crate::error::ApiError;
use crate::operation::{done, existed};
use crate::state::ApiState;

/// `GET /api/users/{user}/permissions`.
pub(crate) async fn of_user(call: Call) -> JsonAnswer {
    let query = query(&call)?;
    let (api, user, [name]) = call.parts();
    user.require_administrator()?;
    matching(&api, &query, |p: &Permission| *p.user == *name).await
}

/// `GET /api/vhosts/{vhost}/permissions`.
pub(crate) async fn of_vhost(call: Call) -> JsonAnswer {
    let query = query(&call)?;
    let (api, user, [vhost]) = call.parts();
    user.require_administrator()?;
    matching(&api, &query, |p: &Permission| p.vhost() == vhost).await
}

/// `GET /api/users/{user}/topic-permissions`.
pub(crate) async fn topics_of_user(call: Call) -> JsonAnswer {
    let query = query(&call)?;
    let (api, user, [name]) = call.parts();
    user.require_administrator()?;
    matching(&api, &query, |p: &TopicPermission| *p.user == *name).await
}

/// `GET /api/vhosts/{vhost}/topic-permissions`.
pub(crate) async fn topics_of_vhost(call: Call) -> JsonAnswer {
    let query = query(&call)?;
    let (api, user, [vhost]) = call.parts();
    user.require_administrator()?;
    matching(&api, &query, |p: &TopicPermission| p.vhost() == vhost).await
}

/// `GET /api/permissions/{vhost}/{user}`.
pub(crate) async fn one(call: Call) -> JsonAnswer {
    let (api, user, [vhost, name]) = call.parts();
    user.require_administrator()?;
    let permissions = fetch::<Permission>(&api, None).await?;
    let found = permissions.iter().find(|p| p.vhost() == vhost && *p.user == *name);
    found.map(|permission| Json(permission.to_json(&api))).ok_or(ApiError::NotFound)
}

/// `PUT /api/permissions/{vhost}/{user}` with `configure`, `write` and `read`.
pub(crate) async fn put(call: Call) -> StatusAnswer {
    let (api, user, [vhost, name], body) = call.parts_and_body().await?;
    user.require_administrator()?;
    let [configure, write, read] = texts(&body, ["configure", "write", "read"])?;
    done(&api, move |core| {
        core.broker.set_permissions(core.now(), &name, &vhost, &configure, &write, &read)
    })
    .await?;
    Ok(StatusCode::CREATED)
}

/// `DELETE /api/permissions/{vhost}/{user}`.
pub(crate) async fn delete(call: Call) -> StatusAnswer {
    let (api, user, [vhost, name]) = call.parts();
    user.require_administrator()?;
    let permissions = fetch::<Permission>(&api, None).await?;
    existed(permissions.iter().any(|p| p.vhost() == vhost && *p.user == *name))?;
    done(&api, move |core| core.broker.clear_permissions(core.now(), &name, &vhost)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `GET /api/topic-permissions/{vhost}/{user}`: a list, one entry an exchange.
pub(crate) async fn one_topic(call: Call) -> JsonAnswer {
    let (api, user, [vhost, name]) = call.parts();
    user.require_administrator()?;
    let mut permissions = fetch::<TopicPermission>(&api, None).await?;
    permissions.retain(|p| p.vhost() == vhost && *p.user == *name);
    existed(!permissions.is_empty())?;
    Ok(array(permissions.iter().map(|permission| permission.to_json(&api))))
}

/// `PUT /api/topic-permissions/{vhost}/{user}` with `exchange`, `write` and `read`.
pub(crate) async fn put_topic(call: Call) -> StatusAnswer {
    let (api, user, [vhost, name], body) = call.parts_and_body().await?;
    user.require_administrator()?;
    let [exchange, write, read] = texts(&body, ["exchange", "write", "read"])?;
    done(&api, move |core| {
        core.broker.set_topic_permissions(core.now(), &name, &vhost, &exchange, &write, &read)
    })
    .await?;
    Ok(StatusCode::CREATED)
}

/// `DELETE /api/topic-permissions/{vhost}/{user}`: of one `exchange` if the body names it, or all.
pub(crate) async fn delete_topic(call: Call) -> StatusAnswer {
    let (api, user, [vhost, name], body) = call.parts_and_optional_body().await?;
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

pub(crate) fn texts<const N: usize>(
    body: &Value,
    fields: [&str; N],
) -> Result<[String; N], ApiError> {
    let mut texts = [const { String::new() }; N];
    for (text, field) in texts.iter_mut().zip(fields) {
        required_field(body, field)?.clone_into(text);
    }
    Ok(texts)
}

impl Listed for Permission {
    fn fetch(broker: &Broker, _vhost: Option<&str>) -> Vec<Self> {
        broker.access().accounts().permissions().cloned().collect()
    }

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
            "configure": &*self.configure,
            "write": &*self.write,
            "read": &*self.read,
        })
    }
}

impl Listed for TopicPermission {
    fn fetch(broker: &Broker, _vhost: Option<&str>) -> Vec<Self> {
        broker.access().accounts().topic_permissions().cloned().collect()
    }

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
