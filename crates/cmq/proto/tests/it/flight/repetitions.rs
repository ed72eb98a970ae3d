//! What is taken as lost, and repeated.

use std::collections::BTreeSet;

use quelea_cmq_proto::flight::Action;

use super::{CHARGE, Scene, number};

#[test]
fn a_gap_with_three_behind_it_is_repeated_at_once() {
    let mut scene = Scene::reliable();
    scene.send(10);
    scene.wait(100);
    scene.arrive((0..7).filter(|&sequence| sequence != 4));
    scene.report();
    assert!(scene.repeated().is_empty(), "two behind it: it may be on its way");
    scene.arrive(7..8);
    scene.report();
    assert_eq!(scene.repeated(), [4]);
    scene.report();
    assert!(scene.repeated().is_empty(), "it was repeated just now");
    scene.arrive([4, 8, 9]);
    scene.report();
    assert!(scene.flight.is_settled());
    assert_eq!(scene.flight.kept_bytes(), 0);
}

#[test]
fn a_gap_that_is_overdue_is_repeated_without_more_behind_it() {
    let mut scene = Scene::reliable();
    scene.send(1);
    scene.wait(10_000);
    scene.arrive(0..1);
    scene.report();
    scene.send(2);
    scene.wait(10_000);
    scene.arrive(2..3);
    scene.report();
    assert!(scene.repeated().is_empty());
    let began = scene.now;
    let repeated = scene.tick();
    assert!(matches!(&repeated[..], [Action::Repeat(bytes)] if number(bytes) == 1), "{repeated:?}");
    assert_eq!(scene.now.since_us(began), 2_500, "1.25 round trips after it left");
}

#[test]
fn a_lost_tail_is_probed_and_repeated_after_the_answer() {
    let mut scene = Scene::reliable();
    scene.send(5);
    let began = scene.now;
    let actions = scene.next_actions();
    assert_eq!(scene.now.since_us(began), 2_000);
    let [Action::Repeat(last), probe] = &actions[..] else { panic!("{actions:?}") };
    assert_eq!(number(last), 4);
    scene.arrive(4..5);
    scene.wait(100);
    scene.answer(probe);
    scene.wait(300);
    scene.flight.on_timer(scene.now);
    assert_eq!(scene.repeated(), [0, 1, 2, 3]);
}

#[test]
fn a_lost_repetition_is_found_by_what_was_sent_later() {
    let mut scene = Scene::reliable();
    scene.send(5);
    scene.wait(1_000);
    scene.arrive(1..5);
    scene.report();
    assert_eq!(scene.repeated(), [0]);
    scene.wait(100);
    scene.send(5);
    scene.wait(1_200);
    scene.arrive(5..10);
    scene.report();
    scene.wait(1_000);
    scene.flight.on_timer(scene.now);
    assert_eq!(scene.repeated(), [0]);
}

#[test]
fn what_a_status_has_no_room_for_is_not_lost() {
    let mut scene = Scene::reliable();
    scene.send(200);
    scene.wait(1_000);
    // Every other one is missing: the 32 ranges end at 64.
    scene.arrive((0..200).filter(|sequence| sequence % 2 == 1));
    scene.report();
    let mut repeated: BTreeSet<u64> = scene.repeated().into_iter().collect();
    for _ in 0..3 {
        scene.wait(400);
        scene.flight.on_timer(scene.now);
        repeated.extend(scene.repeated());
    }
    assert_eq!(repeated, (0..64).step_by(2).collect());
}

#[test]
fn repetitions_are_bounded_by_the_budget_and_go_on_with_time() {
    let mut scene = Scene::reliable();
    scene.window_bytes = 10 << 20;
    scene.report();
    scene.send(2_000);
    scene.wait(1_000);
    scene.arrive(1_000..2_000);
    scene.report();
    assert_eq!(scene.repeated().len(), 32, "2,000 were sent, but no more than a burst is saved up");
    let began = scene.now;
    let mut repeated = 32;
    while repeated < 1_000 {
        let due = scene.tick();
        repeated += due.iter().filter(|action| matches!(action, Action::Repeat(_))).count();
    }
    let took = scene.now.since_us(began);
    assert!((100_000..200_000).contains(&took), "{took}: 32 in 4 ms");
}

#[test]
fn repetitions_wait_for_credit_but_one_may_always_go() {
    let mut scene = Scene::reliable();
    scene.send(10);
    scene.arrive(5..10);
    scene.window_bytes = 0;
    scene.report();
    let asks = scene.next_actions();
    assert!(
        matches!(asks[..], [Action::Probe { .. }]),
        "a shut window is only asked for: {asks:?}"
    );
    scene.window_bytes = 1;
    scene.report();
    assert_eq!(scene.repeated(), [0]);
    scene.arrive(0..1);
    scene.window_bytes = 2 * CHARGE;
    scene.report();
    assert_eq!(scene.repeated(), [1, 2]);
}

#[test]
fn what_left_in_the_same_microsecond_behind_what_arrived_is_not_overdue() {
    let mut scene = Scene::reliable();
    // A train of 64, of which the receiver has read the first half after a round trip and more.
    scene.send(64);
    scene.wait(1_000);
    scene.arrive((0..32).filter(|&sequence| sequence != 9));
    scene.report();
    assert_eq!(scene.repeated(), [9]);
    scene.wait(2_000);
    scene.flight.on_timer(scene.now);
    let repeated = scene.repeated();
    assert!(repeated.iter().all(|&sequence| sequence == 63), "{repeated:?}: all but the tail");
    scene.arrive(32..50);
    scene.wait(1_000);
    scene.report();
    assert!(scene.repeated().is_empty(), "what is read slowly is not lost");
}
