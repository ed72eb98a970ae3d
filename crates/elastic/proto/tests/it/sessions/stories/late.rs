//! Messages of a producer that come after a later one of it was given, which was the first that was seen.

use super::*;

/// Returns a listener that first saw the producer at relay 2, where it came with message 3 from relay 1, which
/// did not answer in time.
fn first_seen_later(level: Acknowledge) -> ListenerSession {
    let mut session = listener(level);
    start(&mut session, 2, 1, (1, 2), 3);
    data(&mut session, 2, 1, 3);
    let deadline = session.next_deadline().expect("it does not wait for ever");
    session.handle_timeout(deadline);
    assert_eq!(events(&mut session), [Seen::Message(3)]);
    session
}

#[test]
fn what_comes_too_late_for_its_place_is_one_gap() {
    for level in [Acknowledge::Relayed, Acknowledge::Delivered] {
        let mut session = first_seen_later(level);
        start(&mut session, 1, 1, (0, 1), 0);
        assert_eq!(events(&mut session), [], "{level:?}: nothing of it may have matched");
        (1..3).for_each(|sequence| data(&mut session, 1, 1, sequence));
        receive(&mut session, 1, Frame::Fin { slot: Slot(1), next: MessageSeq(3) });
        data(&mut session, 2, 1, 4);
        assert_eq!(events(&mut session), [Seen::Gap(1, 3), Seen::Message(4)], "{level:?}");
    }
}

#[test]
fn a_late_gap_of_a_relay_is_announced() {
    let mut session = first_seen_later(Acknowledge::Relayed);
    start(&mut session, 1, 1, (0, 1), 0);
    let (slot, from, to) = (Slot(1), MessageSeq(0), MessageSeq(2));
    let gap = Gap { slot, from, to, messages: 2, cause: GapCause::TooSlow };
    receive(&mut session, 1, Frame::Gap(gap));
    data(&mut session, 1, 1, 2);
    assert_eq!(events(&mut session), [Seen::Gap(0, 3)]);
}

#[test]
fn what_a_producer_repeats_is_no_late_gap() {
    let mut session = first_seen_later(Acknowledge::Delivered);
    // It loses relay 2, where message 3 was not acknowledged.
    session.handle_lost(Link(2), "reset", Time::ZERO);
    start(&mut session, 1, 1, (0, 2), 3);
    (3..5).for_each(|sequence| data(&mut session, 1, 1, sequence));
    assert_eq!(events(&mut session), [Seen::Message(4)]);
}

/// Returns a listener that was attached at relays 1 and 2, one after the other, when the producer was at
/// relay 1 and had come to message 10, of which some before are not acknowledged by others.
fn joined_late(first_attached: u64) -> ListenerSession {
    let mut session = connecting(false);
    for link in [first_attached, 3 - first_attached] {
        session.handle_connected(Link(link), Time::ZERO);
        if link == 1 {
            start(&mut session, 1, 1, (1, 2), 10);
        }
        attach(&mut session, link, Acknowledge::Delivered);
    }
    let asked = outputs(|| session.poll());
    let was_asked = asked.contains(&Did::Send(Link(2), Frame::Ping(1)));
    assert_eq!(was_asked, first_attached == 1, "relay 2 may have had something for it");
    receive(&mut session, 2, Frame::Pong(1));
    data(&mut session, 1, 1, 10);
    assert_eq!(events(&mut session), [Seen::Message(10)]);
    session
}

#[test]
fn what_was_published_before_a_listener_came_is_no_gap() {
    for first_attached in [1, 2] {
        // The relay dies, or another one does that owes acknowledgements: the epoch is the same then.
        for (link, epoch) in [(2, 3), (1, 2)] {
            let mut session = joined_late(first_attached);
            if link == 2 {
                session.handle_lost(Link(1), "reset", Time::ZERO);
            } else {
                receive(&mut session, 1, Frame::Fin { slot: Slot(1), next: MessageSeq(11) });
            }
            start(&mut session, link, 2, (0, epoch), 7);
            data(&mut session, link, 2, 7);
            let (slot, from, to) = (Slot(2), MessageSeq(8), MessageSeq(9));
            let gap = Gap { slot, from, to, messages: 1, cause: GapCause::TooSlow };
            receive(&mut session, link, Frame::Gap(gap));
            (9..12).for_each(|sequence| data(&mut session, link, 2, sequence));
            let seen = events(&mut session);
            assert_eq!(seen, [Seen::Message(11)], "{first_attached}, in epoch {epoch}");
        }
    }
}

#[test]
fn what_is_sent_again_too_late_for_its_place_is_one_gap() {
    // Relay 1 had it, and never said so.
    let mut session = first_seen_later(Acknowledge::Delivered);
    session.handle_lost(Link(1), "reset", Time::ZERO);
    start(&mut session, 2, 2, (0, 3), 0);
    (0..5).for_each(|sequence| data(&mut session, 2, 2, sequence));
    assert_eq!(events(&mut session), [Seen::Gap(0, 3), Seen::Message(4)]);
}
