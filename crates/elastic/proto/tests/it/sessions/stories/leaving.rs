//! Listeners that a directory has leave a relay.

use super::*;

/// Takes what it wants of one connection.
fn sent(session: &mut ListenerSession, link: u64) -> Vec<Did> {
    let mut did = outputs(|| session.poll());
    did.retain(|did| matches!(did, Did::Send(of, _) | Did::Close(of) if *of == Link(link)));
    did
}

#[test]
fn what_a_relay_sent_before_it_was_left_is_read() {
    let mut session = listener(Acknowledge::Relayed);
    start(&mut session, 1, 1, (0, 1), 0);
    data(&mut session, 1, 1, 0);
    listen_at(&mut session, 2, &[2]);
    assert!(session.is_listening(), "it is at all relays that it is to be at");
    // Its producer published, and is gone.
    data(&mut session, 1, 1, 1);
    receive(&mut session, 1, Frame::Fin { slot: Slot(1), next: MessageSeq(2) });
    start(&mut session, 1, 2, (0, 2), 2);
    data(&mut session, 1, 2, 2);
    let asked = [Frame::Stop { fence: Fence(1) }, Frame::Ping(1)];
    assert_eq!(sent(&mut session, 1), asked.map(|frame| Did::Send(Link(1), frame)));
    receive(&mut session, 1, Frame::Pong(1));
    assert_eq!(sent(&mut session, 1), [Did::Close(Link(1))]);
    assert_eq!(events(&mut session), [0, 1, 2].map(Seen::Message));
    data(&mut session, 1, 2, 3);
    assert_eq!((events(&mut session), session.next_deadline()), (vec![], None));
    assert_eq!(session.stats().relays_lost, 0);
}

#[test]
fn a_relay_that_was_left_may_refuse_and_end() {
    let mut session = listener(Acknowledge::Relayed);
    start(&mut session, 1, 1, (0, 1), 0);
    listen_at(&mut session, 2, &[2]);
    let (field, text) = ("fence".to_owned(), "it is over".to_owned());
    let error = WireError { code: ErrorCode::Fenced, field, text, fatal: false };
    receive(&mut session, 1, Frame::Error(error));
    data(&mut session, 1, 1, 0);
    session.handle_lost(Link(1), "closed by the peer", Time::ZERO);
    assert_eq!(events(&mut session), [Seen::Message(0)]);
    assert_eq!((session.next_deadline(), session.stats().relays_lost), (None, 0));
}

#[test]
fn a_silent_relay_is_left_in_the_end() {
    let mut session = listener(Acknowledge::Relayed);
    start(&mut session, 1, 1, (0, 1), 0);
    listen_at(&mut session, 2, &[2]);
    outputs(|| session.poll());
    // As long as something comes, the answer may be behind it.
    let first = session.next_deadline().expect("it does not wait for ever");
    data(&mut session, 1, 1, 0);
    session.handle_timeout(first);
    assert_eq!(sent(&mut session, 1), []);
    let second = session.next_deadline().expect("it still waits");
    assert!(second > first);
    session.handle_timeout(second);
    assert_eq!(sent(&mut session, 1), [Did::Close(Link(1))]);
    assert_eq!(session.next_deadline(), None);
}

#[test]
fn a_relay_named_again_before_it_was_left_is_kept() {
    let mut session = listener(Acknowledge::Relayed);
    start(&mut session, 1, 1, (0, 1), 0);
    listen_at(&mut session, 2, &[2]);
    outputs(|| session.poll());
    listen_at(&mut session, 3, &[1, 2]);
    receive(&mut session, 1, Frame::Pong(1));
    data(&mut session, 1, 1, 0);
    assert_eq!(events(&mut session), [Seen::Message(0)]);
    assert_eq!(sent(&mut session, 1), []);
    assert!(session.is_listening());
}

#[test]
fn a_relay_at_the_address_of_another_is_not_stopped() {
    let mut session = listener(Acknowledge::Relayed);
    // Relay 1 dies, and whoever is at its address now is taken for it, until the directory says more.
    session.handle_lost(Link(1), "reset", Time::ZERO);
    session.handle_timeout(session.next_deadline().expect("it connects again"));
    session.handle_connected(Link(3), Time::ZERO);
    attach(&mut session, 3, Acknowledge::Relayed);
    outputs(|| session.poll());
    let (queue, fence, generation) = (QUEUE.to_owned(), Fence(1), 2);
    let third = RelayAddress { relay: RelayId(3), ..address(1) };
    let relays = vec![address(2), third];
    let frame = Frame::ListenAt { queue, listener: LISTENER, fence, generation, relays };
    session.handle_directory_frame(frame, Time::ZERO);
    let did = outputs(|| session.poll());
    assert!(did.contains(&Did::Connect(Link(4), RelayId(3))), "{did:?}");
    assert!(!did.iter().any(|did| matches!(did, Did::Send(_, Frame::Stop { .. }))), "{did:?}");
    receive(&mut session, 3, Frame::Pong(1));
    assert_eq!(outputs(|| session.poll()), [Did::Close(Link(3))]);
}
