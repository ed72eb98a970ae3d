//! How much may be under way: the receiver's credit, and what the path carries.

use quelea_cmq_proto::flight::INITIAL_WINDOW_BYTES;

use super::{CHARGE, Scene};

#[test]
fn a_new_lossy_flow_sends_the_first_window_and_waits_for_credit() {
    let mut scene = Scene::lossy();
    let mut sent = 0;
    while scene.flight.may_send(u64::from(CHARGE)) {
        scene.send(1);
        sent += 1;
    }
    assert_eq!(sent, INITIAL_WINDOW_BYTES / u64::from(CHARGE));
    // Three quarters arrived, one datagram of them not: it counts as arrived or lost all the same.
    scene.arrive((0..sent * 3 / 4).filter(|&sequence| sequence != 5));
    scene.window_bytes = 4 * CHARGE;
    assert!(!scene.report().opened, "a window of four with eight under way");
    scene.window_bytes = 40 * CHARGE;
    assert!(scene.report().opened);
    assert!(scene.flight.may_send(u64::from(CHARGE)));
    assert!(scene.repeated().is_empty(), "lossy flows repeat nothing");
}

#[test]
fn one_train_may_always_go_unless_the_window_is_shut() {
    let mut scene = Scene::lossy();
    let train = 64 * u64::from(CHARGE);
    assert!(train > INITIAL_WINDOW_BYTES);
    assert!(scene.flight.may_send(train));
    scene.send(64);
    assert!(!scene.flight.may_send(1));
    scene.arrive(0..64);
    scene.window_bytes = 1;
    assert!(scene.report().opened);
    assert_eq!(scene.flight.room(), 1);
    assert!(scene.flight.may_send(train));
    scene.window_bytes = 0;
    scene.report();
    assert!(!scene.flight.may_send(1));
    scene.window_bytes = 1;
    assert!(scene.report().opened);
}

#[test]
fn an_old_status_does_not_bring_an_old_window_back() {
    let mut scene = Scene::lossy();
    scene.send(2);
    scene.arrive(0..1);
    let old = scene.status();
    scene.arrive(1..2);
    scene.window_bytes = 0;
    let new = scene.status();
    scene.flight.on_status(&new, 9, scene.now);
    scene.flight.on_status(&old, 8, scene.now);
    assert!(!scene.flight.may_send(1));
}

#[test]
fn a_shut_window_is_probed_ever_more_seldom_until_it_opens() {
    for reliable in [false, true] {
        let mut scene = Scene::new(reliable, true);
        scene.send(1);
        scene.arrive(0..1);
        scene.window_bytes = 0;
        scene.report();
        assert!(scene.flight.is_settled());
        assert!(!scene.flight.may_send(1));
        let began = scene.now;
        let mut questions = 0;
        while scene.now.since_us(began) < 60_000_000 {
            for action in scene.next_actions() {
                scene.answer(&action);
                questions += 1;
            }
        }
        assert!((60..80).contains(&questions), "{questions}: one a second at last");
        assert!(!scene.flight.is_dead(), "it does answer");
        scene.window_bytes = 1_000;
        let probe = scene.next_actions().remove(0);
        assert!(scene.answer(&probe).opened);
        assert_eq!(scene.flight.next_deadline(), None);
    }
}

#[test]
fn a_refusal_gives_a_lossy_sender_its_credit_back() {
    let mut scene = Scene::lossy();
    scene.send(30);
    assert!(!scene.flight.may_send(INITIAL_WINDOW_BYTES));
    assert!(scene.flight.on_refusal(true, scene.now).opened);
    assert!(scene.flight.is_settled());
}

#[test]
fn the_path_between_machines_is_filled_step_by_step() {
    let mut scene = Scene::new(true, false);
    scene.window_bytes = u32::MAX;
    scene.report();
    let mut sent_before = 0;
    for round in 0..5 {
        let mut sent = 0;
        while scene.flight.may_send(u64::from(CHARGE)) {
            scene.send(1);
            sent += 1;
        }
        assert!(round == 0 || sent >= sent_before * 3 / 2, "round {round}: {sent_before}, {sent}");
        sent_before = sent;
        scene.wait(10_000);
        scene.arrive(0..scene.next);
        scene.report();
    }
}
