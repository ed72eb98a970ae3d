//! A listener for whom something is in a file, and the other relay of its queue.

use quelea_elastic_proto::frame::RelayAddress;
use quelea_elastic_proto::limits::REPORT_PRODUCERS_MAX;
use quelea_elastic_proto::session::{
    Event, Link, ListenerConfig, ListenerSession, Output, Session as _,
};

use super::*;

const LISTENER: ClientId = ClientId(1);
const PRODUCER: ClientId = ClientId(9);

/// A listener's session with a connection to each of two relays.
struct TwoRelays {
    session: ListenerSession,
    relays: [RelayHarness; 2],
    links: Vec<(Link, Port)>,
    seen: Vec<Seen>,
}

/// What the program has of the producer.
#[derive(Debug, PartialEq)]
enum Seen {
    Message(u64),
    Gap(u64, u64),
}

impl TwoRelays {
    fn new(acknowledge: Acknowledge) -> Self {
        let relay = || {
            let mut relay = RelayHarness::new(|settings| {
                settings.acknowledge = acknowledge;
                settings.ring_bytes_max = RING_BYTES_MIN;
            });
            relay.relay.allow_spill(1 << 20);
            relay
        };
        let config = ListenerConfig {
            queue: QUEUE.to_owned(),
            listener: LISTENER,
            slow: Some(SlowPolicy::Spill),
            prefixes: vec![Bytes::new()],
            acknowledge_by_hand: false,
        };
        let session = ListenerSession::new(config).expect("a short prefix");
        let (relays, links, seen) = ([relay(), relay()], Vec::new(), Vec::new());
        let mut world = Self { session, relays, links, seen };
        world.session.handle_directory_connected(Time::ZERO);
        let address =
            |relay| RelayAddress { relay: RelayId(relay), address: format!("r{relay}:1") };
        let listen_at = Frame::ListenAt {
            queue: QUEUE.to_owned(),
            listener: LISTENER,
            fence: Fence(0),
            generation: 1,
            relays: vec![address(0), address(1)],
        };
        world.session.handle_directory_frame(listen_at, Time::ZERO);
        world.act();
        (0..2).for_each(|relay| world.carry(relay));
        assert!(world.session.is_listening());
        world
    }

    /// Does what the session wants.
    fn act(&mut self) {
        while let Some(output) = self.session.poll() {
            match output {
                Output::Connect { link, relay } => {
                    let port = self.relays[relay.relay.0 as usize].client();
                    self.links.push((link, port));
                    self.session.handle_connected(link, Time::ZERO);
                }
                Output::Send { link, bytes } => {
                    let at = self.links.iter().position(|(of, _)| *of == link);
                    let at = at.expect("it was connected");
                    self.relays[at].relay.received(self.links[at].1, bytes);
                }
                Output::Close { .. } | Output::Directory(_) => {}
            }
        }
    }

    /// The listener reads all that a relay has in its ring for it.
    fn carry(&mut self, relay: usize) {
        let (link, port) = self.links[relay];
        let mut bytes = BytesMut::new();
        for frame in self.relays[relay].read(port) {
            frame.encode(&mut bytes).expect("within limits");
        }
        self.session.handle_frames(link, bytes.freeze(), Time::ZERO).expect("they are frames");
        let mut events = VecDeque::new();
        self.session.take_events(&mut events);
        self.seen.extend(events.into_iter().filter_map(|event| match event {
            Event::Message(message) if message.producer == PRODUCER => {
                Some(Seen::Message(message.sequence.0))
            }
            Event::Gap(gap) if gap.producer == PRODUCER => Some(Seen::Gap(gap.from.0, gap.to.0)),
            _ => None,
        }));
        self.act();
    }

    /// Brings the producer to a relay in an epoch, and sends messages there.
    fn come_and_send(
        &mut self,
        relay: usize,
        epochs: (u64, u64),
        sent: std::ops::Range<u64>,
    ) -> (Port, Slot) {
        let (previous, epoch) = (Epoch(epochs.0), Epoch(epochs.1));
        let world = &mut self.relays[relay];
        let port = world.client();
        let (queue, fence, producer) = (QUEUE.to_owned(), Fence(0), PRODUCER);
        world.say(port, &[Frame::AttachProducer { queue, producer, fence, epoch }]);
        let Some(Frame::Attached { slot, .. }) = world.read(port).pop() else {
            panic!("it may come")
        };
        let first = MessageSeq(sent.start);
        world.say(port, &[Frame::Start(Start { slot, producer, epoch, first, previous })]);
        sent.for_each(|sequence| world.publish((port, slot), sequence, b"t"));
        (port, slot)
    }

    /// Fills the listener's ring at a relay: what comes next goes to the file.
    fn fill(&mut self, relay: usize) {
        let world = &mut self.relays[relay];
        let filler = world.producer(8);
        let body = vec![0; RING_BYTES_MIN as usize / 3];
        (0..4).for_each(|sequence| world.publish(filler, sequence, &body));
        world.store();
        assert!(!world.stored.is_empty(), "nothing is in the file");
    }
}

