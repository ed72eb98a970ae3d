//! `/api/connections` and `/api/consumers`.

use axum::Json;
use axum::http::StatusCode;
use quelea_broker::report::{ConnectionReport, ConnectionState, ConsumerReport};
use quelea_broker::{Broker, CloseReason, ListKey};
use quelea_node::{Core, Traffic};
use serde_json::{Value, json};

use super::listing::matching;
use super::rates::{one_with_rate, with_rates};
use crate::answer::{JsonAnswer, StatusAnswer};
use crate::call::Call;
use crate::error::ApiError;
use crate::json::from_table;
use crate::list_query::{Columns, ListQuery};
use crate::listed::{InPages, Listed};
use crate::operation::existed;
use crate::paging::{by_turns, fetch};
use crate::recent::TRAFFIC_STATS;
use crate::state::ApiState;

/// A connection with what went through its socket.
#[derive(Debug)]
pub(crate) struct ListedConnection {
    pub(crate) report: ConnectionReport,
    pub(crate) traffic: Traffic,
}

impl ListedConnection {
    fn rates(&self, api: &ApiState) -> Option<[f64; TRAFFIC_STATS.len()]> {
        let recent = api.recent();
        recent.connections.rates(&self.report.id)
    }
}

/// `GET /api/connections/{name}`.
pub(crate) async fn one(call: Call) -> JsonAnswer {
    let columns = Columns::of(&call)?;
    let (api, user, [name]) = call.parts();
    let found = find(&api, &name).await?;
    user.require_vhost(found.vhost())?;
    Ok(Json(columns.shown(found.to_json(&api))))
}

/// `DELETE /api/connections/{name}`: closes it with 320 `CONNECTION_FORCED` and the text of the
/// header `X-Reason`.
pub(crate) async fn close(call: Call) -> StatusAnswer {
    let reason = close_reason(&call);
    let (api, user, [name]) = call.parts();
    let found = find(&api, &name).await?;
    if found.report.user != user.name {
        user.require_administrator()?;
    }
    let id = found.report.id;
    existed(api.on_core(move |core| core.broker.request_close(id, reason)).await?)?;
    Ok(StatusCode::NO_CONTENT)
}

/// `GET /api/connections/username/{user}`.
pub(crate) async fn of_user(call: Call) -> JsonAnswer {
    let query = ListQuery::of(&call)?;
    let (api, user, [name]) = call.parts();
    let is_wanted = |c: &ListedConnection| c.report.user == name && user.sees(c.vhost());
    matching(&api, &query, is_wanted).await
}

