//! One destination's flight against a receiver that the test plays.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use quelea_cmq_proto::Time;
use quelea_cmq_proto::flight::{
    Action, Flight, FlightOptions, INITIAL_WINDOW_BYTES, Outcome, Sent, charge,
};
use quelea_cmq_proto::wire::status::Status;

const SEGMENT_BYTES: usize = 1_200;
const CHARGE: u32 = charge(SEGMENT_BYTES);

/// A flight, its clock, and what a receiver without faults would know.
struct Scene {
    flight: Flight,
    now: Time,
    next: u64,
    received: BTreeSet<u64>,
    window_bytes: u32,
    statuses: u64,
}

impl Scene {
    fn new(reliable: bool, loopback: bool) -> Self {
        let now = Time::from_us(1_000_000);
        Self {
            flight: Flight::new(&FlightOptions::new(reliable, loopback), 0, now),
            now,
            next: 0,
            received: BTreeSet::new(),
            window_bytes: 1 << 20,
            statuses: 0,
        }
    }

    fn lossy() -> Self {
        Self::new(false, true)
    }

    fn reliable() -> Self {
        Self::new(true, true)
    }

    fn wait(&mut self, us: u64) {
        self.now = self.now.after_us(us);
    }

    fn send_until(&mut self, expires: Option<Time>) -> u64 {
        let sequence = self.next;
        self.next += 1;
        let kept = Some(datagram(sequence));
        let sent = Sent { sequence, messages: 3, charge: CHARGE, kept, expires };
        self.flight.sent(sent, self.now);
        sequence
    }

    fn send(&mut self, count: u64) {
        for _ in 0..count {
            self.send_until(None);
        }
    }

    fn arrive(&mut self, sequences: impl IntoIterator<Item = u64>) {
        self.received.extend(sequences);
    }

    /// What a receiver of everything in `received` would say.
    fn status(&self) -> Status {
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for &sequence in &self.received {
            match ranges.last_mut() {
                Some((_, end)) if *end == sequence => *end += 1,
                _ => ranges.push((sequence, sequence + 1)),
            }
        }
        let highest = ranges.last().map_or(0, |&(_, end)| end);
        let below = match ranges.first() {
            Some(&(0, end)) => {
                ranges.remove(0);
                end
            }
            _ => 0,
        };
        ranges.truncate(quelea_cmq_proto::limits::STATUS_RANGES_MAX);
        Status {
            receiver_session: 77,
            received_below: below,
            acknowledged_below: below,
            highest,
            window_bytes: self.window_bytes,
            ranges,
            ..Status::default()
        }
    }

    fn hear(&mut self, status: &Status) -> Outcome {
        self.statuses += 1;
        self.flight.on_status(status, self.statuses, self.now)
    }

    fn report(&mut self) -> Outcome {
        let status = self.status();
        self.hear(&status)
    }

    fn answer(&mut self, probe: &Action) -> Outcome {
        let Action::Probe { sent_at, .. } = probe else { panic!("{probe:?} is no probe") };
        let status = Status { echo_us: sent_at.as_us(), ..self.status() };
        self.hear(&status)
    }

    fn actions(&mut self) -> Vec<Action> {
        std::iter::from_fn(|| self.flight.poll(self.now)).collect()
    }

    /// The sequences that are repeated now.
    fn repeated(&mut self) -> Vec<u64> {
        let repeats = self.actions().into_iter().filter_map(|action| match action {
            Action::Repeat(bytes) => Some(number(&bytes)),
            _ => None,
        });
        repeats.collect()
    }

    /// Goes to the next deadline.
    fn tick(&mut self) -> Vec<Action> {
        let due = self.flight.next_deadline().expect("something is due");
        self.now = self.now.max(due);
        self.flight.on_timer(self.now);
        self.actions()
    }

