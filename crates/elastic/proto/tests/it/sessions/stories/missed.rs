//! Listeners that may miss what was acknowledged, and the producer's word of them.

use super::*;

#[test]
fn only_listeners_that_may_miss_something_get_a_gap() {
    let gaps = [(LISTENER, 4, true), (ClientId(3), 4, false), (LISTENER, 1, false)];
    for (who, below, gap) in gaps {
        // Its connection breaks; the producer loses the relay, too.
        let mut session = listener(Acknowledge::Delivered);
        start(&mut session, 1, 1, (0, 1), 0);
        data(&mut session, 1, 1, 0);
        session.handle_lost(Link(1), "reset", Time::ZERO);
        receive(&mut session, 2, missed(who, below));
        start(&mut session, 2, 1, (0, 2), 4);
        data(&mut session, 2, 1, 4);
        let reported = events(&mut session).contains(&Seen::Gap(1, 4));
        assert_eq!((reported, session.stats().messages), (gap, 2), "{who:?}, below {below}");
    }
}

fn missed(listener: ClientId, below: u64) -> Frame {
    Frame::Missed { producer: PRODUCER, listener, below: MessageSeq(below) }
}

type Way<'a> = &'a dyn Fn(&mut ListenerSession);

#[test]
fn what_a_relay_acknowledged_that_a_listener_never_reached_is_a_gap() {
    let fin = |session: &mut ListenerSession| {
        receive(session, 1, Frame::Fin { slot: Slot(1), next: MessageSeq(1) });
    };
    let lost = |session: &mut ListenerSession, link| {
        session.handle_lost(Link(link), "gone", Time::ZERO);
    };
    // The producer leaves relay 1 for relay 3, where messages below 4 are acknowledged, and that dies.
    let ways: [(&str, Way<'_>); 5] = [
        ("it sees the producer leave", &fin),
        ("then relay 3 is found dead", &|session| {
            fin(session);
            lost(session, 3);
        }),
        ("relay 1 was lost before", &|session| {
            lost(session, 1);
            lost(session, 3);
        }),
        ("relay 1 is lost after", &|session| {
            lost(session, 3);
            lost(session, 1);
        }),
        ("the directory takes relay 3 away", &|session| {
            lost(session, 1);
            listen_at(session, 3, &[1, 2]);
        }),
    ];
    for (way, leave) in ways {
        let mut session = listener(Acknowledge::Delivered);
        listen_at(&mut session, 2, &[1, 2, 3]);
        start(&mut session, 1, 1, (0, 1), 0);
        data(&mut session, 1, 1, 0);
        leave(&mut session);
        start(&mut session, 2, 1, (0, 3), 4);
        data(&mut session, 2, 1, 4);
        let seen = [Seen::Message(0), Seen::Gap(1, 4), Seen::Message(4)];
        assert_eq!(events(&mut session), seen, "{way}");
    }
}

#[test]
fn a_listener_that_sees_the_producer_again_reports_no_gap() {
    let mut session = listener(Acknowledge::Delivered);
    listen_at(&mut session, 2, &[1, 2, 3]);
    start(&mut session, 1, 1, (0, 1), 0);
    data(&mut session, 1, 1, 0);
    receive(&mut session, 1, Frame::Fin { slot: Slot(1), next: MessageSeq(1) });
    start(&mut session, 2, 1, (1, 2), 1);
    session.handle_connected(Link(3), Time::ZERO);
    attach(&mut session, 3, Acknowledge::Delivered);
    // What relay 2 acknowledged did not match.
    session.handle_lost(Link(2), "gone", Time::ZERO);
    start(&mut session, 3, 1, (0, 3), 4);
    data(&mut session, 3, 1, 4);
    assert_eq!(events(&mut session), [0, 4].map(Seen::Message));
}

#[test]
fn a_producer_tells_who_may_miss_something_before_it_sends_again() {
    let mut session = attached(1_000);
    (0..3).for_each(|_| assert!(session.publish(&["t"]).is_ok()));
    outputs(|| session.poll());
    let ack = Frame::Ack { slot: Slot(1), below: MessageSeq(2) };
    let of = |listener, below| missed(ClientId(listener), below);
    for frame in [of(8, 1 << 62), of(9, 1 << 62), of(9, 1), ack] {
        session.handle_frame(Link(1), frame, Time::ZERO);
    }
    session.handle_lost(Link(1), "gone", Time::ZERO);
    for (relay, first) in [(2, 2), (3, 2)] {
        produce_at(&mut session, 1, 4 + relay, relay);
        session.handle_connected(Link(relay), Time::ZERO);
        outputs(|| session.poll());
        answer(&mut session, relay, 1, 1_000);
        let did = outputs(|| session.poll());
        assert_eq!(did[..2], [of(8, first), of(9, 1)].map(|frame| Did::Send(Link(relay), frame)));
        assert!(matches!(&did[2], Did::Send(_, Frame::Start(_))), "{did:?}");
        session.handle_lost(Link(relay), "gone", Time::ZERO);
    }
}

#[test]
fn a_disconnected_listener_hears_what_was_acknowledged_without_it() {
    let mut session = listener(Acknowledge::Delivered);
    start(&mut session, 1, 1, (0, 1), 0);
    data(&mut session, 1, 1, 0);
    let (field, text) = (String::new(), "too slow".to_owned());
    let too_slow = WireError { code: ErrorCode::TooSlow, field, text, fatal: true };
    receive(&mut session, 1, Frame::Error(too_slow));
    let did = outputs(|| session.poll());
    let is_witness = |did: &Did| matches!(did, Did::Directory(Frame::RelayLost { .. }));
    assert!(!did.iter().any(is_witness), "a relay that answers is not dead: {did:?}");
    // The relay dies, before we are there again; the producer goes on with what is not acknowledged.
    start(&mut session, 2, 1, (0, 2), 5);
    data(&mut session, 2, 1, 5);
    let seen = [Seen::Message(0), Seen::Gap(1, 5), Seen::Message(5)];
    assert_eq!(events(&mut session), seen);
}