/// `DELETE /api/connections/username/{user}`: closes all of a user, as [`close`] does one.
pub(crate) async fn close_of_user(call: Call) -> StatusAnswer {
    let reason = close_reason(&call);
    let (api, user, [name]) = call.parts();
    if name != user.name {
        user.require_administrator()?;
    }
    let connections = fetch::<ListedConnection>(&api, None).await?;
    let reports = connections.iter().map(|connection| &connection.report);
    for connection in reports.filter(|connection| connection.user == name) {
        let (id, reason) = (connection.id, reason.clone());
        // One that has gone by itself meanwhile is as good.
        api.on_core(move |core| core.broker.request_close(id, reason)).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}

/// Returns what the detail of a queue or a channel says of consumers.
pub(super) async fn consumer_details(
    api: &ApiState,
    keys: Vec<ListKey>,
) -> Result<Value, ApiError> {
    let consumers = by_turns(api, keys, ConsumerReport::page).await?;
    Ok(consumers.iter().map(|consumer| consumer.to_json(api)).collect())
}

fn close_reason(call: &Call) -> CloseReason {
    let reason = call.headers().get("x-reason").and_then(|value| value.to_str().ok());
    let reason = reason.unwrap_or("Closed via management plugin").to_owned();
    CloseReason::Administrator { reason }
}

/// Returns the connection of that name.
///
/// # Errors
/// [`ApiError::NotFound`].
pub(super) async fn find(api: &ApiState, name: &str) -> Result<ListedConnection, ApiError> {
    let connections = fetch::<ListedConnection>(api, None).await?;
    connections.into_iter().find(|c| c.report.name == name).ok_or(ApiError::NotFound)
}

/// Splits an address such as `10.0.0.1:5672` into host and port; one that is none is shown as it
/// is.
pub(super) fn host_and_port(address: &str) -> (&str, Option<u16>) {
    match address.rsplit_once(':') {
        Some((host, port)) => (host.trim_matches(['[', ']']), port.parse().ok()),
        None => (address, None),
    }
}

impl InPages for ListedConnection {
    fn keys(broker: &mut Broker, vhost: Option<&str>) -> Vec<ListKey> {
        broker.list_keys::<ConnectionReport>(vhost)
    }

    fn page(core: &mut Core, keys: &[ListKey]) -> (Vec<Self>, usize) {
        let (reports, looked_at) = core.broker.list_page::<ConnectionReport>(keys);
        let with_traffic =
            |report: ConnectionReport| Self { traffic: core.traffic(report.id), report };
        (reports.into_iter().map(with_traffic).collect(), looked_at)
    }
}

impl Listed for ListedConnection {
    fn vhost(&self) -> &str {
        self.report.vhost.as_str()
    }

    fn name(&self) -> &str {
        &self.report.name
    }

    fn column(&self, api: &ApiState, column: &[String]) -> Option<Value> {
        match column {
            [name] if name == "send_pend" => Some(json!(self.report.output_waiting_bytes)),
            [name] if name == "channels" => Some(json!(self.report.channels)),
            _ => one_with_rate(TRAFFIC_STATS, &self.traffic, self.rates(api), column),
        }
    }

    fn to_json(&self, api: &ApiState) -> Value {
        let mut shown = connection(api, &self.report);
        shown["recv_cnt"] = json!(self.traffic.reads);
        shown["send_cnt"] = json!(self.traffic.writes);
        let octets = with_rates(TRAFFIC_STATS, &self.traffic, self.rates(api));
        octets.into_iter().for_each(|(name, value)| shown[name] = value);
        shown
    }
}

fn connection(api: &ApiState, report: &ConnectionReport) -> Value {
    let (peer_host, peer_port) = host_and_port(&report.peer);
    let (host, port) = host_and_port(&report.local);
    json!({
        "name": report.name,
        "node": &*api.node,
        "user": report.user,
        "vhost": report.vhost.as_str(),
        "peer_host": peer_host,
        "peer_port": peer_port,
        "host": host,
        "port": port,
        "ssl": false,
        "protocol": report.protocol,
        "auth_mechanism": report.mechanism,
        "client_properties": from_table(&report.client_properties),
        "user_provided_name": report.client_properties.get("connection_name")
            .and_then(quelea_model::Value::as_text),
        "connected_at": report.connected_at.as_millis(),
        "channels": report.channels,
        "channel_max": report.channel_max,
        "frame_max": report.frame_max,
        "timeout": report.heartbeat_s,
        "send_pend": report.output_waiting_bytes,
        "state": match report.state {
            ConnectionState::Running => "running",
            ConnectionState::Flow => "flow",
            ConnectionState::Blocking => "blocking",
            ConnectionState::Blocked => "blocked",
        },
        "type": "network",
    })
}

impl Listed for ConsumerReport {
    fn vhost(&self) -> &str {
        self.vhost.as_str()
    }

    fn name(&self) -> &str {
        &self.tag
    }

    fn to_json(&self, _api: &ApiState) -> Value {
        json!({
            "consumer_tag": &*self.tag,
            "queue": { "name": self.queue.as_str(), "vhost": self.vhost.as_str() },
            "channel_details": {
                "name": format!("{} ({})", self.connection_name, self.channel_number),
                "number": self.channel_number,
                "connection_name": self.connection_name,
            },
            "ack_required": self.ack_required,
            "exclusive": self.exclusive,
            "active": self.active,
            "activity_status": if self.active { "up" } else { "waiting" },
            "prefetch_count": self.prefetch_count,
            "messages_unacknowledged": self.messages_unacknowledged,
            "messages_delivered": self.messages_delivered,
            "priority": self.priority,
            "arguments": from_table(&self.arguments),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_split_at_its_last_colon() {
        assert_eq!(host_and_port("127.0.0.1:80"), ("127.0.0.1", Some(80)));
        assert_eq!(host_and_port("[::1]:80"), ("::1", Some(80)));
        assert_eq!(host_and_port("socket"), ("socket", None));
    }
}
