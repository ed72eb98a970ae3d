//! `/api/vhosts`.

use axum::Json;
use axum::http::StatusCode;
use quelea_broker::report::VhostReport;
use quelea_broker::{Broker, ListKey, Listable};
use serde_json::{Value, json};

use super::listing::{Listed, fetch};
use super::rates::{self, RateQuery, Shown};
use super::{JsonAnswer, StatusAnswer};
use crate::call::Call;
use crate::error::ApiError;
use crate::history::Subject;
use crate::operation::{done, existed, make_vhost, vhost_exists};
use crate::state::ApiState;

/// `GET /api/vhosts/{vhost}`.
pub(crate) async fn one(call: Call) -> JsonAnswer {
    let (api, user, [vhost]) = call.parts();
    user.require_vhost(&vhost)?;
    let found = fetch::<VhostReport>(&api, Some(vhost)).await?;
    let found = found.first().ok_or(ApiError::NotFound)?;
    Ok(Json(found.to_json(&api)))
}

/// `PUT /api/vhosts/{vhost}`: 201 if it is new, 204 if it was there. Its maker gets all permissions.
pub(crate) async fn put(call: Call) -> StatusAnswer {
    let (api, user, [vhost]) = call.parts();
    user.require_administrator()?;
    if vhost_exists(&api, &vhost).await? {
        return Ok(StatusCode::NO_CONTENT);
    }
    make_vhost(&api, &user, vhost).await?;
    Ok(StatusCode::CREATED)
}

/// `DELETE /api/vhosts/{vhost}`.
pub(crate) async fn delete(call: Call) -> StatusAnswer {
    let (api, user, [vhost]) = call.parts();
    user.require_administrator()?;
    existed(vhost_exists(&api, &vhost).await?)?;
    done(&api, move |core| core.broker.delete_vhost(core.now(), &vhost)).await?;
    Ok(StatusCode::NO_CONTENT)
}

impl Listed for VhostReport {
    fn keys(broker: &mut Broker, vhost: Option<&str>) -> Vec<ListKey> {
        broker.list_keys::<Self>(vhost)
    }

    fn page(broker: &mut Broker, keys: &[ListKey]) -> (Vec<Self>, usize) {
        broker.list_page(keys)
    }

    fn sort(all: &mut Vec<Self>) {
        Listable::sort(all);
    }

    fn vhost(&self) -> &str {
        self.name.as_str()
    }

    fn name(&self) -> &str {
        self.name.as_str()
    }

    fn to_json(&self, api: &ApiState) -> Value {
        let mut shown = json!({
            "name": self.name.as_str(),
            "queues": self.queues,
            "messages": self.messages_ready + self.messages_unacknowledged,
            "messages_ready": self.messages_ready,
            "messages_unacknowledged": self.messages_unacknowledged,
            "tracing": false,
        });
        let subject = Subject::Vhost(self.name.clone());
        let shown_of = Shown::Of(&subject);
        rates::add(api, &mut shown, shown_of, &self.counters, RateQuery::default());
        shown
    }
}
