//! A relay and its directory, which the test plays.

use std::net::TcpListener;
use std::time::Duration;

use quelea_elastic_core::relay::default_settings;
use quelea_elastic_proto::frame::{
    Acknowledge, ErrorCode, Frame, Hello, Register, RelaySettings, Report, Role, Welcome, WireError,
};
use quelea_elastic_proto::limits::VERSION;
use quelea_elastic_proto::{ClientId, Epoch, Fence, MessageSeq, RelayId, Slot};
use quelea_elastic_relay::{Directory, Stopped};

use crate::client::{Client, attach_producer};
use crate::relay::{QUEUE, TestRelay};

struct FakeDirectory(TcpListener);

impl FakeDirectory {
    fn start() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").expect("a free port"))
    }

    fn address(&self) -> String {
        self.0.local_addr().expect("it is bound").to_string()
    }

    /// Accepts a relay that connects and says HELLO. Returns it, and what it registers.
    fn register(&self) -> (Client, Register) {
        let (stream, _) = self.0.accept().expect("it connects");
        let mut relay = Client::over(stream);
        let hello = relay.next();
        assert!(matches!(&hello, Frame::Hello(Hello { role: Role::Relay, .. })), "{hello:?}");
        relay.send(&Frame::Welcome(Welcome { version: VERSION, heartbeat_ms: 5_000 }));
        match relay.next() {
            Frame::Register(register) => (relay, register),
            other => panic!("{other:?} instead of REGISTER"),
        }
    }
}

fn registered(fence: u64) -> Frame {
    let settings =
        RelaySettings { report_ms: 20, acknowledge: Acknowledge::Delivered, ..default_settings() };
    Frame::Registered { fence: Fence(fence), settings }
}

fn relay_of(directories: &[&FakeDirectory], orphan_timeout: Duration) -> TestRelay {
    TestRelay::with(|config| {
        config.directory = Some(Directory {
            addresses: directories.iter().map(|directory| directory.address()).collect(),
            relay: RelayId(7),
            request: "request 1".to_owned(),
            orphan_timeout,
        });
    })
}

/// Reads up to the next REPORT; PINGs are answered.
fn report(relay: &mut Client) -> Report {
    loop {
        match relay.next() {
            Frame::Report(report) => return report,
            Frame::Ping(number) => relay.send(&Frame::Pong(number)),
            Frame::Host(_) => {}
            other => panic!("{other:?} instead of REPORT"),
        }
    }
}

fn report_with(relay: &mut Client, wanted: impl Fn(&Report) -> bool) -> Report {
    (0..500).map(|_| report(relay)).find(wanted).expect("it reports that some time")
}

const LONG: Duration = Duration::from_secs(600);

#[test]
fn a_relay_registers_reports_and_drains() {
    let directory = FakeDirectory::start();
    let relay = relay_of(&[&directory], LONG);
    let (mut line, register) = directory.register();
    assert_eq!(
        (register.relay, &*register.queue, &*register.request),
        (RelayId(7), QUEUE, "request 1")
    );
    assert_eq!(register.address, relay.address.to_string());
    // The level is announced to early listeners when it is known.
    let mut listener = relay.client();
    listener.listen(1, &[""]);
    line.send(&registered(0));
    let Frame::Attached { slot: Slot(0), acknowledge: Acknowledge::Delivered, .. } =
        listener.next()
    else {
        panic!("no ATTACHED came with the new level");
    };
    assert_eq!(report(&mut line).number, 1);
    let mut producer = relay.client();
    let slot = producer.produce(9, 1, 10);
    listener.started();
    producer.publish_many(slot, 10, 100, "topic", 1_000);
    assert_eq!(listener.sequences(100).len(), 100);
    let full = report_with(&mut line, |report| report.messages_out == 100);
    assert_eq!((full.messages_in, full.listeners, full.dropped), (100, 1, 0));
    assert!(full.bytes_in > 100_000 && full.bytes_out == full.bytes_in, "{full:?}");
    let [of] = &full.producers[..] else { panic!("{full:?}") };
    assert_eq!((of.producer, of.epoch, of.next), (ClientId(9), Epoch(1), MessageSeq(110)));
    assert_eq!((of.messages, of.bytes, of.bytes_out), (100, full.bytes_in, full.bytes_out));
    line.send(&Frame::Drain { fence: Fence(0), deadline_ms: 600_000 });
    assert!(matches!(producer.next_but_flow(), Frame::Draining { .. }));
    assert!(!report(&mut line).drained);
    producer.send(&Frame::Fin { slot, next: MessageSeq(110) });
    listener.send(&Frame::Received(100));
    let last = report_with(&mut line, |report| report.drained);
    assert_eq!(last.producers.len(), 0);
    line.send(&Frame::Stop { fence: Fence(0) });
    assert_eq!(relay.stopped(), Stopped::Drained);
}

