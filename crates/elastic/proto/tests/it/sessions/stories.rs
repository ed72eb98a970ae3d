//! Single scenarios, step by step.

mod late;
mod leaving;
mod missed;

use bytes::{Bytes, BytesMut};
use quelea_elastic_proto::frame::{
    Acknowledge, ErrorCode, Frame, Gap, GapCause, NoticeCode, RelayAddress, Start, WireError,
};
use quelea_elastic_proto::limits::{
    LISTENER_EVENTS_MAX, PRODUCER_WINDOW_BYTES_MIN, RELAY_ATTACHMENTS_MAX,
};
use quelea_elastic_proto::session::{
    Event, GapNotice, Link, ListenerConfig, ListenerSession, Output, ProducerConfig,
    ProducerSession, PublishError, Session as _, SessionEvent, SubscribeError,
};
use quelea_elastic_proto::{ClientId, Epoch, Fence, MessageSeq, RelayId, Slot, Time, parts};

use super::seen::{Seen, of_producer};
use super::world::{QUEUE, SessionWorld};

const PRODUCER: ClientId = ClientId(1);
const LISTENER: ClientId = ClientId(2);

#[test]
fn a_message_reaches_the_listeners_of_its_topic_and_is_acknowledged() {
    let mut world = SessionWorld::new(1, Acknowledge::Relayed, 1, &[&["eur."], &["usd."]]);
    world.start_relay(1);
    world.publish(0, "eur.usd");
    world.settle();
    assert_eq!(of_producer(&world.seen[0], 0), [Seen::Message(0)]);
    assert_eq!(of_producer(&world.seen[1], 0), []);
    assert_eq!(world.producers[0].acknowledged(), MessageSeq(1));
    let Event::Message(message) = &world.seen[0][0] else { panic!("it is a message") };
    assert_eq!((message.topic(), message.body()), (&b"eur.usd"[..], &b"0:0"[..]));
}

#[test]
fn a_producer_moves_without_a_pause() {
    let mut world = SessionWorld::new(1, Acknowledge::Relayed, 1, &[&[""]]);
    world.start_relay(1);
    world.publish(0, "a");
    world.settle();
    world.start_relay(2);
    world.move_to(0, 2);
    world.publish(0, "b");
    world.settle();
    world.publish(0, "c");
    world.settle();
    assert_eq!(of_producer(&world.seen[0], 0), [0, 1, 2].map(Seen::Message));
    assert_eq!(world.producers[0].relay(), Some(RelayId(2)));
    let stats = world.producers[0].stats();
    assert_eq!((stats.moves, stats.failovers, stats.last_pause_us), (1, 0, 0));
    assert_eq!(world.listeners[0].stats().gaps, 0);
}

#[test]
fn what_a_dead_relay_owed_is_sent_again() {
    let mut world = SessionWorld::new(1, Acknowledge::Delivered, 1, &[&[""]]);
    world.start_relay(1);
    world.start_relay(2);
    world.settle();
    let at = world.producers[0].relay().expect("it has a relay");
    (0..5).for_each(|_| assert!(world.publish(0, "a")));
    (0..4).for_each(|_| assert!(world.step()));
    world.kill(at.0);
    world.settle();
    assert_eq!(of_producer(&world.seen[0], 0), [0, 1, 2, 3, 4].map(Seen::Message));
    assert_ne!(world.producers[0].relay(), Some(at));
    assert_eq!(world.producers[0].stats().failovers, 1);
    assert_eq!(world.producers[0].acknowledged(), MessageSeq(5));
}

#[test]
fn a_relay_declared_dead_is_no_longer_heeded() {
    let mut world = SessionWorld::new(1, Acknowledge::Delivered, 1, &[&[""]]);
    world.start_relay(1);
    world.start_relay(2);
    world.settle();
    let relay = world.producers[0].relay().expect("it has a relay");
    (0..5).for_each(|_| assert!(world.publish(0, "a")));
    let (queue, cause) = (QUEUE.to_owned(), "a test".to_owned());
    let client = ClientId(1);
    let lost = Frame::RelayLost { queue, client, relay, cause };
    world.producers[0].handle_directory_frame(lost, world.now);
    assert_eq!(world.producers[0].relay(), None);
    assert_eq!(world.producers[0].stats().failovers, 1);
    world.settle();
    assert_eq!(of_producer(&world.seen[0], 0), [0, 1, 2, 3, 4].map(Seen::Message));
    assert_eq!(world.producers[0].acknowledged(), MessageSeq(5));
}

