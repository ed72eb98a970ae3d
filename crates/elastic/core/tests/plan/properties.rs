//! The planner's promises G1 to G6 (research/eqs.md, 5.1) on generated queues, agreements and histories.

use std::collections::BTreeMap;

use proptest::prelude::*;
use quelea_elastic_core::plan::{Action, Policy, RelayState, Snapshot, plan};
use quelea_elastic_core::sla::Sla;
use quelea_elastic_proto::RelayId;

use crate::world::{MB, PlannerWorld, ten_mb};

/// plan/tuning.rs: what moves may fill a relay to, as a share of the limit.
const ROOM: f64 = 0.90;
/// No removal for so many milliseconds after a start for load.
const IN_AFTER_OUT_MS: u64 = 900_000;
/// Estimates are sums of fractions.
const ROUNDING: f64 = 1e-9;

/// Returns a strategy for relays with their producers' rates in MB/s, for a limit of 10 MB/s.
fn queues() -> impl Strategy<Value = Vec<Vec<f64>>> {
    let rate = prop_oneof![4 => 0.05..1.0, 2 => 1.0..4.0, 1 => 4.0..9.0];
    prop::collection::vec(prop::collection::vec(rate, 0..10), 1..6)
}

fn world(relays: &[Vec<f64>], sla: Sla) -> PlannerWorld {
    let relays: Vec<&[f64]> = relays.iter().map(Vec::as_slice).collect();
    PlannerWorld::with(sla, Policy::Steady, &relays)
}

/// Returns what each relay's producers are estimated to need, by the higher average, as shares of
/// the limit.
fn estimates(snapshot: &Snapshot) -> BTreeMap<RelayId, Vec<(u128, f64)>> {
    let mut by_relay: BTreeMap<RelayId, Vec<(u128, f64)>> =
        snapshot.relays.iter().map(|relay| (relay.id, Vec::new())).collect();
    for producer in &snapshot.producers {
        let need = producer.fast.bytes_in.max(producer.slow.bytes_in) / (10.0 * MB);
        by_relay.entry(producer.relay).or_default().push((producer.id.0, need));
    }
    by_relay
}

fn load(producers: &[(u128, f64)]) -> f64 {
    producers.iter().map(|(_, need)| need).sum()
}

