//! What users of other systems complain of (research/eqs.md, 1.2), as far as it is a planner's doing.

use proptest::prelude::*;
use quelea_elastic_core::plan::{Action, Policy, RelayState};
use quelea_elastic_core::sla::Sla;
use quelea_elastic_proto::frame::NoticeCode;

use crate::world::{MB, PlannerWorld, ten_mb};

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// The fullest relay becomes the emptiest and gives back (pulsar#17456, jsm.go#748).
    #[test]
    fn two_relays_do_not_play_ping_pong(
        one in prop::collection::vec(0.2..4.0, 2..12),
        other in prop::collection::vec(0.2..4.0, 0..12),
    ) {
        let sla = Sla { relays_min: 2, relays_max: 2, ..ten_mb() };
        let mut world = PlannerWorld::with(sla, Policy::Steady, &[&one, &other]);
        world.run(1_800);
        let most = world.producers.values().map(|producer| producer.moves).max().unwrap_or(0);
        prop_assert!(most <= 1, "a producer moved {most} times: {:#?}", world.log);
    }
}

/// Planned again on a report from before the last moves: overshoot (redpanda#29241).
#[test]
fn a_plan_waits_until_the_last_ones_effect_is_seen() {
    let mut world = PlannerWorld::with(ten_mb(), Policy::Steady, &[&[3.5, 3.5, 3.5, 1.0], &[1.0]]);
    world.tick();
    let begun = world.moves();
    assert!(begun > 0, "{:?}", world.last);
    // The moves are begun and not done, and the reports still show the old load.
    world.plan();
    world.plan();
    assert_eq!(world.moves(), begun, "{:#?}", world.log);
    world.run(60);
    assert_eq!(world.moves(), begun, "{:#?}", world.log);
}

/// A relay whose reports are missing is neither a source nor a target.
#[test]
fn a_stale_report_decides_nothing() {
    let mut world =
        PlannerWorld::with(ten_mb(), Policy::Steady, &[&[3.5, 3.5, 3.5], &[0.5], &[2.0, 2.0]]);
    world.relays.values_mut().nth(1).unwrap().silent = true;
    world.tick_without_plan();
    world.tick_without_plan();
    world.tick_without_plan();
    world.tick_without_plan();
    world.plan();
    let to_silent = |action: &Action| matches!(action, Action::Move { to, .. } if to.0 == 2);
    assert!(world.moves() > 0, "{:?}", world.last);
    assert!(!world.log.iter().any(|(_, planned)| to_silent(&planned.action)), "{:#?}", world.log);
    world.run(20);
    let given_up =
        |action: &Action| matches!(action, Action::FailOver { .. } | Action::Drain { .. });
    assert!(!world.log.iter().any(|(_, planned)| given_up(&planned.action)), "{:#?}", world.log);
}

/// A new relay stays empty (nats-server#343, cruise-control#906).
#[test]
fn a_new_relay_does_not_stay_empty() {
    let mut world =
        PlannerWorld::with(ten_mb(), Policy::Steady, &[&[3.1, 3.1, 3.1], &[3.1, 3.1, 3.0]]);
    world.run(240);
    let new: Vec<_> = world.relays.keys().skip(2).copied().collect();
    assert!(!new.is_empty(), "{:#?}", world.last);
    assert!(new.iter().all(|id| world.carried(*id) > 2.0 * MB), "{:#?}", world.log);
}

/// One that cannot be helped causes one notice, and no relay is started in vain.
#[test]
fn a_single_producer_that_fills_a_relay_causes_only_a_notice() {
    let mut world = PlannerWorld::with(ten_mb(), Policy::Steady, &[&[10.5]]);
    world.run(300);
    let notices = world.log.iter().filter(|(_, planned)| {
        matches!(planned.action, Action::Notify { code: NoticeCode::Unsplittable })
    });
    assert_eq!(notices.count(), 1, "{:#?}", world.log);
    assert!(world.started() <= 1, "{:#?}", world.log);
}

/// Only one unit a cycle: draining takes for ever (pulsar#1488).
#[test]
fn many_small_producers_leave_a_relay_that_drains_within_seconds() {
    let small = [0.02; 40];
    let mut world = PlannerWorld::with(ten_mb(), Policy::Steady, &[&[1.0; 3], &[1.0; 3], &small]);
    let last = *world.relays.keys().last().unwrap();
    world.relays.get_mut(&last).unwrap().state = RelayState::Draining;
    let mut seconds = 0;
    while world.relays.contains_key(&last) {
        world.tick();
        seconds += 1;
        assert!(seconds <= 60, "{:#?}", world.last);
    }
    assert_eq!(world.moves(), small.len());
}

/// Silent where the absolute load is low (pulsar#21299): only the share of the limit counts.
#[test]
fn a_limit_of_a_kilobyte_is_kept_like_one_of_ten_megabytes() {
    let deeds = |scale: f64| {
        let limit = (10.0 * MB * scale) as u64;
        let sla = Sla { bytes_in_per_s_max: limit, ..ten_mb() };
        let relays = [&[3.5 * scale, 3.5 * scale, 3.5 * scale][..], &[0.5 * scale][..]];
        let mut world = PlannerWorld::with(sla, Policy::Steady, &relays);
        world.run(30);
        world.log.into_iter().map(|(at, planned)| (at, planned.action)).collect::<Vec<_>>()
    };
    assert!(!deeds(1.0).is_empty());
    assert_eq!(deeds(1e-4), deeds(1.0));
}
