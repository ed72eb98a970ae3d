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
