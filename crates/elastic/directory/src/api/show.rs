//! States in the shapes of the API's answers.

use quelea_elastic_core::directory::{ListenerStatus, ProducerStatus, QueueStatus, RelayStatus};
use quelea_elastic_core::plan;
use quelea_elastic_proto::{ClientId, RelayId};

use super::shapes::{
    Action, Event, Listener, Plan, PlannedAction, Producer, Queue, QueueKpi, Rates, Relay,
};
use crate::counters::state_name;
use crate::driver::Driver;
use crate::event_log::LoggedEvent;

pub(super) fn queue(driver: &Driver, name: &str) -> Option<Queue<Vec<Relay>>> {
    let status = driver.core.queue(driver.now(), name)?;
    let relays = status.relays.iter().map(|relay| show_relay(driver, relay)).collect();
    Some(show_queue(driver, &status, relays))
}

/// Shows a queue as one of many: its relays are counted.
pub(super) fn listed_queue(driver: &Driver, name: &str) -> Option<Queue<usize>> {
    let status = driver.core.queue(driver.now(), name)?;
    Some(show_queue(driver, &status, status.relays.len()))
}

fn show_queue<R>(driver: &Driver, status: &QueueStatus, relays: R) -> Queue<R> {
    Queue {
        name: status.name.clone(),
        owner: driver.advertise.clone(),
        fence: status.fence.map(|fence| fence.0),
        generation: status.generation,
        definition: status.definition.to_json(),
        relays,
        producers: status.producers,
        listeners: status.listeners,
        moves_under_way: status.moves_under_way,
        moves_done: status.moves_done,
        moves_aborted: status.moves_aborted,
        spent_this_hour_micros: status.spent_this_hour_micros,
        minimal: status.minimal,
        kpi_queue: status.kpi.as_ref().map(queue_kpi),
        rates: rates(&status.load),
    }
}

/// Shows what a queue carries against what it promises.
fn queue_kpi(kpi: &plan::QueueKpi) -> QueueKpi {
    let most = kpi.deliveries_per_s_max;
    QueueKpi {
        load: three_decimals(kpi.load()),
        deliveries_per_s: three_decimals(kpi.deliveries_per_s),
        deliveries_per_s_max: most.is_finite().then(|| three_decimals(most)),
        throughput_per_s_min: kpi.agreed.deliveries_per_s,
        kept: kpi.kept,
    }
}

/// Returns a queue's relays by number, from the first one above `after`, at most `limit`.
pub(super) fn relays(
    driver: &Driver,
    queue: &str,
    after: Option<RelayId>,
    limit: usize,
) -> Option<Vec<Relay>> {
    let status = driver.core.queue(driver.now(), queue)?;
    let relays = status.relays.iter().filter(|relay| Some(relay.id) > after).take(limit);
    let of_queue = |relay| Relay { queue: Some(queue.to_owned()), ..show_relay(driver, relay) };
    Some(relays.map(of_queue).collect())
}

fn show_relay(driver: &Driver, relay: &RelayStatus) -> Relay {
    let ago_ms = |at| u64::try_from(driver.age(at).as_millis()).unwrap_or(u64::MAX);
    Relay {
        id: relay.id.0,
        queue: None,
        state: state_name(relay.state),
        address: relay.address.clone(),
        zmtp_producers: relay.zmtp.0.clone(),
        zmtp_listeners: relay.zmtp.1.clone(),
        request: relay.request.clone(),
        handle: relay.handle.clone(),
        // The process provider's names begin with the process's number.
        pid: relay.handle.split('@').next().and_then(|pid| pid.parse().ok()),
        age_ms: ago_ms(relay.started_at),
        reported_ms_ago: relay.reported_at.map(ago_ms),
        dropped: relay.dropped,
        spilled: relay.spilled,
        left_behind: relay.left_behind,
        memory_bytes: relay.memory_bytes,
        memory_bytes_max: relay.memory_bytes_max,
        memory_percent: three_decimals(relay.load.memory * 100.0),
        network_percent: three_decimals(relay.load.network * 100.0),
        producers: relay.producers,
        listeners: relay.listeners,
        connected: relay.connected,
        witnesses: relay.witnesses,
        rates: rates(&relay.load),
    }
}

pub(super) fn producer(driver: &Driver, producer: &ProducerStatus) -> Producer {
    let moved_ago = driver.age(producer.moved_at).as_millis();
    Producer {
        id: client(producer.id),
        relay: producer.relay.map(|relay| relay.0),
        epoch: producer.epoch.0,
        moving_to: producer.moving_to.map(|relay| relay.0),
        moved_ms_ago: u64::try_from(moved_ago).unwrap_or(u64::MAX),
        connected: producer.connected,
        fixed: producer.fixed,
        rates: rates(&producer.fast),
    }
}

pub(super) fn listener(listener: &ListenerStatus) -> Listener {
    Listener {
        id: client(listener.id),
        generation: listener.generation,
        listening: listener.listening,
        relays: listener.relays.iter().map(|relay| relay.0).collect(),
        lagging: listener.lagging,
        connected: listener.connected,
    }
}

pub(super) fn event(noted: &LoggedEvent) -> Event {
    let LoggedEvent { number, unix_ms, event } = noted;
    Event {
        number: *number,
        unix_ms: *unix_ms,
        queue: event.queue.clone(),
        generation: event.generation,
        kind: event.kind,
        subject: event.subject.clone(),
        reason: event.reason.clone(),
        notice: event.notice.map(|code| format!("{code:?}")),
    }
}

pub(super) fn plan(queue: &str, plan: &plan::Plan) -> Plan {
    let one = |planned: &plan::Planned| PlannedAction {
        action: action(&planned.action),
        reason: planned.reason.clone(),
    };
    Plan {
        queue: queue.to_owned(),
        actions: plan.actions.iter().map(one).collect(),
        remarks: plan.remarks.clone(),
    }
}

fn action(action: &plan::Action) -> Action {
    match action {
        plan::Action::Start { count } => Action::Start { count: *count },
        plan::Action::Move { producer, from, to } => {
            Action::Move { producer: client(*producer), from: from.0, to: to.0 }
        }
        plan::Action::Drain { relay } => Action::Drain { relay: relay.0 },
        plan::Action::FailOver { relay } => Action::FailOver { relay: relay.0 },
        plan::Action::Restart { relay } => Action::Restart { relay: relay.0 },
        plan::Action::Stop { relay } => Action::Stop { relay: relay.0 },
        plan::Action::Notify { code } => Action::Notify { notice: format!("{code:?}") },
    }
}

pub(super) fn client(id: ClientId) -> String {
    format!("{:032x}", id.0)
}

fn rates(load: &plan::Load) -> Rates {
    Rates {
        messages_in_per_s: three_decimals(load.messages_in),
        bytes_in_per_s: three_decimals(load.bytes_in),
        messages_out_per_s: three_decimals(load.messages_out),
        bytes_out_per_s: three_decimals(load.bytes_out),
        cpu: three_decimals(load.cpu),
        latency_mean_us: three_decimals(load.latency_us),
    }
}

/// Rounds to three decimals: more than a rate of a second means.
fn three_decimals(value: f64) -> f64 {
    (value * 1_000.0).round() / 1_000.0
}