#[test]
fn a_session_that_is_closed_has_all_acknowledged_before() {
    let mut world = SessionWorld::new(1, Acknowledge::Delivered, 1, &[&[""]]);
    world.start_relay(1);
    (0..5).for_each(|_| assert!(world.publish(0, "a")));
    world.producers[0].close();
    assert_eq!(world.producers[0].publish(&[b"late"]), Err(PublishError::Closed));
    assert_eq!(world.producers[0].poll_event(), None, "nothing is acknowledged yet");
    world.settle();
    assert_eq!(world.producers[0].poll_event(), Some(SessionEvent::Closed));
    assert_eq!(of_producer(&world.seen[0], 0).len(), 5);
}

fn producer() -> ProducerSession {
    let mut config = ProducerConfig::new(QUEUE.to_owned(), PRODUCER);
    config.window_bytes = PRODUCER_WINDOW_BYTES_MIN;
    let mut session = ProducerSession::new(config, Time::ZERO);
    session.handle_directory_connected(Time::ZERO);
    session
}

fn address(relay: u64) -> RelayAddress {
    RelayAddress { relay: RelayId(relay), address: format!("127.0.0.1:{relay}") }
}

fn produce_at(session: &mut ProducerSession, fence: u64, epoch: u64, relay: u64) {
    let (queue, relay) = (QUEUE.to_owned(), address(relay));
    let (fence, epoch) = (Fence(fence), Epoch(epoch));
    let frame = Frame::ProduceAt { queue, producer: PRODUCER, fence, epoch, relay };
    session.handle_directory_frame(frame, Time::ZERO);
}

/// Polls for all that it wants, and returns that with frames decoded.
fn outputs(mut poll: impl FnMut() -> Option<Output>) -> Vec<Did> {
    let mut did = Vec::new();
    while let Some(output) = poll() {
        match output {
            Output::Connect { link, relay } => did.push(Did::Connect(link, relay.relay)),
            Output::Close { link } => did.push(Did::Close(link)),
            Output::Directory(frame) => did.push(Did::Directory(frame)),
            Output::Send { link, mut bytes } => {
                while let Some(frame) = Frame::decode(&mut bytes).expect("ours are well-formed") {
                    did.push(Did::Send(link, frame));
                }
            }
        }
    }
    did
}

#[derive(Debug, PartialEq)]
enum Did {
    Connect(Link, RelayId),
    Close(Link),
    Directory(Frame),
    Send(Link, Frame),
}

/// Returns a producer that is attached at relay 1, in slot 1 of epoch 5, with some credit.
fn attached(credit_bytes: u64) -> ProducerSession {
    let mut session = producer();
    produce_at(&mut session, 1, 5, 1);
    session.handle_connected(Link(1), Time::ZERO);
    answer(&mut session, 1, 1, credit_bytes);
    session
}

fn answer(session: &mut ProducerSession, link: u64, slot: u32, credit_bytes: u64) {
    let (slot, acknowledge) = (Slot(slot), Acknowledge::Relayed);
    let frame = Frame::Attached { slot, acknowledge, credit_bytes };
    session.handle_frame(Link(link), frame, Time::ZERO);
}

