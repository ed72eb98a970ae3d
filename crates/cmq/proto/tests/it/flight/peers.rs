//! What becomes of a flight as its receiver answers, is silent, or begins anew.

use std::time::Duration;

use quelea_cmq_proto::flight::{Action, Flight, FlightOptions, INITIAL_WINDOW_BYTES};
use quelea_cmq_proto::wire::status::Status;

use super::{Scene, datagram, number};

#[test]
fn losses_are_reported_once_in_whatever_order_statuses_come() {
    let mut scene = Scene::reliable();
    scene.send(3);
    let actions = scene.next_actions();
    let Some(&Action::Probe { sent_at, .. }) = actions.last() else { panic!("{actions:?}") };
    let answer = Status { echo_us: sent_at.as_micros(), ..scene.status() };
    let newer = Status { lost_messages: 2, ..scene.status() };
    let reported = [(&newer, 5), (&answer, 4), (&newer, 6)]
        .map(|(status, number)| scene.flight.on_status(status, number, scene.now).lost_messages);
    assert_eq!(reported, [2, 0, 0]);
}

#[test]
fn the_tail_of_a_lossy_flow_is_asked_for_and_then_settled() {
    let mut scene = Scene::lossy();
    scene.send(3);
    let actions = scene.next_actions();
    let [probe @ Action::Probe { next: 3, floor: 3, .. }] = &actions[..] else {
        panic!("{actions:?}")
    };
    // The receiver has the first only; by the probe it knows that there were three.
    scene.arrive(0..1);
    let Action::Probe { sent_at, .. } = probe else { unreachable!() };
    let status = Status {
        received_below: 3,
        acknowledged_below: 3,
        lost_messages: 6,
        echo_us: sent_at.as_micros(),
        ..scene.status()
    };
    assert_eq!(scene.hear(&status).lost_messages, 6);
    assert!(scene.flight.is_settled());
    assert_eq!(scene.flight.next_deadline(), None);
    assert_eq!(scene.hear(&status).lost_messages, 0, "they are reported once");
}

#[test]
fn a_silent_lossy_peer_is_forgotten_after_half_a_minute() {
    let mut scene = Scene::lossy();
    let began = scene.now;
    scene.send(30);
    assert!(!scene.flight.may_send(INITIAL_WINDOW_BYTES));
    let mut questions = 0;
    loop {
        let actions = scene.next_actions();
        if actions.contains(&Action::Abandon { messages: 0 }) {
            break;
        }
        questions += actions.len();
    }
    let waited = scene.now.since_us(began);
    assert!((30_000_000..32_000_000).contains(&waited), "{waited}");
    assert!(questions < 45, "{questions} questions are a storm");
    assert!(scene.flight.is_settled() && !scene.flight.is_dead());
    assert!(scene.flight.may_send(INITIAL_WINDOW_BYTES));
}

#[test]
fn what_expires_is_given_up_and_the_receiver_told() {
    let mut scene = Scene::reliable();
    let expires = scene.now.plus_us(20_000);
    for _ in 0..4 {
        scene.send_until(Some(expires));
    }
    let late = scene.now.plus_us(500_000);
    scene.send_until(Some(late));
    scene.arrive([2]);
    scene.report();
    let began = scene.now;
    let floor = loop {
        let probes = scene.tick().into_iter().filter_map(|action| match action {
            Action::Probe { floor, .. } => Some(floor),
            _ => None,
        });
        if let Some(floor) = probes.last().filter(|&floor| floor > 0) {
            break floor;
        }
    };
    assert_eq!(floor, 4);
    assert!(scene.now.since_us(began) >= 20_000);
    // Until the receiver has heard it, it is announced again.
    assert!(scene.next_actions().iter().any(|a| matches!(a, Action::Probe { floor: 4, .. })));
    let status = Status {
        received_below: 5,
        acknowledged_below: 5,
        highest: 5,
        lost_messages: 9,
        ..scene.status()
    };
    let status = Status { ranges: Vec::new(), ..status };
    assert_eq!(scene.hear(&status).lost_messages, 9);
    assert!(scene.flight.is_settled());
}

#[test]
fn a_restarted_receiver_gets_what_is_unacknowledged_as_a_new_flow() {
    let mut scene = Scene::reliable();
    scene.send(6);
    scene.arrive([0, 1, 3]);
    scene.report();
    // The new receiver has seen the last one, and nothing before.
    let anew =
        Status { receiver_session: 78, highest: 6, window_bytes: 1 << 20, ..Status::default() };
    let anew = Status { ranges: vec![(5, 6)], ..anew };
    assert!(scene.hear(&anew).restarted);
    let next = scene.flight.restart(scene.now, |sequence, messages, bytes| {
        assert_eq!((number(&bytes), messages), (sequence + 2, 3));
        Some(datagram(sequence + 100))
    });
    assert_eq!(next, 4);
    assert_eq!(scene.repeated(), [100, 101, 102, 103]);
    scene.next = next;
    scene.received = (0..4).collect();
    let status = Status { receiver_session: 78, ..scene.status() };
    assert!(!scene.flight.on_status(&status, 0, scene.now).restarted);
    assert!(scene.flight.is_settled());
}

