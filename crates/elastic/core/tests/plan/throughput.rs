//! The throughput that a queue as a whole promises.

use quelea_elastic_core::plan::{Action, Policy};
use quelea_elastic_core::sla::Sla;
use quelea_elastic_proto::frame::NoticeCode;

use crate::world::{PlannerWorld, ten_mb};

/// Adds a promise of 10 producers of 1 MB/s each to 20 listeners, of 4,968 bytes (5,000 as a
/// frame): 40,000 deliveries/s.
fn promise(sla: Sla) -> Sla {
    Sla {
        throughput_per_s_min: 40_000,
        throughput_producers: 10,
        throughput_listeners: 20,
        throughput_payload_bytes: 4_968,
        ..sla
    }
}

#[test]
fn relays_for_the_promise_are_held_without_any_load() {
    for policy in [Policy::Steady, Policy::Paper] {
        let limit = Sla { bytes_in_per_s_max: 4_500_000, ..ten_mb() };
        let mut world = PlannerWorld::with(promise(limit), policy, &[&[0.1]]);
        world.run(3_600);
        // At 0.9 of 4.5 MB/s a relay carries four producers of 1 MB/s.
        assert_eq!(world.up(), 3, "{policy:?}: {:?}", world.log);
        assert_eq!(world.drained(), 0, "{:?}", world.log);
    }
}

#[test]
fn the_start_for_the_promise_names_it() {
    let limit = Sla { bytes_in_per_s_max: 4_500_000, ..ten_mb() };
    let mut world = PlannerWorld::with(promise(limit), Policy::Steady, &[&[0.1]]);
    world.tick();
    let planned = &world.log[0].1;
    assert_eq!(planned.action, Action::Start { count: 2 });
    assert!(planned.reason.contains("throughput_per_s_min 40000"), "{}", planned.reason);
}

#[test]
fn relays_that_the_promise_does_not_need_go() {
    let limit = Sla { bytes_in_per_s_max: 4_500_000, ..ten_mb() };
    let mut world = PlannerWorld::with(promise(limit), Policy::Steady, &[&[0.1], &[], &[], &[]]);
    world.run(3_600);
    assert_eq!(world.up(), 3, "{:?}", world.log);
}

#[test]
fn a_promise_above_the_hosts_capacity_is_reported() {
    let sla = Sla { relays_max: 2, ..promise(Sla::default()) };
    let mut world = PlannerWorld::with(sla, Policy::Steady, &[&[0.1], &[0.1]]);
    for relay in world.relays.values_mut() {
        relay.capacity.bytes_out = 50e6;
    }
    world.run(5);
    // 0.85 of 50 MB/s is two producers with 20 listeners: five relays.
    let (_, planned) = world.log.first().expect("it is told");
    assert_eq!(planned.action, Action::Notify { code: NoticeCode::AtMaximum });
    assert!(planned.reason.contains("5 that carry throughput_per_s_min"), "{}", planned.reason);
    assert_eq!(world.started(), 0);
}

#[test]
fn a_producer_too_large_for_any_host_is_reported() {
    let mut world = PlannerWorld::with(promise(Sla::default()), Policy::Steady, &[&[0.1]]);
    for relay in world.relays.values_mut() {
        relay.capacity.bytes_out = 20e6;
    }
    world.tick();
    assert_eq!(world.log[0].1.action, Action::Notify { code: NoticeCode::Unsplittable });
}

#[test]
fn a_promise_too_large_for_hosts_still_keeps_what_the_directory_holds() {
    let sla = Sla { messages_in_per_s_max: 400, ..promise(Sla::default()) };
    let fewest = sla.relays_fewest();
    assert!(fewest > 1, "{fewest}");
    let relays: &[&[f64]] = &[&[0.1], &[], &[], &[], &[]];
    let mut world = PlannerWorld::with(sla, Policy::Steady, &relays[..fewest as usize]);
    for relay in world.relays.values_mut() {
        relay.capacity.bytes_out = 20e6;
    }
    world.run(3_600);
    assert_eq!(world.up(), fewest as usize, "{:?}", world.log);
}

#[test]
fn a_spent_budget_comes_before_the_promise() {
    let limit = Sla { bytes_in_per_s_max: 4_500_000, budget_per_hour_micros: 100, ..ten_mb() };
    let mut world = PlannerWorld::with(promise(limit.clone()), Policy::Steady, &[&[0.1], &[], &[]]);
    world.spent = 101;
    world.cost = 30;
    world.run(60);
    assert_eq!(world.up(), 1, "{:?}", world.log);
    // The paper's policy ends none for it, and starts none.
    let mut world = PlannerWorld::with(promise(limit), Policy::Paper, &[&[0.1]]);
    world.spent = 101;
    world.cost = 30;
    world.run(300);
    assert_eq!(world.up(), 1, "{:?}", world.log);
}