#[test]
fn a_switch_is_fin_start_and_data_in_one_go() {
    let mut session = attached(1_000);
    session.publish(&["a"]).unwrap();
    outputs(|| session.poll());
    produce_at(&mut session, 1, 6, 2);
    session.publish(&["b"]).unwrap();
    session.handle_connected(Link(2), Time::ZERO);
    let before = outputs(|| session.poll());
    assert!(before.iter().any(|did| matches!(did, Did::Send(Link(1), Frame::Data { .. }))));
    session.publish(&["c"]).unwrap();
    answer(&mut session, 2, 9, 1_000);
    let start = Start {
        slot: Slot(9),
        producer: PRODUCER,
        epoch: Epoch(6),
        first: MessageSeq(2),
        previous: Epoch(5),
    };
    let data = Frame::Data {
        slot: Slot(9),
        sequence: MessageSeq(2),
        parts: parts::encode(&["c"]).unwrap(),
    };
    let producing = Frame::Producing {
        queue: QUEUE.to_owned(),
        producer: PRODUCER,
        epoch: Epoch(6),
        relay: RelayId(2),
        first: MessageSeq(2),
    };
    assert_eq!(
        outputs(|| session.poll()),
        [
            Did::Send(Link(1), Frame::Fin { slot: Slot(1), next: MessageSeq(2) }),
            Did::Send(Link(2), Frame::Start(start)),
            Did::Directory(producing),
            Did::Send(Link(2), data),
        ]
    );
    // The old relay is left when it owes nothing any more.
    let ack = Frame::Ack { slot: Slot(1), below: MessageSeq(2) };
    session.handle_frame(Link(1), ack, Time::ZERO);
    assert_eq!(outputs(|| session.poll()), [Did::Close(Link(1))]);
    assert_eq!(session.acknowledged(), MessageSeq(2));
}

/// Returns a producer at as many relays as may owe acknowledgements, each owing one message, that
/// is sent to one more.
fn moved_too_often() -> ProducerSession {
    let mut session = attached(1_000);
    for stay in 1..=RELAY_ATTACHMENTS_MAX as u64 {
        session.publish(&["a"]).expect("there is room");
        outputs(|| session.poll());
        produce_at(&mut session, 1, 5 + stay, 1 + stay);
        session.handle_connected(Link(1 + stay), Time::ZERO);
        answer(&mut session, 1 + stay, 1, 1_000);
    }
    assert_eq!(session.relay(), Some(RelayId(RELAY_ATTACHMENTS_MAX as u64)));
    session
}

#[test]
fn a_move_waits_until_a_former_relay_owes_nothing() {
    let mut session = moved_too_often();
    assert_eq!(outputs(|| session.poll()), [], "it is neither refused nor begun");
    let ack = Frame::Ack { slot: Slot(1), below: MessageSeq(1) };
    session.handle_frame(Link(1), ack, Time::ZERO);
    let wanted = RELAY_ATTACHMENTS_MAX as u64 + 1;
    let did = outputs(|| session.poll());
    assert_eq!(did, [Did::Close(Link(1)), Did::Connect(Link(wanted), RelayId(wanted))]);
}

#[test]
fn a_move_that_has_waited_too_long_is_refused() {
    let mut session = moved_too_often();
    let deadline = session.next_deadline().expect("it waits for acknowledgements");
    session.handle_timeout(deadline);
    let did = outputs(|| session.poll());
    let [Did::Directory(Frame::ProduceFailed { epoch, cause, .. })] = &did[..] else {
        panic!("{did:?}");
    };
    assert_eq!(*epoch, Epoch(5 + RELAY_ATTACHMENTS_MAX as u64));
    assert!(cause.starts_with("8 relays still owe acknowledgements"), "{cause}");
    assert_eq!(session.next_deadline(), None);
}

#[test]
fn a_producer_stays_if_the_new_relay_refuses_it() {
    let mut session = attached(1_000);
    produce_at(&mut session, 1, 6, 2);
    outputs(|| session.poll());
    session.handle_lost(Link(2), "connection refused", Time::ZERO);
    session.publish(&["a"]).unwrap();
    let did = outputs(|| session.poll());
    assert!(
        matches!(&did[1], Did::Directory(Frame::ProduceFailed { relay: RelayId(2), cause, .. })
        if cause == "connection refused"),
        "{did:?}"
    );
    assert!(matches!(did[2], Did::Send(Link(1), Frame::Data { .. })), "{did:?}");
}

