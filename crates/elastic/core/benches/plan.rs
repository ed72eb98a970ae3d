//! What a plan costs: `cargo bench -p quelea-elastic-core`. Wall time of one thread.
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::hint::black_box;
use std::time::Instant;

use quelea_elastic_core::plan::{
    History, Load, Policy, ProducerView, RelayState, RelayView, Snapshot, plan,
};
use quelea_elastic_core::sla::Sla;
use quelea_elastic_proto::{ClientId, RelayId, Time};

const PRODUCERS: u64 = 10_000;
const RELAYS: u64 = 100;
const LISTENERS: u32 = 20;
const ROUNDS: usize = 200;
/// Bytes a second that a relay may take.
const LIMIT: f64 = 10e6;
const SAMPLES: usize = 16;

fn main() {
    for policy in [Policy::Steady, Policy::Paper] {
        measure("all relays at half their limit", policy, |_| 0.5);
        measure("a tenth of the relays hot, room elsewhere", policy, |relay| {
            if relay % 10 == 0 { 1.1 } else { 0.5 }
        });
        measure("all relays hot, none has room", policy, |_| 1.1);
    }
}

fn measure(what: &str, policy: Policy, load: impl Fn(u64) -> f64) {
    let now = Time::from_micros(1_000_000_000_000);
    let snapshot = queue(&load, now);
    let sla = Sla { bytes_in_per_s_max: LIMIT as u64, relays_max: 200, ..Sla::default() };
    let mut took: Vec<f64> = Vec::with_capacity(ROUNDS);
    let mut actions = 0;
    for _ in 0..ROUNDS {
        // Without a history each round plans the same.
        let begun = Instant::now();
        let (plan, _) = black_box(plan(&snapshot, &sla, policy, &History::default(), now));
        took.push(begun.elapsed().as_secs_f64() * 1e3);
        actions = plan.actions.len();
    }
    took.sort_unstable_by(f64::total_cmp);
    println!(
        "{policy:?}, {PRODUCERS} producers on {RELAYS} relays, {what}: median {:.2} ms, most {:.2} ms, \
         {actions} actions",
        took[ROUNDS / 2],
        took[ROUNDS - 1]
    );
}

fn queue(load: &impl Fn(u64) -> f64, now: Time) -> Snapshot {
    let each = PRODUCERS / RELAYS;
    // Sizes from 0.1 to 1.9 of the mean.
    let size = |producer: u64| 0.1 + 1.8 * (producer / RELAYS) as f64 / (each - 1) as f64;
    let relays = (0..RELAYS).map(|relay| RelayView {
        id: RelayId(relay + 1),
        state: RelayState::Up,
        started_at: Time::ZERO,
        reported_at: Some(now),
        samples: vec![whole(load(relay), each); SAMPLES],
        capacity: Load::default(),
        witnesses: 0,
        moves_under_way: 0,
    });
    let producers = (0..PRODUCERS).map(|producer| {
        let relay = producer % RELAYS;
        let rate = rates(load(relay) * LIMIT / each as f64 * size(producer));
        ProducerView {
            id: ClientId(u128::from(producer)),
            relay: RelayId(relay + 1),
            fast: rate,
            slow: rate,
            moved_at: Time::ZERO,
            moving: false,
            fixed: false,
        }
    });
    Snapshot {
        generation: 1,
        relays: relays.collect(),
        producers: producers.collect(),
        listeners: LISTENERS,
        relay_cost_per_hour_micros: 0,
        spent_this_hour_micros: 0,
    }
}

/// Returns a relay's load as it reports it. Producers' have no processor time
/// (directory/monitor.rs).
fn whole(load: f64, producers: u64) -> Load {
    Load {
        cpu: load / 2.0,
        clients: (producers + u64::from(LISTENERS)) as f64,
        latency_us: 100.0,
        ..rates(load * LIMIT)
    }
}

fn rates(bytes_in: f64) -> Load {
    let listeners = f64::from(LISTENERS);
    Load {
        messages_in: bytes_in / 5e3,
        bytes_in,
        messages_out: bytes_in / 5e3 * listeners,
        bytes_out: bytes_in * listeners,
        ..Load::default()
    }
}
