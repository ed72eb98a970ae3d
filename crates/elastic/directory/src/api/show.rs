//! States as JSON. Rates are a second's; units stand last in each name.

use quelea_elastic_core::directory::{ListenerStatus, ProducerStatus, QueueStatus, RelayStatus};
use quelea_elastic_core::plan::{Action, Load, Plan, QueueKpi};
use quelea_elastic_proto::{ClientId, RelayId};
use serde_json::{Map, Value, json};

use crate::counters::state_name;
use crate::driver::Driver;
use crate::event_log::LoggedEvent;

pub(super) fn queue(driver: &Driver, name: &str) -> Option<Value> {
    let status = driver.core.queue(driver.now(), name)?;
    let relays = status.relays.iter().map(|relay| show_relay(driver, relay));
    let mut shown = show_queue(driver, &status);
    shown["relays"] = relays.collect();
    Some(shown)
}

/// As one of many: its relays are counted.
pub(super) fn listed_queue(driver: &Driver, name: &str) -> Option<Value> {
    let status = driver.core.queue(driver.now(), name)?;
    Some(show_queue(driver, &status))
}

fn show_queue(driver: &Driver, status: &QueueStatus) -> Value {
    let mut shown = json!({
        "name": status.name,
        "owner": driver.advertise,
        "fence": status.fence.map(|fence| fence.0),
        "generation": status.generation,
        "definition": status.definition.to_json(),
        "relays": status.relays.len(),
        "producers": status.producers,
        "listeners": status.listeners,
        "moves_under_way": status.moves_under_way,
        "moves_done": status.moves_done,
        "moves_aborted": status.moves_aborted,
        "spent_this_hour_micros": status.spent_this_hour_micros,
        "minimal": status.minimal,
        "kpi_queue": status.kpi.as_ref().map(queue_kpi),
    });
    with_load(&mut shown, &status.load);
    shown
}

/// What a queue carries against what it promises.
fn queue_kpi(kpi: &QueueKpi) -> Value {
    let most = kpi.deliveries_per_s_max;
    json!({
        "load": three_decimals(kpi.load()),
        "deliveries_per_s": three_decimals(kpi.deliveries_per_s),
        "deliveries_per_s_max": most.is_finite().then(|| three_decimals(most)),
        "throughput_per_s_min": kpi.agreed.deliveries_per_s,
        "kept": kpi.kept,
    })
}

/// By number, from the first one above `after`, at most `limit`.
pub(super) fn relays(
    driver: &Driver,
    queue: &str,
    after: Option<RelayId>,
    limit: usize,
) -> Option<Vec<Value>> {
    let status = driver.core.queue(driver.now(), queue)?;
    let relays = status.relays.iter().filter(|relay| Some(relay.id) > after).take(limit);
    let relays = relays.map(|relay| {
        let mut shown = show_relay(driver, relay);
        shown["queue"] = queue.into();
        shown
    });
    Some(relays.collect())
}

fn show_relay(driver: &Driver, relay: &RelayStatus) -> Value {
    let ago_ms = |at| u64::try_from(driver.age(at).as_millis()).unwrap_or(u64::MAX);
    // The process provider's names begin with the process's number.
    let pid = relay.handle.split('@').next().and_then(|pid| pid.parse::<u32>().ok());
    let mut shown = json!({
        "id": relay.id.0,
        "state": state_name(relay.state),
        "address": relay.address,
        "zmtp_producers": relay.zmtp.0,
        "zmtp_listeners": relay.zmtp.1,
        "request": relay.request,
        "handle": relay.handle,
        "pid": pid,
        "age_ms": ago_ms(relay.started_at),
        "reported_ms_ago": relay.reported_at.map(ago_ms),
        "dropped": relay.dropped,
        "spilled": relay.spilled,
        "left_behind": relay.left_behind,
        "memory_bytes": relay.memory_bytes,
        "memory_bytes_max": relay.memory_bytes_max,
        "memory_percent": three_decimals(relay.load.memory * 100.0),
        "network_percent": three_decimals(relay.load.network * 100.0),
        "producers": relay.producers,
        "listeners": relay.listeners,
        "connected": relay.connected,
        "witnesses": relay.witnesses,
    });
    with_load(&mut shown, &relay.load);
    shown
}

pub(super) fn producer(driver: &Driver, producer: &ProducerStatus) -> Value {
    let mut shown = json!({
        "id": client(producer.id),
        "relay": producer.relay.map(|relay| relay.0),
        "epoch": producer.epoch.0,
        "moving_to": producer.moving_to.map(|relay| relay.0),
        "moved_ms_ago": u64::try_from(driver.age(producer.moved_at).as_millis()).unwrap_or(u64::MAX),
        "connected": producer.connected,
        "fixed": producer.fixed,
    });
    with_load(&mut shown, &producer.fast);
    shown
}

pub(super) fn listener(listener: &ListenerStatus) -> Value {
    json!({
        "id": client(listener.id),
        "generation": listener.generation,
        "listening": listener.listening,
        "relays": listener.relays.iter().map(|relay| relay.0).collect::<Vec<_>>(),
        "lagging": listener.lagging,
        "connected": listener.connected,
    })
}

pub(super) fn event(noted: &LoggedEvent) -> Value {
    let LoggedEvent { number, unix_ms, event } = noted;
    json!({
        "number": number,
        "unix_ms": unix_ms,
        "queue": event.queue,
        "generation": event.generation,
        "kind": event.kind,
        "subject": event.subject,
        "reason": event.reason,
        "notice": event.notice.map(|code| format!("{code:?}")),
    })
}

pub(super) fn plan(queue: &str, plan: &Plan) -> Value {
    let actions = plan.actions.iter().map(|planned| {
        let mut shown = action(&planned.action);
        shown["reason"] = planned.reason.clone().into();
        shown
    });
    json!({ "queue": queue, "actions": actions.collect::<Vec<_>>(), "remarks": plan.remarks })
}

fn action(action: &Action) -> Value {
    match action {
        Action::Start { count } => json!({ "action": "start", "count": count }),
        Action::Move { producer, from, to } => json!({
            "action": "move", "producer": client(*producer), "from": from.0, "to": to.0,
        }),
        Action::Drain { relay } => json!({ "action": "drain", "relay": relay.0 }),
        Action::FailOver { relay } => json!({ "action": "fail_over", "relay": relay.0 }),
        Action::Restart { relay } => json!({ "action": "restart", "relay": relay.0 }),
        Action::Stop { relay } => json!({ "action": "stop", "relay": relay.0 }),
        Action::Notify { code } => json!({ "action": "notify", "notice": format!("{code:?}") }),
    }
}

pub(super) fn client(id: ClientId) -> String {
    format!("{:032x}", id.0)
}

fn with_load(shown: &mut Value, load: &Load) {
    let mut rates = Map::new();
    for (name, value) in [
        ("messages_in_per_s", load.messages_in),
        ("bytes_in_per_s", load.bytes_in),
        ("messages_out_per_s", load.messages_out),
        ("bytes_out_per_s", load.bytes_out),
        ("cpu", load.cpu),
        ("latency_mean_us", load.latency_us),
    ] {
        rates.insert(name.to_owned(), three_decimals(value).into());
    }
    if let Value::Object(object) = shown {
        object.append(&mut rates);
    }
}

/// More decimals than a rate of a second means.
fn three_decimals(value: f64) -> f64 {
    (value * 1_000.0).round() / 1_000.0
}
