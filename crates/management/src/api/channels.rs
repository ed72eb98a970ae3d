//! `/api/channels`.

use axum::Json;
use quelea_broker::report::ChannelReport;
use quelea_broker::{Broker, ListKey};
use quelea_node::{Core, PublisherState};
use serde_json::{Value, json};

use super::connections::{self, consumer_details, host_and_port};
use super::listing::matching;
use super::rates::{one_with_rate, with_rates};
use crate::answer::JsonAnswer;
use crate::call::Call;
use crate::error::ApiError;
use crate::limits::DETAILS_MAX;
use crate::list_query::{Columns, ListQuery};
use crate::listed::{InPages, Listed};
use crate::paging::fetch;
use crate::recent::{CHANNEL_STATS, ChannelCounters};
use crate::state::ApiState;

/// A channel with all that is counted of it.
#[derive(Debug)]
pub(crate) struct ListedChannel {
    pub(crate) report: ChannelReport,
    pub(crate) counters: ChannelCounters,
    pub(crate) publisher: PublisherState,
}

impl ListedChannel {
    pub(crate) fn shown_name(&self) -> String {
        format!("{} ({})", self.report.connection_name, self.report.number)
    }

    fn rates(&self, api: &ApiState) -> Option<[f64; CHANNEL_STATS.len()]> {
        let recent = api.recent();
        recent.channels.rates(&self.report.id)
    }
}

/// `GET /api/channels/{name}`.
pub(crate) async fn one(call: Call) -> JsonAnswer {
    let columns = Columns::of(&call)?;
    let (api, user, [name]) = call.parts();
    let channels = fetch::<ListedChannel>(&api, None).await?;
    let found = channels.iter().find(|channel| channel.shown_name() == name);
    let found = found.ok_or(ApiError::NotFound)?;
    user.require_vhost(found.vhost())?;
    let (mut shown, id) = (found.to_json(&api), found.report.id);
    let keys = api.on_core(move |core| core.broker.consumers_of_channel(id, DETAILS_MAX)).await?;
    shown["consumer_details"] = consumer_details(&api, keys).await?;
    Ok(Json(columns.shown(shown)))
}

/// `GET /api/connections/{name}/channels`.
pub(crate) async fn of_connection(call: Call) -> JsonAnswer {
    let query = ListQuery::of(&call)?;
    let (api, user, [name]) = call.parts();
    let connection = connections::find(&api, &name).await?;
    user.require_vhost(connection.vhost())?;
    let is_wanted = |c: &ListedChannel| c.report.connection_name == name && user.sees(c.vhost());
    matching(&api, &query, is_wanted).await
}

impl InPages for ListedChannel {
    fn keys(broker: &mut Broker, vhost: Option<&str>) -> Vec<ListKey> {
        broker.list_keys::<ChannelReport>(vhost)
    }

    fn page(core: &mut Core, keys: &[ListKey]) -> (Vec<Self>, usize) {
        let (reports, looked_at) = core.broker.list_page::<ChannelReport>(keys);
        let with_confirmed = |report: ChannelReport| {
            let publisher = core.publisher_state(report.connection, report.number);
            let (messages, confirmed) = (report.counters, publisher.confirmed);
            Self { counters: ChannelCounters { messages, confirmed }, publisher, report }
        };
        (reports.into_iter().map(with_confirmed).collect(), looked_at)
    }
}

impl Listed for ListedChannel {
    fn vhost(&self) -> &str {
        self.report.vhost.as_str()
    }

    fn name(&self) -> &str {
        &self.report.connection_name
    }

    fn column(&self, api: &ApiState, column: &[String]) -> Option<Value> {
        let [field, rest @ ..] = column else { return None };
        match field.as_str() {
            "messages_unacknowledged" if rest.is_empty() => {
                Some(json!(self.report.messages_unacknowledged))
            }
            "message_stats" => one_with_rate(CHANNEL_STATS, &self.counters, self.rates(api), rest),
            _ => None,
        }
    }

    fn to_json(&self, api: &ApiState) -> Value {
        let (report, publisher) = (&self.report, &self.publisher);
        let (peer_host, peer_port) = host_and_port(&report.peer);
        json!({
            "name": self.shown_name(),
            "node": &*api.node,
            "number": report.number,
            "connection_details": {
                "name": report.connection_name,
                "peer_host": peer_host,
                "peer_port": peer_port,
            },
            "user": report.user,
            "vhost": report.vhost.as_str(),
            "consumer_count": report.consumers,
            "messages_unacknowledged": report.messages_unacknowledged,
            "confirm": publisher.confirms,
            "transactional": publisher.transactional,
            "messages_unconfirmed": publisher.unconfirmed,
            "prefetch_count": report.prefetch_count,
            "global_prefetch_count": report.global_prefetch_count,
            "state": "running",
            "message_stats": with_rates(CHANNEL_STATS, &self.counters, self.rates(api)),
        })
    }
}