#[test]
fn a_stopped_relay_has_its_directory_drain_it() {
    let directory = FakeDirectory::start();
    let relay = relay_of(&[&directory], LONG);
    let (mut line, _) = directory.register();
    line.send(&registered(0));
    report(&mut line);
    relay.stop();
    // It is empty, and waits all the same: its listeners are to be led away. It says so until it is heard.
    for _ in 0..3 {
        let deadline_ms = loop {
            match line.next() {
                Frame::Draining { deadline_ms } => break deadline_ms,
                Frame::Ping(number) => line.send(&Frame::Pong(number)),
                Frame::Report(_) | Frame::Host(_) => {}
                other => panic!("{other:?}"),
            }
        };
        assert!((1..=20_000).contains(&deadline_ms), "{deadline_ms}");
    }
    line.send(&Frame::Stop { fence: Fence(0) });
    assert_eq!(relay.stopped(), Stopped::Drained);
}

#[test]
fn a_stopped_relay_without_directory_ends_when_it_is_empty() {
    let directory = FakeDirectory::start();
    let relay = relay_of(&[&directory], LONG);
    let mut producer = relay.client();
    let slot = producer.produce(9, 1, 0);
    let (mut line, _) = directory.register();
    line.send(&registered(0));
    report(&mut line);
    relay.stop();
    assert!(matches!(producer.next_but_flow(), Frame::Draining { .. }));
    drop((line, directory));
    producer.send(&Frame::Fin { slot, next: MessageSeq(0) });
    drop(producer);
    assert_eq!(relay.stopped(), Stopped::Drained);
}

#[test]
fn a_stopped_relay_without_directory_dismisses_producers_and_delivers_what_it_has() {
    let directory = FakeDirectory::start();
    let relay = relay_of(&[&directory], LONG);
    let (mut line, _) = directory.register();
    line.send(&registered(0));
    report(&mut line);
    let (mut listener, mut producer) = (relay.client(), relay.client());
    listener.listen(1, &[""]);
    let slot = producer.produce(9, 1, 0);
    listener.started();
    // More than the sockets hold.
    let messages = 1_000;
    producer.publish_many(slot, 0, messages, "t", 3_000);
    report_with(&mut line, |report| report.messages_in == messages);
    drop((line, directory));
    relay.stop();
    let last = loop {
        match producer.try_next() {
            Some(Frame::Error(error)) => break error,
            Some(_) => {}
            None => panic!("no reason was given"),
        }
    };
    assert_eq!((last.code, last.fatal), (ErrorCode::Unavailable, true), "it keeps what it has");
    drop(producer);
    assert_eq!(listener.sequences(messages), (0..messages).collect::<Vec<_>>());
    drop(listener);
    assert_eq!(relay.stopped(), Stopped::Drained);
}