#[test]
fn a_relay_that_does_not_answer_is_given_up() {
    let mut session = attached(1_000);
    produce_at(&mut session, 1, 6, 2);
    outputs(|| session.poll());
    let deadline = session.next_deadline().expect("it waits for the relay");
    session.handle_timeout(deadline);
    let did = outputs(|| session.poll());
    assert!(matches!(did[1], Did::Directory(Frame::ProduceFailed { .. })), "{did:?}");
    assert_eq!(session.next_deadline(), None);
}

#[test]
fn an_old_directory_is_not_obeyed() {
    let mut session = attached(1_000);
    outputs(|| session.poll());
    produce_at(&mut session, 0, 7, 2);
    let did = outputs(|| session.poll());
    let [Did::Directory(Frame::Error(error))] = &did[..] else { panic!("{did:?}") };
    assert_eq!((error.code, error.field.as_str()), (ErrorCode::Fenced, "fence"));
    assert_eq!(error.text, "fence: 0 is below the highest seen, 1");
    produce_at(&mut session, 1, 4, 2);
    assert_eq!(outputs(|| session.poll()), [], "an old epoch is over");
    produce_at(&mut session, 1, 5, 1);
    let did = outputs(|| session.poll());
    assert!(
        matches!(did[..], [Did::Directory(Frame::Producing { .. })]),
        "it is repeated: {did:?}"
    );
}

#[test]
fn a_message_begins_within_the_credit() {
    let mut session = attached(100);
    for _ in 0..10 {
        session.publish(&[[7; 30]]).unwrap(); // 52 bytes as a frame.
    }
    let sent = |session: &mut ProducerSession| {
        let did = outputs(|| session.poll());
        did.iter().filter(|did| matches!(did, Did::Send(_, Frame::Data { .. }))).count()
    };
    assert_eq!(sent(&mut session), 2);
    session.handle_frame(Link(1), Frame::Credit { slot: Slot(1), bytes: 105 }, Time::ZERO);
    assert_eq!(sent(&mut session), 1);
    session.handle_frame(Link(1), Frame::Credit { slot: Slot(1), bytes: 10_000 }, Time::ZERO);
    assert_eq!(sent(&mut session), 7);
}