#[test]
fn what_a_file_has_of_a_new_producer_comes_before_its_move() {
    for acknowledge in [Acknowledge::Relayed, Acknowledge::Delivered] {
        let mut world = TwoRelays::new(acknowledge);
        world.fill(0);
        let (port, slot) = world.come_and_send(0, (0, 1), 0..3);
        world.relays[0].say(port, &[Frame::Fin { slot, next: MessageSeq(3) }]);
        world.relays[0].store();
        world.come_and_send(1, (1, 2), 3..5);
        // It knows of the move before it has seen anything of the producer, and asks the first relay.
        world.carry(1);
        assert_eq!(world.seen, [], "{acknowledge:?}");
        for _ in 0..8 {
            (0..2).for_each(|relay| world.carry(relay));
            world.relays[0].store();
        }
        assert_eq!(world.seen, [0, 1, 2, 3, 4].map(Seen::Message), "{acknowledge:?}");
        assert_eq!(world.session.stats().duplicates, 0, "{acknowledge:?}");
    }
}

#[test]
fn a_sign_of_life_does_not_wait_for_the_file() {
    let mut world = TwoRelays::new(Acknowledge::Relayed);
    world.fill(0);
    let port = world.links[0].1;
    world.relays[0].say(port, &[Frame::Ping(7), Frame::Ping(0)]);
    let pongs = |frames: Vec<Frame>| -> Vec<Frame> {
        frames.into_iter().filter(|frame| matches!(frame, Frame::Pong(_))).collect()
    };
    assert_eq!(pongs(world.relays[0].read(port)), [Frame::Pong(0)]);
    let mut later = Vec::new();
    for _ in 0..8 {
        world.relays[0].store();
        later.extend(pongs(world.relays[0].read(port)));
    }
    assert_eq!(later, [Frame::Pong(7)]);
}

#[test]
fn a_relay_with_messages_in_a_file_reports_that_they_wait() {
    let mut world = TwoRelays::new(Acknowledge::Relayed);
    world.fill(0);
    let port = world.links[0].1;
    let world = &mut world.relays[0];
    world.relay.drain(1_000);
    let filler = world.clients.pop().expect("it was the last one");
    world.relay.disconnected(filler);
    world.turn();
    // Its ring is empty until the file is read.
    world.read(port);
    let reports = |world: &mut RelayHarness| {
        let report = world.relay.report(0).pop().expect("there is one");
        (report.queued_bytes > 0, report.drained)
    };
    assert_eq!(reports(world), (true, false));
    for _ in 0..8 {
        world.store();
        world.read(port);
    }
    world.turn();
    assert_eq!(reports(world), (false, true));
}

#[test]
fn what_did_not_fit_into_the_file_is_told_before_what_comes_next() {
    let mut world = TwoRelays::new(Acknowledge::Relayed);
    let producer = world.come_and_send(0, (0, 1), 0..3);
    let body = vec![0; 64 << 10];
    (3..40).for_each(|sequence| {
        world.relays[0].publish(producer, sequence, &body);
        world.relays[0].store();
    });
    // One read takes all that the file has.
    for _ in 0..40 {
        world.carry(0);
        world.relays[0].store();
    }
    world.relays[0].publish(producer, 40, b"t");
    world.carry(0);
    let mut next = 0;
    for seen in &world.seen {
        next = match *seen {
            Seen::Message(sequence) if sequence == next => next + 1,
            Seen::Gap(from, to) if from == next => to,
            _ => panic!("{seen:?} where {next} was due"),
        };
    }
    assert_eq!(next, 41);
    assert!(world.seen.iter().any(|seen| matches!(seen, Seen::Gap(..))), "all of it fitted");
}

#[test]
fn all_pieces_of_a_report_have_its_number() {
    let producers = REPORT_PRODUCERS_MAX + 1;
    let mut world = RelayHarness::with_room(producers, |_| {});
    for producer in (1..=producers as u128).map(ClientId) {
        let port = world.client();
        let (queue, fence, epoch) = (QUEUE.to_owned(), Fence(0), Epoch(1));
        world.say(port, &[Frame::AttachProducer { queue, producer, fence, epoch }]);
        let Some(Frame::Attached { slot, .. }) = world.read(port).pop() else {
            panic!("it may come")
        };
        let (first, previous) = (MessageSeq(0), Epoch(0));
        world.say(port, &[Frame::Start(Start { slot, producer, epoch, first, previous })]);
    }
    let reports = world.relay.report(0);
    let shown: Vec<_> = reports.iter().map(|one| (one.number, one.more)).collect();
    assert_eq!(shown, [(1, true), (1, false)]);
    assert_eq!(world.relay.report(0)[0].number, 2);
}
