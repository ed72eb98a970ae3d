//! What policy `steady` decides, one story each.

use quelea_elastic_core::plan::{Action, Policy};

use crate::world::{MB, PlannerWorld, ten_mb};

#[test]
fn a_queue_without_relays_gets_its_fewest() {
    let mut world = PlannerWorld::new(
        quelea_elastic_core::sla::Sla { relays_min: 3, ..ten_mb() },
        Policy::Steady,
    );
    world.tick();
    assert_eq!(world.last.actions[0].action, Action::Start { count: 3 });
    assert!(world.last.actions[0].reason.contains("relays_min 3"), "{:?}", world.last);
    world.run(5);
    assert_eq!((world.started(), world.up()), (3, 3));
}

#[test]
fn a_hot_relay_is_relieved_by_a_new_one_within_five_seconds() {
    let mut world = PlannerWorld::with(ten_mb(), Policy::Steady, &[&[1.0, 1.0, 1.0, 1.0]]);
    world.boot_ms = Some(500);
    world.run(20);
    assert!(world.log.is_empty(), "{:?}", world.log);
    for producer in world.producers.values_mut() {
        producer.rate = 2.6 * MB;
    }
    let mut seconds = 0;
    while world.highest() > 0.8 {
        world.tick();
        seconds += 1;
        assert!(seconds <= 5, "{:#?} {:#?}", world.log, world.last.remarks);
    }
}

#[test]
fn a_producer_that_never_moved_has_no_cool_down_after_a_start() {
    let mut world = PlannerWorld::with(ten_mb(), Policy::Steady, &[&[3.5, 3.5, 3.5], &[1.0]]);
    world.now = quelea_elastic_proto::Time::ZERO;
    world.run(10);
    assert_eq!(world.moves(), 1, "{:?} {:?}", world.log, world.last.remarks);
}

#[test]
fn load_that_fits_is_left_alone() {
    let mut world = PlannerWorld::with(ten_mb(), Policy::Steady, &[&[3.0, 3.0], &[2.0, 3.0]]);
    world.run(3_000);
    assert!(world.log.is_empty(), "{:?}", world.log);
}

#[test]
fn every_reason_names_the_kpi_its_limit_and_its_value() {
    let mut world = PlannerWorld::with(ten_mb(), Policy::Steady, &[&[3.5, 3.5, 3.5], &[1.0]]);
    world.run(10);
    let (_, moved) = &world.log[0];
    assert!(matches!(moved.action, Action::Move { .. }), "{:?}", world.log);
    let reason = &moved.reason;
    assert!(
        reason.contains("bytes_in 10500000 is 1.05 of bytes_in_per_s_max 10000000"),
        "{reason}"
    );
}

#[test]
fn a_queue_without_producers_gives_back_its_relays_in_minutes() {
    let mut world = PlannerWorld::with(ten_mb(), Policy::Steady, &[&[], &[], &[], &[], &[]]);
    world.run(119);
    assert!(world.log.is_empty(), "{:?}", world.log);
    world.run(61);
    assert_eq!((world.up(), world.drained()), (1, 4), "{:?}", world.last.remarks);
    world.run(3_600);
    assert_eq!((world.started(), world.up()), (0, 1), "nothing flaps: {:?}", world.log);
}

#[test]
fn a_load_that_long_fits_one_relay_gets_there_without_waiting_anew() {
    let mut world = PlannerWorld::with(ten_mb(), Policy::Steady, &[&[0.5], &[0.5], &[0.5], &[0.5]]);
    world.run(720 + 2 * 120 + 60);
    assert_eq!((world.up(), world.drained()), (1, 3), "{:?} {:?}", world.log, world.last.remarks);
}

#[test]
fn how_few_relays_would_do_is_remembered_for_each_number() {
    // Three fit for long; that two would do is new when the first has gone.
    let rates: [&[f64]; 4] = [&[3.0, 1.0], &[3.0, 1.0], &[3.0, 1.0], &[3.0, 1.0]];
    let mut world = PlannerWorld::with(ten_mb(), Policy::Steady, &rates);
    world.run(600);
    for producer in world.producers.values_mut() {
        producer.rate /= 3.0;
    }
    world.run(720 + 130 - 600);
    let early = world.drained();
    world.run(1_400);
    assert!(early <= 1 && world.drained() >= 2, "{early}, {:?}", world.log);
}

#[test]
fn the_times_of_a_removal_are_the_agreements() {
    let sla = quelea_elastic_core::sla::Sla {
        scale_in_after_ms: 30_000,
        scale_in_after_out_ms: 0,
        scale_in_apart_ms: 5_000,
        ..ten_mb()
    };
    let mut world = PlannerWorld::with(sla, Policy::Steady, &[&[0.5], &[0.5], &[0.5]]);
    world.run(29);
    assert!(world.log.is_empty(), "{:?}", world.log);
    world.run(31);
    assert_eq!((world.up(), world.drained()), (1, 2), "{:?}", world.last.remarks);
}

#[test]
fn an_idle_relay_drains_after_twelve_minutes_and_stops_when_empty() {
    let mut world =
        PlannerWorld::with(ten_mb(), Policy::Steady, &[&[1.0, 1.0], &[1.0, 0.5], &[0.5]]);
    world.run(720);
    assert!(world.log.is_empty(), "{:?}", world.log);
    world.run(10);
    let kinds: Vec<_> = world.log.iter().map(|(_, planned)| &planned.action).collect();
    assert!(matches!(kinds[0], Action::Drain { relay } if relay.0 == 3), "{kinds:?}");
    assert!(matches!(kinds[1], Action::Move { from, .. } if from.0 == 3), "{kinds:?}");
    assert!(matches!(kinds[2], Action::Stop { relay } if relay.0 == 3), "{kinds:?}");
    assert_eq!((world.up(), world.moves(), world.drained()), (2, 1, 1));
}
