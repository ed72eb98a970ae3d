//! The printed algorithm's defects (research/eqs.md, section 0) as far as they are the planner's: policy
//! `paper` has them, `steady` has not. D1 and D6 are about the order of a move's steps: see the
//! directory's tests.

use quelea_elastic_core::plan::{Action, Policy};
use quelea_elastic_core::sla::Sla;
use quelea_elastic_proto::frame::NoticeCode;
use quelea_elastic_proto::{ClientId, Time};

use crate::world::{MB, PlannerWorld, ten_mb};

/// Returns the producers that were moved, in the order in which they were.
fn moved(world: &PlannerWorld) -> Vec<u128> {
    let moved = |action: &Action| match action {
        Action::Move { producer, .. } => Some(producer.0),
        _ => None,
    };
    world.log.iter().filter_map(|(_, planned)| moved(&planned.action)).collect()
}

fn scaled(world: &PlannerWorld) -> Vec<(Time, bool)> {
    let deed = |action: &Action| match action {
        Action::Start { .. } => Some(true),
        Action::Drain { .. } => Some(false),
        _ => None,
    };
    world.log.iter().filter_map(|(at, planned)| Some((*at, deed(&planned.action)?))).collect()
}

#[test]
fn d2_the_paper_fills_the_new_relay_until_it_is_overloaded_itself() {
    let full: &[&[f64]] = &[&[3.0; 8]];
    let mut paper = PlannerWorld::with(ten_mb(), Policy::Paper, full);
    paper.run(10);
    let new = *paper.relays.keys().last().unwrap();
    assert!(paper.carried(new) > 10.0 * MB, "{}", paper.carried(new));

    let mut steady = PlannerWorld::with(ten_mb(), Policy::Steady, full);
    for _ in 0..60 {
        steady.tick();
        let others = steady.relays.keys().skip(1);
        let most = others.map(|id| steady.carried(*id)).fold(0.0, f64::max);
        assert!(most <= 9.0 * MB, "{most}");
    }
    assert!(steady.highest() <= 0.95, "{}", steady.highest());
}

#[test]
fn d3_overloaded_relays_with_one_producer_end_the_loop_with_a_notice() {
    let mut paper = PlannerWorld::with(ten_mb(), Policy::Paper, &[&[12.0], &[12.0]]);
    paper.run(200);
    assert_eq!(moved(&paper), Vec::<u128>::new());

    let mut steady = PlannerWorld::with(ten_mb(), Policy::Steady, &[&[12.0], &[12.0]]);
    steady.run(200);
    assert_eq!(moved(&steady), Vec::<u128>::new());
    let notified =
        |action: &Action| matches!(action, Action::Notify { code: NoticeCode::Unsplittable });
    let notified = steady.log.iter().filter(|(_, planned)| notified(&planned.action)).count();
    assert_eq!(notified, 1, "{:#?}", steady.log);
}

#[test]
fn d4_a_load_that_comes_and_goes_makes_the_paper_flap() {
    let flaps = |policy| {
        let mut world = PlannerWorld::with(ten_mb(), policy, &[&[5.5, 5.5]]);
        for phase in 0..12 {
            let rate = if phase % 2 == 0 { 5.5 } else { 2.0 };
            for producer in world.producers.values_mut() {
                producer.rate = rate * MB;
            }
            world.run(300);
        }
        let deeds = scaled(&world);
        let soon = |pair: &&[(Time, bool)]| pair[1].0.since_ms(pair[0].0) < 900_000;
        let out_and_in = |pair: &&[(Time, bool)]| pair[0].1 && !pair[1].1;
        deeds.windows(2).filter(out_and_in).filter(soon).count()
    };
    assert!(flaps(Policy::Paper) >= 4, "{}", flaps(Policy::Paper));
    assert_eq!(flaps(Policy::Steady), 0);
}

#[test]
fn d4_the_paper_adds_one_relay_a_trigger_steady_all_missing() {
    let started = |policy| {
        let mut world = PlannerWorld::with(ten_mb(), policy, &[&[3.0; 12]]);
        world.run(5);
        world.started()
    };
    assert_eq!(started(Policy::Paper), 1);
    assert!(started(Policy::Steady) >= 4, "{}", started(Policy::Steady));
}

#[test]
fn d5_the_paper_moves_the_biggest_producer_where_a_small_one_suffices() {
    let sla = Sla { relays_max: 2, ..ten_mb() };
    let first = |policy| {
        let mut world = PlannerWorld::with(sla.clone(), policy, &[&[4.1, 3.9, 2.6], &[1.0]]);
        world.run(5);
        moved(&world).first().copied()
    };
    // 10.6 MB/s: without 3.9 it is below the aim.
    assert_eq!(first(Policy::Paper), Some(1));
    assert_eq!(first(Policy::Steady), Some(2));
}

#[test]
fn the_paper_ranks_by_messages_and_so_moves_what_is_small() {
    let sla = Sla { relays_max: 2, ..ten_mb() };
    let first = |policy| {
        let mut world = PlannerWorld::with(sla.clone(), policy, &[&[6.0, 0.5, 4.0], &[1.0]]);
        world.producers.get_mut(&ClientId(2)).unwrap().message = 100.0;
        world.run(5);
        moved(&world).first().copied()
    };
    assert_eq!(first(Policy::Paper), Some(2));
    assert_eq!(first(Policy::Steady), Some(3));
}
