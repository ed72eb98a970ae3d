//! `/api/exchanges`.

use axum::Json;
use axum::http::StatusCode;
use quelea_broker::DeclareExchange;
use quelea_broker::report::ExchangeReport;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::rates::{one_with_rate, with_rates};
use crate::answer::{JsonAnswer, StatusAnswer};
use crate::call::Call;
use crate::error::ApiError;
use crate::fields::{arguments_field, flag_field, text_field};
use crate::json::from_table;
use crate::list_query::Columns;
use crate::listed::Listed;
use crate::operation::{done_as, existed, until_free};
use crate::paging::fetch;
use crate::recent::EXCHANGE_STATS;
use crate::state::ApiState;

/// `GET /api/exchanges/{vhost}/{name}`; the default exchange is called `amq.default` here.
pub(crate) async fn one(call: Call) -> JsonAnswer {
    let columns = Columns::of(&call)?;
    let (api, user, [vhost, name]) = call.parts();
    user.require_vhost(&vhost)?;
    let found = fetch_one(&api, vhost, &name).await?;
    let found = found.ok_or(ApiError::NotFound)?;
    Ok(Json(columns.shown(found.to_json(&api))))
}

/// `PUT /api/exchanges/{vhost}/{name}` with `type` (default `direct`, as in RabbitMQ), `durable` (default true), `auto_delete`,
/// `internal` and `arguments`. 201 if it is new, 204 if it was there.
pub(crate) async fn declare(call: Call) -> StatusAnswer {
    let (api, user, [vhost, name], body) = call.parts_and_body().await?;
    let known = fetch_one(&api, vhost.clone(), &name).await?.is_some();
    let arguments = arguments_field(&body)?;
    let request = DeclareExchange {
        name,
        kind: text_field(&body, "type")?.unwrap_or("direct").to_owned(),
        passive: false,
        durable: flag_field(&body, "durable", true)?,
        auto_delete: flag_field(&body, "auto_delete", false)?,
        internal: flag_field(&body, "internal", false)?,
        arguments,
    };
    let (within, wanted) = (vhost.clone(), request.name.clone());
    until_free(&api, move |broker| broker.is_exchange_being_deleted_in(&within, &wanted)).await?;
    done_as(&api, &user, vhost, move |broker, now, channel| {
        broker.declare_exchange(now, channel, &request)
    })
    .await?;
    Ok(if known { StatusCode::NO_CONTENT } else { StatusCode::CREATED })
}

/// The query of a deletion.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(crate) struct DeleteQuery {
    #[serde(rename = "if-unused", default)]
    if_unused: bool,
}

/// `DELETE /api/exchanges/{vhost}/{name}`, with `?if-unused=true`.
pub(crate) async fn delete(call: Call) -> StatusAnswer {
    let query: DeleteQuery = call.query()?;
    let (api, user, [vhost, name]) = call.parts();
    existed(fetch_one(&api, vhost.clone(), &name).await?.is_some())?;
    done_as(&api, &user, vhost, move |broker, now, channel| {
        broker.delete_exchange(now, channel, &name, query.if_unused)
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Returns the name that a path means: the default exchange has none, so that paths call it
/// `amq.default`.
pub(super) fn name_of(segment: &str) -> &str {
    if segment == "amq.default" { "" } else { segment }
}

async fn fetch_one(
    api: &ApiState,
    vhost: String,
    name: &str,
) -> Result<Option<ExchangeReport>, ApiError> {
    let name = name_of(name);
    let exchanges = fetch::<ExchangeReport>(api, Some(vhost)).await?;
    Ok(exchanges.into_iter().find(|exchange| exchange.name.as_str() == name))
}

impl Listed for ExchangeReport {
    fn vhost(&self) -> &str {
        self.vhost.as_str()
    }

    fn name(&self) -> &str {
        self.name.as_str()
    }

    fn column(&self, api: &ApiState, column: &[String]) -> Option<Value> {
        let [stats, column @ ..] = column else { return None };
        let is_of_stats = stats == "message_stats";
        let one = || one_with_rate(EXCHANGE_STATS, &self.counters, rates(api, self), column);
        is_of_stats.then(one)?
    }

    fn to_json(&self, api: &ApiState) -> Value {
        let mut shown = definition(self);
        shown["message_stats"] =
            with_rates(EXCHANGE_STATS, &self.counters, rates(api, self)).into();
        // As RabbitMQ has it without a policy: `policy: null` is more than `rabbitmqadmin` can show.
        shown
    }
}

fn rates(api: &ApiState, exchange: &ExchangeReport) -> Option<[f64; EXCHANGE_STATS.len()]> {
    let recent = api.recent();
    recent.exchanges.rates(&exchange.id)
}

/// Returns all that it takes to declare an exchange.
pub(super) fn definition(exchange: &ExchangeReport) -> Value {
    json!({
        "name": exchange.name.as_str(),
        "vhost": exchange.vhost.as_str(),
        "type": exchange.kind,
        "durable": exchange.durable,
        "auto_delete": exchange.auto_delete,
        "internal": exchange.internal,
        "arguments": from_table(&exchange.arguments),
    })
}
