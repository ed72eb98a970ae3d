//! `/api/vhosts`: what is in them. They are made and deleted in `identity/vhosts.rs`.

use axum::Json;
use quelea_broker::report::VhostReport;
use serde_json::{Value, json};

use super::rates::{self, RateQuery, Shown};
use crate::answer::JsonAnswer;
use crate::call::Call;
use crate::error::ApiError;
use crate::history::Subject;
use crate::list_query::Columns;
use crate::listed::Listed;
use crate::paging::fetch;
use crate::state::ApiState;

/// `GET /api/vhosts/{vhost}`, with `lengths_age` and the like, as of a queue.
pub(crate) async fn one(call: Call) -> JsonAnswer {
    let columns = Columns::of(&call)?;
    let query = RateQuery::parse(&call.query()?)?;
    let (api, user, [vhost]) = call.parts();
    user.require_vhost(&vhost)?;
    let found = fetch::<VhostReport>(&api, Some(vhost)).await?;
    let found = found.first().ok_or(ApiError::NotFound)?;
    Ok(Json(columns.shown(shown(&api, found, query))))
}

fn shown(api: &ApiState, vhost: &VhostReport, query: RateQuery) -> Value {
    let mut shown = json!({
        "name": vhost.name.as_str(),
        "queues": vhost.queues,
        "messages": vhost.messages_ready + vhost.messages_unacknowledged,
        "messages_ready": vhost.messages_ready,
        "messages_unacknowledged": vhost.messages_unacknowledged,
        "tracing": false,
    });
    rates::add(api, &mut shown, Shown::Of(&Subject::Vhost(vhost.id)), &vhost.counters, query);
    shown
}

impl Listed for VhostReport {
    fn vhost(&self) -> &str {
        self.name.as_str()
    }

    fn name(&self) -> &str {
        self.name.as_str()
    }

    fn to_json(&self, api: &ApiState) -> Value {
        shown(api, self, RateQuery::default())
    }
}
