//! What policy `steady` holds for a burst, and for how long.

use quelea_elastic_core::plan::Policy;
use quelea_elastic_core::sla::Sla;

use crate::world::{MB, PlannerWorld, ten_mb};

/// Sets up a relay with so many equal producers, together this share of its limit, and three with
/// room.
fn overloaded(producers: usize, load: f64) -> PlannerWorld {
    let rate = load * 10.0 / producers as f64;
    PlannerWorld::with(ten_mb(), Policy::Steady, &[&vec![rate; producers], &[1.0], &[1.0], &[1.0]])
}

/// Runs until no relay is above its limit. Returns how many seconds that took.
fn seconds_until_relieved(world: &mut PlannerWorld) -> u32 {
    let mut seconds = 0;
    while world.highest() > 1.0 {
        world.tick();
        seconds += 1;
        assert!(seconds <= 600, "{:#?} {:#?}", world.log, world.last.remarks);
    }
    seconds
}

#[test]
fn what_few_moves_mend_is_not_waited_for() {
    let mut world = overloaded(40, 1.15);
    assert!(seconds_until_relieved(&mut world) <= 10);
    assert!(world.moves() <= 10, "{}", world.moves());
}

#[test]
fn what_takes_many_moves_waits_for_three_minutes_and_is_mended_then() {
    let mut world = overloaded(40, 1.5);
    world.run(170);
    assert_eq!(world.moves(), 0, "{:?}", world.log);
    assert!(world.last.remarks.iter().any(|remark| remark.contains("burst")), "{:?}", world.last);
    // More moves than one plan begins.
    assert!(seconds_until_relieved(&mut world) <= 30);
    assert!(world.moves() > 12);
}

#[test]
fn a_burst_is_over_before_anybody_moves() {
    let mut world = overloaded(40, 1.5);
    world.run(60);
    world.producers.values_mut().for_each(|producer| producer.rate *= 0.5);
    world.run(600);
    assert_eq!(world.moves(), 0, "{:?}", world.log);
}

#[test]
fn single_low_reports_do_not_begin_the_wait_anew() {
    let mut world = overloaded(40, 1.5);
    let rates: Vec<f64> = world.producers.values().map(|producer| producer.rate).collect();
    for second in 0..240 {
        let share = if second % 5 == 4 { 0.6 } else { 1.0 };
        for (producer, rate) in world.producers.values_mut().zip(&rates) {
            producer.rate = rate * share;
        }
        world.tick();
    }
    assert!(world.highest() <= 1.0, "{:#?} {:#?}", world.log, world.last.remarks);
}

#[test]
fn what_is_twice_the_limit_is_not_left_alone_for_a_burst() {
    let mut world = overloaded(80, 2.2);
    world.run(5);
    assert!(world.moves() > 0, "{:?}", world.last.remarks);
    // Down to where it may be a burst, and on when that has lasted.
    assert!(seconds_until_relieved(&mut world) <= 240);
}

#[test]
fn a_full_core_is_too_much_without_any_agreed_limit() {
    let relays: &[&[f64]] = &[&[2.5, 2.5, 2.5, 2.5], &[2.0, 3.0], &[2.0, 3.0]];
    let mut world = PlannerWorld::with(Sla::default(), Policy::Steady, relays);
    world.cores = 1.0;
    let first = *world.relays.keys().next().unwrap();
    world.run(30);
    assert!(world.carried(first) <= 8.5 * MB, "{:#?} {:#?}", world.log, world.last.remarks);
}