#[test]
fn publishing_waits_when_too_much_is_not_acknowledged() {
    let mut session = attached(u64::MAX);
    let message = [vec![7; 10_000]];
    let mut taken = 0;
    let error = loop {
        match session.publish(&message) {
            Ok(_) => taken += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(taken, 6);
    assert_eq!(error.to_string(), "window: 60174 bytes are not acknowledged, the limit is 65536");
    outputs(|| session.poll());
    let ack = Frame::Ack { slot: Slot(1), below: MessageSeq(6) };
    session.handle_frame(Link(1), ack, Time::ZERO);
    assert_eq!(session.window_bytes(), 0);
    session.publish(&[vec![7; 1 << 20]]).expect("one that is larger than the window goes alone");
    assert!(matches!(session.publish(&message), Err(PublishError::Full { .. })));
}

#[test]
fn a_relay_that_acknowledges_what_was_not_sent_is_not_trusted() {
    let mut session = attached(1_000);
    outputs(|| session.poll());
    let ack = Frame::Ack { slot: Slot(1), below: MessageSeq(1) };
    session.handle_frame(Link(1), ack, Time::ZERO);
    let did = outputs(|| session.poll());
    assert!(did.contains(&Did::Close(Link(1))), "{did:?}");
    assert!(
        did.iter().any(|did| matches!(did, Did::Directory(Frame::RelayLost { cause, .. })
        if cause == "ACK of slot 1: below 1 is more than was sent, 0")),
        "{did:?}"
    );
}

#[test]
fn a_notice_reaches_the_program() {
    let mut session = producer();
    let (queue, code, text) = (QUEUE.to_owned(), NoticeCode::BudgetSpent, "5.0 of 5.0".to_owned());
    session.handle_directory_frame(Frame::Notice { queue, code, text: text.clone() }, Time::ZERO);
    assert_eq!(session.poll_event(), Some(SessionEvent::Notice { code, text }));
}

/// Returns a listener that is attached at relays 1 and 2, as links 1 and 2.
fn listener(level: Acknowledge) -> ListenerSession {
    listener_by_hand(level, false)
}

fn listener_by_hand(level: Acknowledge, acknowledge_by_hand: bool) -> ListenerSession {
    let mut session = connecting(acknowledge_by_hand);
    for link in [1, 2] {
        session.handle_connected(Link(link), Time::ZERO);
        attach(&mut session, link, level);
    }
    outputs(|| session.poll());
    session
}

/// Returns a listener that was sent to relays 1 and 2, as links 1 and 2.
fn connecting(acknowledge_by_hand: bool) -> ListenerSession {
    let config = ListenerConfig {
        queue: QUEUE.to_owned(),
        listener: LISTENER,
        slow: None,
        prefixes: vec![Bytes::new()],
        acknowledge_by_hand,
    };
    let mut session = ListenerSession::new(config).expect("it is within the limits");
    session.handle_directory_connected(Time::ZERO);
    listen_at(&mut session, 1, &[1, 2]);
    session
}

fn attach(session: &mut ListenerSession, link: u64, acknowledge: Acknowledge) {
    let slot = Slot(0);
    receive(session, link, Frame::Attached { slot, acknowledge, credit_bytes: 0 });
}

fn listen_at(session: &mut ListenerSession, generation: u64, relays: &[u64]) {
    let (queue, fence) = (QUEUE.to_owned(), Fence(1));
    let relays = relays.iter().map(|relay| address(*relay)).collect();
    let frame = Frame::ListenAt { queue, listener: LISTENER, fence, generation, relays };
    session.handle_directory_frame(frame, Time::ZERO);
}

fn receive(session: &mut ListenerSession, link: u64, frame: Frame) {
    let mut bytes = BytesMut::new();
    frame.encode(&mut bytes).expect("it is within the limits");
    session.handle_frames(Link(link), bytes.freeze(), Time::ZERO).expect("it is within the limits");
}

fn start(session: &mut ListenerSession, link: u64, slot: u32, epochs: (u64, u64), first: u64) {
    let (slot, first) = (Slot(slot), MessageSeq(first));
    let (previous, epoch) = (Epoch(epochs.0), Epoch(epochs.1));
    receive(
        session,
        link,
        Frame::Start(Start { slot, producer: PRODUCER, epoch, first, previous }),
    );
}

fn data(session: &mut ListenerSession, link: u64, slot: u32, sequence: u64) {
    let parts = parts::encode(&["topic"]).expect("it is within the limits");
    let (slot, sequence) = (Slot(slot), MessageSeq(sequence));
    receive(session, link, Frame::Data { slot, sequence, parts });
}

fn events(session: &mut ListenerSession) -> Vec<Seen> {
    let mut events = std::collections::VecDeque::new();
    session.take_events(&mut events);
    let seen = events.iter().map(|event| match event {
        Event::Message(message) => Seen::Message(message.sequence.0),
        Event::Gap(gap) => Seen::Gap(gap.from.0, gap.to.0),
    });
    seen.collect()
}

#[test]
fn a_new_epochs_messages_wait_for_the_old_ones_end() {
    let mut session = listener(Acknowledge::Relayed);
    start(&mut session, 1, 1, (0, 1), 0);
    data(&mut session, 1, 1, 0);
    start(&mut session, 2, 1, (1, 2), 3);
    data(&mut session, 2, 1, 3);
    data(&mut session, 1, 1, 1);
    assert_eq!(events(&mut session), [0, 1].map(Seen::Message));
    data(&mut session, 1, 1, 2);
    receive(&mut session, 1, Frame::Fin { slot: Slot(1), next: MessageSeq(3) });
    data(&mut session, 2, 1, 4);
    assert_eq!(events(&mut session), [2, 3, 4].map(Seen::Message));
    assert_eq!(session.stats().moves, 1);
    assert_eq!(session.next_deadline(), None);
}

#[test]
fn a_fin_that_does_not_come_is_waited_for_until_the_deadline() {
    let mut session = listener(Acknowledge::Relayed);
    start(&mut session, 1, 1, (0, 1), 0);
    start(&mut session, 2, 1, (1, 2), 3);
    data(&mut session, 2, 1, 3);
    assert_eq!(session.next_deadline(), Some(Time::ZERO.plus_ms(5_000)));
    session.handle_timeout(Time::ZERO.plus_ms(5_000));
    assert_eq!(events(&mut session), [Seen::Gap(0, 3), Seen::Message(3)]);
    data(&mut session, 1, 1, 0);
    assert_eq!(events(&mut session), [], "a gap that was reported is final");
    assert_eq!(session.stats().duplicates, 1);
}

#[test]
fn what_a_dead_relay_did_not_deliver_is_a_gap() {
    let mut session = listener(Acknowledge::Relayed);
    start(&mut session, 1, 1, (0, 1), 0);
    data(&mut session, 1, 1, 0);
    session.handle_lost(Link(1), "connection reset", Time::ZERO);
    start(&mut session, 2, 7, (0, 2), 2);
    data(&mut session, 2, 7, 2);
    let mut all = std::collections::VecDeque::new();
    session.take_events(&mut all);
    let gap = GapNotice {
        producer: PRODUCER,
        from: MessageSeq(1),
        to: MessageSeq(2),
        messages: None,
        cause: GapCause::RelayLost,
    };
    assert_eq!(all[1], Event::Gap(gap));
    assert_eq!(all.len(), 3);
}

#[test]
fn what_another_relay_may_have_on_its_way_is_waited_for() {
    let mut session = listener(Acknowledge::Relayed);
    start(&mut session, 1, 1, (0, 1), 0);
    receive(&mut session, 1, Frame::Fin { slot: Slot(1), next: MessageSeq(1) });
    // It was at relay 1 again meanwhile, in slot 2, of which we know nothing yet.
    start(&mut session, 2, 7, (0, 3), 2);
    data(&mut session, 2, 7, 2);
    assert_eq!(outputs(|| session.poll()), [Did::Send(Link(1), Frame::Ping(1))]);
    assert_eq!(events(&mut session), []);
    start(&mut session, 1, 2, (1, 2), 1);
    data(&mut session, 1, 2, 1);
    receive(&mut session, 1, Frame::Fin { slot: Slot(2), next: MessageSeq(2) });
    receive(&mut session, 1, Frame::Pong(1));
    assert_eq!(events(&mut session), [1, 2].map(Seen::Message));
}

#[test]
fn received_tells_what_the_program_has_and_not_what_is_held() {
    let mut session = listener(Acknowledge::Delivered);
    start(&mut session, 1, 1, (0, 1), 0);
    start(&mut session, 2, 1, (1, 2), 1);
    data(&mut session, 2, 1, 1);
    data(&mut session, 1, 1, 0);
    assert_eq!(outputs(|| session.poll()), [], "the program has nothing yet");
    events(&mut session);
    assert_eq!(outputs(|| session.poll()), [Did::Send(Link(1), Frame::Received(1))]);
    receive(&mut session, 1, Frame::Fin { slot: Slot(1), next: MessageSeq(1) });
    assert_eq!(events(&mut session), [Seen::Message(1)]);
    assert_eq!(outputs(|| session.poll()), [Did::Send(Link(2), Frame::Received(1))]);
}

#[test]
fn a_listener_says_where_it_is_when_all_relays_have_answered() {
    let mut session = listener(Acknowledge::Relayed);
    listen_at(&mut session, 2, &[2, 3]);
    // The relay that it leaves may live, and not know that nobody listens there any more.
    let [stop, ping] =
        [Frame::Stop { fence: Fence(1) }, Frame::Ping(1)].map(|frame| Did::Send(Link(1), frame));
    let left = outputs(|| session.poll());
    assert_eq!(left, [stop, ping, Did::Connect(Link(3), RelayId(3))]);
    receive(&mut session, 1, Frame::Pong(1));
    assert_eq!(outputs(|| session.poll()), [Did::Close(Link(1))]);
    session.handle_lost(Link(3), "refused", Time::ZERO);
    let listening = |generation, relays| {
        let (queue, listener) = (QUEUE.to_owned(), LISTENER);
        Did::Directory(Frame::Listening { queue, listener, generation, relays })
    };
    let did = outputs(|| session.poll());
    assert!(matches!(did[0], Did::Directory(Frame::RelayLost { relay: RelayId(3), .. })));
    assert_eq!(did[1], listening(2, vec![RelayId(2)]));
    session.handle_timeout(session.next_deadline().unwrap());
    assert_eq!(outputs(|| session.poll()), [Did::Connect(Link(4), RelayId(3))]);
    session.handle_connected(Link(4), Time::ZERO);
    attach(&mut session, 4, Acknowledge::Relayed);
    let did = outputs(|| session.poll());
    assert_eq!(did[1], listening(2, vec![RelayId(2), RelayId(3)]));
    listen_at(&mut session, 1, &[1]);
    let did = outputs(|| session.poll());
    let [Did::Directory(Frame::Error(error))] = &did[..] else { panic!("{did:?}") };
    assert_eq!(error.text, "generation: 1 is below the last one, 2");
}

#[test]
fn a_program_that_takes_nothing_stops_the_reading() {
    let mut session = listener(Acknowledge::Relayed);
    start(&mut session, 1, 1, (0, 1), 0);
    for sequence in 0..LISTENER_EVENTS_MAX as u64 {
        assert!(session.wants_more());
        data(&mut session, 1, 1, sequence);
    }
    assert!(!session.wants_more() && !session.wants_more_of(Link(1)));
    assert_eq!(events(&mut session).len(), LISTENER_EVENTS_MAX);
    assert!(session.wants_more());
}

#[test]
fn subscriptions_have_their_limits() {
    let mut session = listener(Acknowledge::Relayed);
    session.subscribe(Bytes::from_static(b"eur.")).unwrap();
    let frame = Frame::Subscribe(Bytes::from_static(b"eur."));
    let both = [1, 2].map(|link| Did::Send(Link(link), frame.clone()));
    assert_eq!(outputs(|| session.poll()), both);
    session.unsubscribe(&Bytes::from_static(b"eur.")).unwrap();
    let again = session.unsubscribe(&Bytes::from_static(b"eur."));
    assert_eq!(again, Err(SubscribeError::Unknown));
    let error = session.subscribe(Bytes::from(vec![0; 1_025])).unwrap_err();
    assert_eq!(error.to_string(), "prefix: 1025 bytes are more than the limit of 1024");
}

#[test]
fn manually_acknowledged_messages_are_reported_then() {
    let mut session = listener_by_hand(Acknowledge::Delivered, true);
    start(&mut session, 1, 1, (0, 1), 0);
    (0..3).for_each(|sequence| data(&mut session, 1, 1, sequence));
    assert_eq!(events(&mut session).len(), 3);
    assert_eq!(outputs(|| session.poll()), [], "the program is not done");
    session.acknowledge(2);
    assert_eq!(outputs(|| session.poll()), [Did::Send(Link(1), Frame::Received(2))]);
    // The relay dies; what was not acknowledged comes again, and is the same message.
    session.handle_lost(Link(1), "connection reset", Time::ZERO);
    outputs(|| session.poll());
    start(&mut session, 2, 1, (0, 2), 1);
    (1..4).for_each(|sequence| data(&mut session, 2, 1, sequence));
    assert_eq!(events(&mut session), [Seen::Message(3)]);
    assert_eq!(session.stats().duplicates, 2);
    let received = |count| Did::Send(Link(2), Frame::Received(count));
    assert_eq!(outputs(|| session.poll()), [received(1)], "message 1 is done, and comes to nobody");
    session.acknowledge(1);
    assert_eq!(outputs(|| session.poll()), [received(2)]);
    session.acknowledge(9);
    assert_eq!(outputs(|| session.poll()), [received(3)]);
}
