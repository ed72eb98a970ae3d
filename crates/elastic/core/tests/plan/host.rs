//! Memory and network of a relay's host (EQS §IV-C).

use quelea_elastic_core::plan::{Action, Load, Policy, has_room_for_newcomers};
use quelea_elastic_core::sla::Sla;
use quelea_elastic_proto::frame::NoticeCode;

use crate::world::{PlannerWorld, ten_mb};

/// Sets up relays whose memory and network grow with what they carry: `memory` and `network` of the
/// host at 10 MB/s.
fn world(sla: Sla, memory: f64, network: f64, relays: &[&[f64]]) -> PlannerWorld {
    let mut world = PlannerWorld::with(sla, Policy::Steady, relays);
    (world.memory, world.network) = (memory, network);
    for _ in 0..16 {
        world.measure();
    }
    world
}

fn first_reason(world: &PlannerWorld) -> &str {
    world.log.first().map_or("", |(_, planned)| planned.reason.as_str())
}

#[test]
fn memory_above_its_agreed_share_moves_producers_away() {
    let sla = Sla { memory_percent_max: 40, ..ten_mb() };
    let mut world = world(sla, 0.8, 0.0, &[&[2.0, 1.0, 1.0, 1.5], &[]]);
    world.run(30);
    assert!(world.moves() > 0, "{:?}", world.last);
    assert!(
        first_reason(&world).contains("is 1.10 of memory_percent_max 40"),
        "{}",
        first_reason(&world)
    );
    world.run(600);
    assert!(world.highest() * 0.8 <= 0.4, "{}", world.highest());
}

#[test]
fn network_above_its_agreed_share_starts_relays() {
    let sla = Sla { network_percent_max: 30, ..ten_mb() };
    let mut world = world(sla, 0.0, 0.5, &[&[2.0, 2.0, 2.0, 1.0]]);
    world.run(120);
    assert!(world.log.is_empty(), "it may be a burst: {:?}", world.log);
    world.run(120);
    let start = world.log.iter().find(|(_, p)| matches!(p.action, Action::Start { .. }));
    let reason = &start.expect("one relay is not enough").1.reason;
    assert!(reason.contains("network_percent_max 30"), "{reason}");
}

#[test]
fn a_hosts_memory_is_a_capacity_without_any_agreement() {
    let mut world = world(Sla::default(), 1.0, 0.0, &[&[4.0, 3.0, 2.0], &[]]);
    world.run(5);
    assert!(
        first_reason(&world).contains("of the relay's capacity memory_percent 85"),
        "{}",
        first_reason(&world)
    );
}

#[test]
fn what_a_host_carries_without_the_queue_starts_no_relays() {
    for (memory, network) in [(0.7, 0.0), (0.0, 0.7), (0.95, 0.0), (0.0, 0.95)] {
        let mut world = world(Sla::default(), 0.0, 0.0, &[&[0.1, 0.1], &[]]);
        (world.memory_at_rest, world.network_at_rest) = (memory, network);
        world.run(600);
        // Two minutes lie between two relays that are started only in the hope that it helps.
        assert!(world.up() <= 2 + 600 / 120, "{} relays: {:?}", world.up(), world.log);
        let unsplittable = Action::Notify { code: NoticeCode::Unsplittable };
        assert!(
            world.log.iter().all(|(_, planned)| planned.action != unsplittable),
            "{:?}",
            world.log
        );
        (world.memory_at_rest, world.network_at_rest) = (0.1, 0.1);
        world.run(7_200);
        assert_eq!(world.up(), 1, "{:?}", world.last);
    }
}

#[test]
fn a_relay_that_memory_needs_is_not_removed() {
    let relays: &[&[f64]] = &[&[1.5, 1.0], &[1.0, 1.5]];
    let mut without = world(ten_mb(), 0.0, 0.0, relays);
    without.run(3_600);
    assert_eq!(without.up(), 1);
    let sla = Sla { memory_percent_max: 40, ..ten_mb() };
    let mut with = world(sla, 0.8, 0.0, relays);
    with.run(3_600);
    assert_eq!(with.up(), 2, "{:?}", with.log);
}

#[test]
fn newcomers_are_placed_by_the_hosts_capacities() {
    let capacity = Load { bytes_out: 100e6, ..Load::default() };
    let load = Load { bytes_in: 1e6, bytes_out: 20e6, ..Load::default() };
    assert!(has_room_for_newcomers(&Sla::default(), &capacity, &load));
    for full in [Load { memory: 0.6, ..load }, Load { network: 0.6, ..load }] {
        assert!(!has_room_for_newcomers(&Sla::default(), &capacity, &full), "{full:?}");
    }
}
