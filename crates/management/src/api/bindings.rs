//! `/api/bindings`, and the bindings of a queue or an exchange.

use axum::Json;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::BytesMut;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use quelea_broker::report::BindingReport;
use quelea_broker::{ExchangeBinding, QueueBinding};
use quelea_model::Table;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::exchanges::name_of;
use super::listing::matching_in;
use crate::answer::{JsonAnswer, StatusAnswer};
use crate::authentication::ApiUser;
use crate::call::Call;
use crate::error::ApiError;
use crate::fields::{arguments_field, binding_key_field};
use crate::json::from_table;
use crate::list_query::{Columns, ListQuery};
use crate::listed::Listed;
use crate::operation::done_as;
use crate::paging::fetch;
use crate::state::ApiState;

/// `GET /api/queues/{vhost}/{name}/bindings`.
pub(crate) async fn of_queue(call: Call) -> JsonAnswer {
    let query = ListQuery::of(&call)?;
    let (api, user, [vhost, name]) = call.parts();
    matching_in(&api, &user, &query, vhost, |b: &BindingReport| b.to_queue && b.destination == name)
        .await
}

/// `GET /api/exchanges/{vhost}/{name}/bindings/source`.
pub(crate) async fn from_exchange(call: Call) -> JsonAnswer {
    let query = ListQuery::of(&call)?;
    let (api, user, [vhost, name]) = call.parts();
    let name = name_of(&name);
    matching_in(&api, &user, &query, vhost, |b: &BindingReport| b.source == name).await
}

/// `GET /api/exchanges/{vhost}/{name}/bindings/destination`.
pub(crate) async fn to_exchange(call: Call) -> JsonAnswer {
    let query = ListQuery::of(&call)?;
    let (api, user, [vhost, name]) = call.parts();
    matching_in(&api, &user, &query, vhost, |b: &BindingReport| {
        !b.to_queue && b.destination == name
    })
    .await
}

/// `GET /api/bindings/{vhost}/e/{source}/q/{destination}`.
pub(crate) async fn queue_pair(call: Call) -> JsonAnswer {
    let query = ListQuery::of(&call)?;
    let (api, user, [vhost, source, destination]) = call.parts();
    let source = name_of(&source);
    matching_in(&api, &user, &query, vhost, |b: &BindingReport| {
        b.to_queue && b.source == source && b.destination == destination
    })
    .await
}

/// `GET /api/bindings/{vhost}/e/{source}/e/{destination}`.
pub(crate) async fn exchange_pair(call: Call) -> JsonAnswer {
    let query = ListQuery::of(&call)?;
    let (api, user, [vhost, source, destination]) = call.parts();
    matching_in(&api, &user, &query, vhost, |b: &BindingReport| {
        !b.to_queue && b.source == source && b.destination == destination
    })
    .await
}

/// `POST /api/bindings/{vhost}/e/{source}/q/{destination}` with `routing_key` and `arguments`.
pub(crate) async fn bind_queue(call: Call) -> Result<Response, ApiError> {
    let (api, user, [vhost, source, destination], body) = call.parts_and_body().await?;
    let (routing_key, arguments) = (binding_key_field(&body)?, arguments_field(&body)?);
    let location = location([&vhost, &source, "q", &destination], &routing_key, &arguments);
    let request = QueueBinding { queue: destination, exchange: source, routing_key, arguments };
    done_as(&api, &user, vhost, move |broker, now, channel| {
        broker.bind_queue(now, channel, &request)
    })
    .await?;
    Ok((StatusCode::CREATED, [(LOCATION, location)]).into_response())
}

/// `POST /api/bindings/{vhost}/e/{source}/e/{destination}` with `routing_key` and `arguments`.
pub(crate) async fn bind_exchange(call: Call) -> Result<Response, ApiError> {
    let (api, user, [vhost, source, destination], body) = call.parts_and_body().await?;
    let (routing_key, arguments) = (binding_key_field(&body)?, arguments_field(&body)?);
    let location = location([&vhost, &source, "e", &destination], &routing_key, &arguments);
    let request = ExchangeBinding { destination, source, routing_key, arguments };
    done_as(&api, &user, vhost, move |broker, now, channel| {
        broker.bind_exchange(now, channel, &request)
    })
    .await?;
    Ok((StatusCode::CREATED, [(LOCATION, location)]).into_response())
}

/// `GET /api/bindings/{vhost}/e/{source}/q/{destination}/{properties_key}`.
pub(crate) async fn one_of_queue(call: Call) -> JsonAnswer {
    one(call, true).await
}

/// `GET /api/bindings/{vhost}/e/{source}/e/{destination}/{properties_key}`.
pub(crate) async fn one_of_exchange(call: Call) -> JsonAnswer {
    one(call, false).await
}

async fn one(call: Call, to_queue: bool) -> JsonAnswer {
    let columns = Columns::of(&call)?;
    let (api, user, path) = call.parts();
    let found = find(&api, &user, path, to_queue).await?;
    Ok(Json(columns.shown(found.to_json(&api))))
}