#[test]
fn a_message_that_expired_in_part_is_no_part_of_the_new_flow() {
    let mut scene = Scene::reliable();
    scene.send(1);
    let expires = scene.now.plus_us(20_000);
    for _ in 0..3 {
        scene.send_until(Some(expires));
    }
    scene.send(1);
    // Two fragments of the message came, and the third is given up.
    scene.arrive([0, 1, 2]);
    scene.hear(&Status { acknowledged_below: 1, ..scene.status() });
    while scene.now < expires {
        scene.tick();
    }
    let anew = Status { receiver_session: 78, window_bytes: 1 << 20, ..Status::default() };
    assert!(scene.hear(&anew).restarted);
    let next = scene.flight.restart(scene.now, |_, _, bytes| Some(bytes));
    assert_eq!(next, 1);
    assert_eq!(scene.repeated(), [4]);
}

#[test]
fn a_receiver_restarted_before_it_acknowledged_keeps_the_flow() {
    let mut scene = Scene::reliable();
    scene.send(4);
    // The old receiver had three, and handed nothing over.
    scene.arrive(0..3);
    let status = Status { acknowledged_below: 0, ..scene.status() };
    scene.hear(&status);
    scene.received = [3].into();
    let anew = Status { receiver_session: 78, ..scene.status() };
    assert!(!scene.hear(&anew).restarted);
    assert_eq!(scene.repeated(), [0, 1, 2]);
}

#[test]
fn a_receiver_that_forgot_the_flow_is_taken_as_started_anew() {
    let mut scene = Scene::reliable();
    scene.send(6);
    scene.arrive(0..5);
    scene.report();
    let probe = loop {
        if let Some(probe) = scene.next_actions().pop_if(|a| matches!(a, Action::Probe { .. })) {
            break probe;
        }
    };
    assert!(matches!(probe, Action::Probe { next: 6, floor: 0, .. }), "nothing was given up");
    scene.received.clear();
    // A late word from before the question is just that.
    assert!(!scene.report().restarted);
    assert!(scene.answer(&probe).restarted);
}

#[test]
fn a_dead_peer_of_a_reliable_flow_is_given_up() {
    let mut scene = Scene::reliable();
    let options =
        FlightOptions { dead_after: Duration::from_secs(5), ..FlightOptions::new(true, true) };
    scene.flight = Flight::new(&options, 0, scene.now);
    scene.send(10);
    scene.arrive(0..4);
    scene.report();
    let began = scene.now;
    let mut datagrams = 0;
    let messages = loop {
        let actions = scene.next_actions();
        datagrams += actions.len();
        if let Some(Action::Abandon { messages }) = actions.last() {
            break *messages;
        }
    };
    assert_eq!(messages, 18);
    assert!((5_000_000..6_500_000).contains(&scene.now.since_us(began)));
    assert!(datagrams < 40, "{datagrams} are a storm");
    assert!(scene.flight.is_dead() && !scene.flight.may_send(1));
    assert_eq!(scene.flight.next_deadline(), None);
}

#[test]
fn impossible_words_are_refused_whole() {
    let mut scene = Scene::reliable();
    scene.send(5);
    let good = Status { window_bytes: 7, ..scene.status() };
    let impossible = [
        Status { received_below: 6, ..good.clone() },
        Status { highest: 6, ..good.clone() },
        Status { acknowledged_below: 1, ..good.clone() },
        Status { highest: 5, ranges: vec![(2, 7)], ..good.clone() },
        Status { highest: 5, ranges: vec![(3, 2)], ..good.clone() },
        Status { highest: 5, ranges: vec![(3, 4), (2, 3)], ..good.clone() },
        Status { highest: u64::MAX, received_below: u64::MAX, ..good.clone() },
    ];
    let room = scene.flight.room();
    for status in impossible {
        assert!(scene.hear(&status).impossible, "{status:?}");
        assert_eq!(scene.flight.room(), room);
    }
    assert!(!scene.hear(&good).impossible);
}

#[test]
fn the_end_is_announced_until_it_is_acknowledged() {
    for reliable in [false, true] {
        let mut scene = Scene::new(reliable, true);
        scene.send(1);
        scene.arrive(0..1);
        scene.report();
        scene.flight.close();
        assert!(!scene.flight.is_settled());
        assert_eq!(scene.actions().len(), 1);
        scene.report();
        assert!(!scene.flight.is_settled(), "this may be a word from before");
        let probe = scene.next_actions().remove(0);
        scene.answer(&probe);
        assert!(scene.flight.is_settled());
        assert_eq!(scene.flight.next_deadline(), None);
    }
}