fn excess(by_relay: &BTreeMap<RelayId, Vec<(u128, f64)>>) -> f64 {
    by_relay.values().map(|producers| (load(producers) - ROOM).max(0.0)).sum()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// G1, and that it ends: a stationary load is put in order, and then left alone.
    #[test]
    fn a_stationary_load_comes_to_rest(relays in queues()) {
        let producers: usize = relays.iter().map(Vec::len).sum();
        let mut world = world(&relays, ten_mb());
        world.run(5_000);
        let begun = world.log.len();
        world.run(1_000);
        let restless: Vec<_> = world.log[begun..]
            .iter()
            .filter(|(_, planned)| !matches!(planned.action, Action::Notify { .. }))
            .collect();
        prop_assert!(restless.is_empty(), "{restless:#?}");
        // Each producer moves once off a relay that is too full, and once for each relay that goes.
        prop_assert!(world.moves() <= producers * (1 + world.drained()), "{}", world.moves());
    }

    /// G2: no relay is removed while one that was added for load is new, whatever the load does.
    #[test]
    fn what_has_grown_does_not_shrink_for_a_quarter_of_an_hour(
        relays in queues(),
        swings in prop::collection::vec((0.2..2.5, 30_u32..900), 4..10),
    ) {
        let mut world = world(&relays, ten_mb());
        let first: Vec<f64> = world.producers.values().map(|producer| producer.rate).collect();
        for (factor, seconds) in swings {
            for (producer, rate) in world.producers.values_mut().zip(&first) {
                producer.rate = rate * factor;
            }
            world.run(seconds);
        }
        let mut grown_at = None;
        for (at, planned) in &world.log {
            match planned.action {
                Action::Start { .. } => grown_at = Some(*at),
                Action::Drain { .. } => {
                    let since = grown_at.map_or(u64::MAX, |grown| at.since_ms(grown));
                    prop_assert!(since >= IN_AFTER_OUT_MS, "{since} ms: {}", planned.reason);
                }
                _ => {}
            }
        }
    }

    /// G2, the gap: a load that swings within the bands causes nothing at all.
    #[test]
    fn a_swing_within_the_bands_moves_nothing(swing in 0.0..0.12, period in 10_u32..400) {
        let mut world = world(&[vec![2.2, 2.2, 2.2], vec![3.3, 3.3], vec![6.6]], ten_mb());
        let first: Vec<f64> = world.producers.values().map(|producer| producer.rate).collect();
        for half in 0..3_000 / period {
            let factor = if half % 2 == 0 { 1.0 + swing } else { 1.0 - swing };
            for (producer, rate) in world.producers.values_mut().zip(&first) {
                producer.rate = rate * factor;
            }
            world.run(period);
        }
        prop_assert!(world.log.is_empty(), "{:#?}", world.log);
    }

    /// G3: no move lifts a relay above its room by estimate, but for a producer that is alone there.
    #[test]
    fn no_move_overfills_its_target(relays in queues(), factor in 0.3..3.0, seconds in 0_u32..90) {
        let mut world = world(&relays, ten_mb());
        for producer in world.producers.values_mut() {
            producer.rate *= factor;
        }
        for _ in 0..=seconds {
            world.tick_without_plan();
            let seen = world.snapshot();
            let mut by_relay = estimates(&seen);
            world.plan();
            let forced = seen.relays.iter().any(|relay| relay.state == RelayState::Draining);
            for planned in &world.last.actions {
                let Action::Move { producer, from, to } = &planned.action else { continue };
                let leaving = by_relay.get_mut(from).unwrap();
                let at = leaving.iter().position(|(id, _)| *id == producer.0).unwrap();
                let moved = leaving.remove(at);
                let target = by_relay.get_mut(to).unwrap();
                target.push(moved);
                let after = load(target);
                let fits = after <= ROOM + ROUNDING || target.len() == 1 || forced;
                prop_assert!(fits, "relay {} comes to {after}: {}", to.0, planned.reason);
            }
        }
    }

    /// G4: an hour costs no more than the budget, whatever the load asks for.
    #[test]
    fn no_hour_costs_more_than_its_budget(
        relays in queues(),
        factor in 1.0..4.0,
        paid in 1_u32..9,
        without in 1_u32..3,
    ) {
        let cost = 3_600_000_u64;
        let paid = paid.max(relays.len() as u32).max(without);
        let budget = cost * u64::from(paid);
        let sla = Sla { budget_per_hour_micros: budget, relays_without_budget: without, ..ten_mb() };
        let mut world = world(&relays, sla);
        world.cost = cost;
        for producer in world.producers.values_mut() {
            producer.rate *= factor;
        }
        for _ in 0..3_600 {
            world.tick();
            prop_assert!(world.relays.len() <= paid as usize, "{} relays", world.relays.len());
        }
        prop_assert!(world.spent <= budget, "{} of {budget} is spent", world.spent);
    }

    /// G4, the minimal service level: once the budget is spent, only what the agreement says stays.
    #[test]
    fn a_spent_budget_leaves_the_minimal_service_level(relays in queues(), without in 1_u32..4) {
        let sla = Sla {
            budget_per_hour_micros: 1_000_000,
            relays_without_budget: without,
            ..ten_mb()
        };
        let mut world = world(&relays, sla);
        (world.cost, world.spent) = (1_000, 1_000_001);
        world.run(900);
        let stay = relays.len().min(without as usize);
        prop_assert!(world.relays.len() <= without.max(1) as usize, "{} stay", world.relays.len());
        prop_assert!(world.up() >= stay.min(1), "nothing serves");
        let notified = world.log.iter().any(|(_, planned)| matches!(planned.action, Action::Notify { .. }));
        prop_assert!(notified || relays.len() <= without as usize, "nobody was notified");
    }

    /// G5: the same snapshot gives the same plan, in whatever order relays are listed.
    #[test]
    fn the_same_snapshot_gives_the_same_plan(relays in queues(), factor in 0.3..3.0, seconds in 0_u32..30) {
        let mut world = world(&relays, ten_mb());
        for producer in world.producers.values_mut() {
            producer.rate *= factor;
        }
        world.run(seconds);
        let snapshot = world.snapshot();
        let ask = |snapshot: &Snapshot| {
            plan(snapshot, &world.sla, Policy::Steady, &world.history, world.now)
        };
        let first = ask(&snapshot);
        prop_assert_eq!(&first, &ask(&snapshot));
        let mut turned = snapshot;
        turned.relays.reverse();
        prop_assert_eq!(&first.0, &ask(&turned).0);
    }

    /// G6: each move strictly lowers what is above the room, so a plan ends.
    #[test]
    fn every_move_lowers_the_excess(relays in queues(), seconds in 0_u32..90) {
        let mut world = world(&relays, ten_mb());
        for _ in 0..=seconds {
            world.tick_without_plan();
            let seen = world.snapshot();
            let mut by_relay = estimates(&seen);
            world.plan();
            if seen.relays.iter().any(|relay| relay.state == RelayState::Draining) {
                continue;
            }
            for planned in &world.last.actions {
                let Action::Move { producer, from, to } = &planned.action else { continue };
                let before = excess(&by_relay);
                let leaving = by_relay.get_mut(from).unwrap();
                let at = leaving.iter().position(|(id, _)| *id == producer.0).unwrap();
                let moved = leaving.remove(at);
                by_relay.get_mut(to).unwrap().push(moved);
                let after = excess(&by_relay);
                prop_assert!(after < before, "{before} to {after}: {}", planned.reason);
            }
        }
    }
}