/// `DELETE /api/bindings/{vhost}/e/{source}/q/{destination}/{properties_key}`.
pub(crate) async fn unbind_queue(call: Call) -> StatusAnswer {
    let (api, user, path) = call.parts();
    let BindingReport {
        vhost, source: exchange, destination: queue, routing_key, arguments, ..
    } = find(&api, &user, path, true).await?;
    let request = QueueBinding { queue, exchange, routing_key, arguments };
    done_as(&api, &user, vhost.to_string(), move |broker, now, channel| {
        broker.unbind_queue(now, channel, &request)
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `DELETE /api/bindings/{vhost}/e/{source}/e/{destination}/{properties_key}`.
pub(crate) async fn unbind_exchange(call: Call) -> StatusAnswer {
    let (api, user, path) = call.parts();
    let BindingReport { vhost, source, destination, routing_key, arguments, .. } =
        find(&api, &user, path, false).await?;
    let request = ExchangeBinding { destination, source, routing_key, arguments };
    done_as(&api, &user, vhost.to_string(), move |broker, now, channel| {
        broker.unbind_exchange(now, channel, &request)
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn find(
    api: &ApiState,
    user: &ApiUser,
    [vhost, source, destination, key]: [String; 4],
    to_queue: bool,
) -> Result<BindingReport, ApiError> {
    user.require_vhost(&vhost)?;
    let source = name_of(&source);
    let is_it = |b: &BindingReport| {
        b.to_queue == to_queue
            && b.source == source
            && b.destination == destination
            && b.vhost.as_str() == vhost
            && (properties_key(&b.routing_key, &b.arguments) == key
                // Many send the key as it is.
                || (b.arguments.is_empty() && !key.is_empty() && b.routing_key == key))
    };
    let all = fetch::<BindingReport>(api, Some(vhost.clone())).await?;
    all.into_iter().find(is_it).ok_or(ApiError::NotFound)
}

/// What stays as it is in a properties key.
const PLAIN: AsciiSet = NON_ALPHANUMERIC.remove(b'.').remove(b'-').remove(b'_');

/// Returns the name that RabbitMQ gives one binding of two objects: its routing key, escaped, or
/// `~`; and a hash of its arguments behind another `~`, if it has any.
fn properties_key(routing_key: &str, arguments: &Table) -> String {
    let key = utf8_percent_encode(routing_key, &PLAIN).to_string().replace("%20", "+");
    if arguments.is_empty() {
        return if key.is_empty() { "~".to_owned() } else { key };
    }
    let mut bytes = BytesMut::new();
    arguments.encode(&mut bytes);
    let hash = Sha256::digest(&bytes);
    format!("{key}~{}", URL_SAFE_NO_PAD.encode(&hash[..16]))
}

/// Returns the path of a binding.
fn location(
    [vhost, source, kind, destination]: [&str; 4],
    routing_key: &str,
    arguments: &Table,
) -> String {
    let escape = |text| utf8_percent_encode(text, &PLAIN);
    let key = properties_key(routing_key, arguments);
    let (vhost, source, destination) = (escape(vhost), escape(source), escape(destination));
    format!("/api/bindings/{vhost}/e/{source}/{kind}/{destination}/{}", escape(&key))
}

impl Listed for BindingReport {
    fn vhost(&self) -> &str {
        self.vhost.as_str()
    }

    fn name(&self) -> &str {
        &self.routing_key
    }

    fn to_json(&self, _api: &ApiState) -> Value {
        let mut shown = definition(self);
        shown["properties_key"] = properties_key(&self.routing_key, &self.arguments).into();
        shown
    }
}

/// Returns all that defines a binding.
pub(super) fn definition(binding: &BindingReport) -> Value {
    json!({
        "source": binding.source,
        "vhost": binding.vhost.as_str(),
        "destination": binding.destination,
        "destination_type": if binding.to_queue { "queue" } else { "exchange" },
        "routing_key": binding.routing_key,
        "arguments": from_table(&binding.arguments),
    })
}

#[cfg(test)]
mod tests {
    use quelea_model::Value as Field;

    use super::*;

    #[test]
    fn a_properties_key_is_rabbitmqs() {
        let none = Table::new();
        for (routing_key, key) in [
            ("", "~"),
            ("plain.key-1_2", "plain.key-1_2"),
            ("a b", "a+b"),
            ("a~b", "a%7Eb"),
            ("stock.*.#", "stock.%2A.%23"),
            ("ü", "%C3%BC"),
        ] {
            assert_eq!(properties_key(routing_key, &none), key);
        }
    }

    #[test]
    fn bindings_that_differ_by_arguments_have_keys_of_their_own() {
        let with = |value| Table::from_iter([("x", Field::I64(value))]);
        let keys = [1, 2].map(|value| properties_key("k", &with(value)));
        assert_ne!(keys[0], keys[1]);
        for key in keys {
            let hash = key.strip_prefix("k~").unwrap();
            assert_eq!(hash.len(), 22, "{key}");
        }
        assert!(properties_key("", &with(1)).starts_with('~'));
    }

    #[test]
    fn a_binding_is_found_where_it_was_made() {
        let path = location(["/", "ex/1", "q", "q 1"], "a.#", &Table::new());
        assert_eq!(path, "/api/bindings/%2F/e/ex%2F1/q/q%201/a.%2523");
    }
}