    /// Ticks until there is something to do.
    fn next_actions(&mut self) -> Vec<Action> {
        for _ in 0..10 {
            let actions = self.tick();
            if !actions.is_empty() {
                return actions;
            }
        }
        panic!("ten deadlines without anything to do");
    }
}

fn datagram(sequence: u64) -> Bytes {
    let mut bytes = vec![0; SEGMENT_BYTES];
    bytes[..8].copy_from_slice(&sequence.to_le_bytes());
    bytes.into()
}

fn number(datagram: &[u8]) -> u64 {
    u64::from_le_bytes(datagram[..8].try_into().unwrap())
}

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
fn losses_are_told_of_once_whatever_the_order_of_the_words() {
    let mut scene = Scene::reliable();
    scene.send(3);
    let actions = scene.next_actions();
    let Some(&Action::Probe { sent_at, .. }) = actions.last() else { panic!("{actions:?}") };
    let answer = Status { echo_us: sent_at.as_us(), ..scene.status() };
    let newer = Status { lost_messages: 2, ..scene.status() };
    let told = [(&newer, 5), (&answer, 4), (&newer, 6)]
        .map(|(status, number)| scene.flight.on_status(status, number, scene.now).lost_messages);
    assert_eq!(told, [2, 0, 0]);
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
        echo_us: sent_at.as_us(),
        ..scene.status()
    };
    assert_eq!(scene.hear(&status).lost_messages, 6);
    assert!(scene.flight.is_settled());
    assert_eq!(scene.flight.next_deadline(), None);
    assert_eq!(scene.hear(&status).lost_messages, 0, "they are told of once");
}

#[test]
fn a_silent_peer_of_a_lossy_flow_is_forgotten_after_half_a_minute() {
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
    let waited = scene.now.us_since(began);
    assert!((30_000_000..32_000_000).contains(&waited), "{waited}");
    assert!(questions < 45, "{questions} questions are a storm");
    assert!(scene.flight.is_settled() && !scene.flight.is_dead());
    assert!(scene.flight.may_send(INITIAL_WINDOW_BYTES));
}

#[test]
fn a_shut_window_is_asked_for_until_it_opens_but_ever_more_seldom() {
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
        while scene.now.us_since(began) < 60_000_000 {
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
    assert_eq!(scene.now.us_since(began), 2_500, "1.25 round trips after it left");
}

#[test]
fn a_lost_tail_is_repeated_after_two_milliseconds_and_all_of_it_after_the_answer() {
    let mut scene = Scene::reliable();
    scene.send(5);
    let began = scene.now;
    let actions = scene.next_actions();
    assert_eq!(scene.now.us_since(began), 2_000);
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
fn a_repetition_that_is_lost_too_is_found_by_what_was_sent_later() {
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
fn what_a_status_has_no_room_to_tell_is_not_taken_as_lost() {
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
    let took = scene.now.us_since(began);
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
fn what_expires_is_given_up_and_the_receiver_told() {
    let mut scene = Scene::reliable();
    let expires = scene.now.after_us(20_000);
    for _ in 0..4 {
        scene.send_until(Some(expires));
    }
    let late = scene.now.after_us(500_000);
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
    assert!(scene.now.us_since(began) >= 20_000);
    // Until the receiver has heard it, it is told again.
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
fn a_receiver_that_was_started_anew_gets_everything_unacknowledged_as_a_new_flow() {
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
fn a_receiver_that_was_started_anew_before_it_acknowledged_goes_on_with_the_same_flow() {
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
    assert!((5_000_000..6_500_000).contains(&scene.now.us_since(began)));
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
fn the_end_is_told_until_it_is_heard() {
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

#[test]
fn a_refusal_gives_a_lossy_sender_its_credit_back() {
    let mut scene = Scene::lossy();
    scene.send(30);
    assert!(!scene.flight.may_send(INITIAL_WINDOW_BYTES));
    assert!(scene.flight.on_refusal(scene.now).opened);
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
