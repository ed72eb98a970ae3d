//! `/api/vhosts`: what is in them. They are made and deleted in `identity/vhosts.rs`.

use axum::Json;
use quelea_broker::report::VhostReport;
use quelea_broker::{Broker, ListKey, Listable};
use quelea_node::Core;
use serde_json::{Value, json};

use super::JsonAnswer;
use super::listing::{Listed, fetch};
use super::rates::{self, RateQuery, Shown};
use crate::call::Call;
use crate::error::ApiError;
use crate::history::Subject;
use crate::state::ApiState;

/// `GET /api/vhosts/{vhost}`.
pub(crate) async fn one(call: Call) -> JsonAnswer {
    let (api, user, [vhost]) = call.parts();
    user.require_vhost(&vhost)?;
    let found = fetch::<VhostReport>(&api, Some(vhost)).await?;
    let found = found.first().ok_or(ApiError::NotFound)?;
    Ok(Json(found.to_json(&api)))
}

impl Listed for VhostReport {
    fn keys(broker: &mut Broker, vhost: Option<&str>) -> Vec<ListKey> {
        broker.list_keys::<Self>(vhost)
    }

    fn page(core: &mut Core, keys: &[ListKey]) -> (Vec<Self>, usize) {
        core.broker.list_page(keys)
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
