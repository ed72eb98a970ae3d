//! `/api/bindings`, and the bindings of a queue or an exchange.

use axum::http::StatusCode;
use quelea_broker::report::BindingReport;
use quelea_broker::{Broker, ExchangeBinding, ListKey, Listable, QueueBinding};
use serde_json::{Value, json};

use super::listing::{Listed, matching_in};
use super::{JsonAnswer, StatusAnswer, arguments_field, text_field};
use crate::call::Call;
use crate::error::ApiError;
use crate::json::from_table;
use crate::operation::done_as;
use crate::state::ApiState;

/// `GET /api/queues/{vhost}/{name}/bindings`.
pub(crate) async fn of_queue(call: Call) -> JsonAnswer {
    let (api, user, [vhost, name]) = call.parts();
    matching_in(&api, &user, vhost, |b: &BindingReport| b.to_queue && b.destination == name).await
}

/// `GET /api/exchanges/{vhost}/{name}/bindings/source`.
pub(crate) async fn from_exchange(call: Call) -> JsonAnswer {
    let (api, user, [vhost, name]) = call.parts();
    matching_in(&api, &user, vhost, |b: &BindingReport| b.source == name).await
}

/// `GET /api/exchanges/{vhost}/{name}/bindings/destination`.
pub(crate) async fn to_exchange(call: Call) -> JsonAnswer {
    let (api, user, [vhost, name]) = call.parts();
    matching_in(&api, &user, vhost, |b: &BindingReport| !b.to_queue && b.destination == name).await
}

/// `GET /api/bindings/{vhost}/e/{source}/q/{destination}`.
pub(crate) async fn queue_pair(call: Call) -> JsonAnswer {
    let (api, user, [vhost, source, destination]) = call.parts();
    matching_in(&api, &user, vhost, |b: &BindingReport| {
        b.to_queue && b.source == source && b.destination == destination
    })
    .await
}

/// `GET /api/bindings/{vhost}/e/{source}/e/{destination}`.
pub(crate) async fn exchange_pair(call: Call) -> JsonAnswer {
    let (api, user, [vhost, source, destination]) = call.parts();
    matching_in(&api, &user, vhost, |b: &BindingReport| {
        !b.to_queue && b.source == source && b.destination == destination
    })
    .await
}

/// `POST /api/bindings/{vhost}/e/{source}/q/{destination}` with `routing_key` and `arguments`.
pub(crate) async fn bind_queue(call: Call) -> StatusAnswer {
    let (api, user, [vhost, source, destination], body) = call.parts_and_body().await?;
    let (routing_key, arguments) = (routing_key(&body)?, arguments_field(&body)?);
    let request = QueueBinding { queue: destination, exchange: source, routing_key, arguments };
    done_as(&api, &user, vhost, move |broker, now, channel| {
        broker.bind_queue(now, channel, &request)
    })
    .await?;
    Ok(StatusCode::CREATED)
}

/// `POST /api/bindings/{vhost}/e/{source}/e/{destination}` with `routing_key` and `arguments`.
pub(crate) async fn bind_exchange(call: Call) -> StatusAnswer {
    let (api, user, [vhost, source, destination], body) = call.parts_and_body().await?;
    let (routing_key, arguments) = (routing_key(&body)?, arguments_field(&body)?);
    let request = ExchangeBinding { destination, source, routing_key, arguments };
    done_as(&api, &user, vhost, move |broker, now, channel| {
        broker.bind_exchange(now, channel, &request)
    })
    .await?;
    Ok(StatusCode::CREATED)
}

fn routing_key(body: &Value) -> Result<String, ApiError> {
    Ok(text_field(body, "routing_key")?.unwrap_or_default().to_owned())
}

impl Listed for BindingReport {
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
        self.vhost.as_str()
    }

    fn to_json(&self, _api: &ApiState) -> Value {
        json!({
            "source": self.source,
            "vhost": self.vhost.as_str(),
            "destination": self.destination,
            "destination_type": if self.to_queue { "queue" } else { "exchange" },
            "routing_key": self.routing_key,
            "arguments": from_table(&self.arguments),
            "properties_key": if self.routing_key.is_empty() { "~" } else { &self.routing_key },
        })
    }
}