#[test]
fn old_fences_are_refused_and_fenced_producers_are_ended() {
    let directory = FakeDirectory::start();
    let relay = relay_of(&[&directory], LONG);
    let (mut line, _) = directory.register();
    line.send(&registered(8));
    report(&mut line);
    let mut listener = relay.client();
    listener.listen(1, &[""]);
    let mut producer = relay.client();
    producer.send(&Frame::AttachProducer {
        queue: QUEUE.to_owned(),
        producer: ClientId(9),
        fence: Fence(8),
        epoch: Epoch(3),
    });
    let Frame::Attached { slot, .. } = producer.next() else { panic!("no ATTACHED") };
    producer.send(&crate::client::start(slot, 9, 3, 0));
    listener.started();
    line.send(&Frame::Stop { fence: Fence(7) });
    let refused = loop {
        match line.next() {
            Frame::Error(error) => break error,
            Frame::Report(_) | Frame::Host(_) | Frame::Ping(_) => {}
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((refused.code, &*refused.field), (ErrorCode::Fenced, "fence"));
    let fence = Frame::FenceProducer { fence: Fence(8), producer: ClientId(9), below: Epoch(4) };
    line.send(&fence);
    assert_eq!(listener.next(), Frame::Fin { slot, next: MessageSeq(0) });
    assert_eq!(producer.error().code, ErrorCode::Fenced);
    producer.send(&attach_producer(9, 3));
    assert_eq!(producer.error().code, ErrorCode::Fenced);
}

#[test]
fn it_goes_on_without_a_directory_and_finds_another_one() {
    let (first, second, third) =
        (FakeDirectory::start(), FakeDirectory::start(), FakeDirectory::start());
    let relay = relay_of(&[&first, &second], LONG);
    let (mut line, _) = first.register();
    line.send(&registered(3));
    report(&mut line);
    let mut listener = relay.client();
    listener.listen(1, &[""]);
    drop((line, first));
    // The next one of the list sends it on to the owner.
    let (mut line, register) = second.register();
    assert_eq!(register.fence, Fence(3));
    line.send(&Frame::Redirect {
        queue: QUEUE.to_owned(),
        address: third.address(),
        retry_after_ms: 1,
    });
    let (mut line, register) = third.register();
    assert_eq!(register.relay, RelayId(7));
    line.send(&registered(4));
    assert_eq!(report(&mut line).listeners, 1);
    let mut producer = relay.client();
    producer.send(&attach_producer(9, 1));
    assert_eq!(producer.error().field, "fence", "the attach bears fence 0");
    line.send(&Frame::Stop { fence: Fence(4) });
    assert_eq!(relay.stopped(), Stopped::Cut);
}

#[test]
fn a_later_directory_is_found_when_the_first_ones_are_gone() {
    let (first, second, third) =
        (FakeDirectory::start(), FakeDirectory::start(), FakeDirectory::start());
    let relay = relay_of(&[&first], LONG);
    let (mut line, _) = first.register();
    line.send(&Frame::Directories([first.address(), second.address()].into()));
    line.send(&registered(1));
    report(&mut line);
    // Another one comes while it is registered.
    let announced = [first.address(), second.address(), third.address()];
    line.send(&Frame::Directories(announced.into()));
    // What was sent before has been read when this is obeyed.
    line.send(&Frame::Drain { fence: Fence(0), deadline_ms: 1 });
    while !matches!(line.next(), Frame::Error(_)) {}
    drop((line, first));
    // It does not know whose the queue is: the next one may.
    let (mut line, _) = second.register();
    line.send(&Frame::Redirect {
        queue: QUEUE.to_owned(),
        address: String::new(),
        retry_after_ms: 1,
    });
    let (mut line, _) = third.register();
    line.send(&registered(2));
    report(&mut line);
    line.send(&Frame::Stop { fence: Fence(2) });
    assert_eq!(relay.stopped(), Stopped::Cut);
}

#[test]
fn an_orphan_ends_when_its_last_client_goes() {
    let directory = FakeDirectory::start();
    let relay = relay_of(&[&directory], Duration::from_secs(1));
    let listener = relay.client();
    let (line, _) = directory.register();
    drop((line, directory));
    drop(listener);
    assert_eq!(relay.stopped(), Stopped::Orphaned);
}

#[test]
fn what_the_host_has_and_uses_comes_before_each_report() {
    let directory = FakeDirectory::start();
    let relay = TestRelay::with(|config| {
        config.directory = Some(Directory {
            addresses: vec![directory.address()],
            relay: RelayId(7),
            request: "request 1".to_owned(),
            orphan_timeout: LONG,
        });
        config.memory_bytes_max = 1 << 40;
        config.network_bytes_per_s_max = 125_000_000;
    });
    let (mut line, register) = directory.register();
    let capacity = register.capacity;
    assert_eq!((capacity.bytes_in_per_s, capacity.bytes_out_per_s), (125_000_000, 125_000_000));
    line.send(&registered(1));
    for _ in 0..2 {
        let Frame::Host(host) = line.next() else { panic!("HOST is first") };
        assert!(host.memory_bytes > 0 && host.memory_bytes_max == 1 << 40, "{host:?}");
        assert!(matches!(line.next(), Frame::Report(_)));
        assert!(matches!(line.next(), Frame::Ping(_)));
    }
    drop(relay);
}

#[test]
fn a_directory_that_does_not_know_host_gets_none_until_it_is_replaced() {
    let directory = FakeDirectory::start();
    let _relay = relay_of(&[&directory], LONG);
    let (mut line, _) = directory.register();
    line.send(&registered(1));
    assert!(matches!(line.next(), Frame::Host(_)));
    line.send(&Frame::Error(WireError::fatal(ErrorCode::Malformed, "kind", "frame kind 0x66")));
    drop(line);
    let (mut line, _) = directory.register();
    line.send(&registered(1));
    assert!(matches!(line.next(), Frame::Report(_)));
    // It is replaced by one that knows it.
    drop(line);
    let (mut line, _) = directory.register();
    line.send(&registered(2));
    assert!(matches!(line.next(), Frame::Host(_)));
}
