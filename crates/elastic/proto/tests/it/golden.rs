//! The examples of docs/formats/elastic.md are what is sent, and what is sent is read. Their bytes were
//! made by another program (Python's `struct`), from that page alone.

use bytes::{Bytes, BytesMut};
use quelea_elastic_proto::frame::{
    Acknowledge, AttachListener, Capacity, ErrorCode, Frame, Gap, GapCause, Hello, Host,
    OpenProducer, ProducerReport, Register, RelayAddress, RelaySettings, Report, Role, SlowPolicy,
    Start, Welcome, WireError,
};
use quelea_elastic_proto::limits::VERSION;
use quelea_elastic_proto::wire::Kind;
use quelea_elastic_proto::{ClientId, Epoch, Fence, MessageSeq, RelayId, Slot, parts};
use quelea_testkit::golden::examples;

const PAGE: &str = include_str!("../../../../../docs/formats/elastic.md");

const PRODUCER: ClientId = ClientId(0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10);
const LISTENER: ClientId = ClientId(0x77);
const EPOCH: Epoch = Epoch(0x1_0000_0002);

fn queue() -> String {
    "prices".to_owned()
}

fn address(relay: u64, address: &str) -> RelayAddress {
    RelayAddress { relay: RelayId(relay), address: address.to_owned() }
}

fn of_the_greeting() -> Vec<(&'static str, Frame)> {
    let hello = Hello {
        version: VERSION,
        role: Role::Client,
        name: "probe-7".to_owned(),
        key: Bytes::from_static(b"key"),
    };
    vec![
        ("hello", Frame::Hello(hello)),
        ("welcome", Frame::Welcome(Welcome { version: VERSION, heartbeat_ms: 5_000 })),
    ]
}

fn of_a_move() -> Vec<(&'static str, Frame)> {
    let open = OpenProducer {
        queue: queue(),
        producer: PRODUCER,
        current: Some((RelayId(2), Epoch(0x1_0000_0001), MessageSeq(40))),
        expected_bytes_per_s: 0,
    };
    let (producer, fence, epoch, first) = (PRODUCER, Fence(1), EPOCH, MessageSeq(40));
    let (slot, previous) = (Slot(9), Epoch(0x1_0000_0001));
    let relay = address(3, "10.0.0.7:7000");
    vec![
        ("open-producer", Frame::OpenProducer(open)),
        ("produce-at", Frame::ProduceAt { queue: queue(), producer, fence, epoch, relay }),
        ("attach-producer", Frame::AttachProducer { queue: queue(), producer, fence, epoch }),
        (
            "attached",
            Frame::Attached { slot, acknowledge: Acknowledge::Relayed, credit_bytes: 65_536 },
        ),
        ("start", Frame::Start(Start { slot, producer, epoch, first, previous })),
        ("fin", Frame::Fin { slot: Slot(4), next: first }),
        (
            "producing",
            Frame::Producing { queue: queue(), producer, epoch, relay: RelayId(3), first },
        ),
    ]
}

fn of_messages() -> Vec<(&'static str, Frame)> {
    let (slot, sequence) = (Slot(9), MessageSeq(40));
    let parts = parts::encode(&["eur.usd", "1.0841"]).expect("two small parts");
    let gap =
        Gap { slot, from: sequence, to: MessageSeq(50), messages: 3, cause: GapCause::TooSlow };
    vec![
        ("data", Frame::Data { slot, sequence, parts }),
        ("ack", Frame::Ack { slot, below: MessageSeq(41) }),
        ("credit", Frame::Credit { slot, bytes: 131_072 }),
        ("gap", Frame::Gap(gap)),
    ]
}

fn of_a_listener() -> Vec<(&'static str, Frame)> {
    let (listener, fence, generation) = (LISTENER, Fence(1), 6);
    let relays = vec![address(2, "10.0.0.6:7000"), address(3, "10.0.0.7:7000")];
    let attach = AttachListener {
        queue: queue(),
        listener,
        slow: Some(SlowPolicy::DropOldest),
        prefixes: vec![Bytes::from_static(b"eur."), Bytes::from_static(b"usd.")],
    };
    let error = WireError {
        code: ErrorCode::Fenced,
        field: "epoch".to_owned(),
        text: "over".to_owned(),
        fatal: false,
    };
    let directories = vec!["10.0.0.1:5670".to_owned(), "10.0.0.2:5670".to_owned()];
    let at = vec![RelayId(2), RelayId(3)];
    vec![
        ("listen-at", Frame::ListenAt { queue: queue(), listener, fence, generation, relays }),
        ("attach-listener", Frame::AttachListener(attach)),
        ("listening", Frame::Listening { queue: queue(), listener, generation, relays: at }),
        ("directories", Frame::Directories(directories.into())),
        ("error", Frame::Error(error)),
    ]
}

fn of_a_relay() -> Vec<(&'static str, Frame)> {
    let register = Register {
        relay: RelayId(3),
        queue: queue(),
        request: "prices/1/3".to_owned(),
        address: "10.0.0.7:7000".to_owned(),
        zmtp: (String::new(), "10.0.0.7:7002".to_owned()),
        capacity: Capacity { connections: 65_536, ..Capacity::default() },
        fence: Fence(1),
    };
    let settings = RelaySettings {
        acknowledge: Acknowledge::Relayed,
        slow: SlowPolicy::DropOldest,
        ring_bytes_max: 8 << 20,
        report_ms: 1_000,
        keep: (String::new(), String::new()),
    };
    let producer = ProducerReport {
        producer: PRODUCER,
        epoch: EPOCH,
        next: MessageSeq(41),
        messages: 1,
        bytes: 100,
        bytes_out: 200,
        foreign: false,
    };
    let report = Report {
        number: 5,
        uptime_ms: 5_000,
        messages_in: 41,
        bytes_in: 4_100,
        messages_out: 82,
        bytes_out: 8_200,
        listeners: 2,
        dropped: 3,
        spilled: 6,
        left_behind: 1,
        cpu_us: 70_000,
        latency_mean_us: 40,
        latency_p99_us: 90,
        producers: vec![producer],
        ..Report::default()
    };
    let host = Host {
        memory_bytes: 20 << 20,
        memory_bytes_max: 64 << 20,
        network_in_bytes: 4_500,
        network_out_bytes: 9_000,
    };
    vec![
        ("register", Frame::Register(register)),
        ("registered", Frame::Registered { fence: Fence(1), settings }),
        ("report", Frame::Report(report)),
        ("host", Frame::Host(host)),
    ]
}

#[test]
fn every_example_of_the_page_is_the_frame_that_it_says() {
    let frames =
        [of_the_greeting(), of_a_move(), of_messages(), of_a_listener(), of_a_relay()].concat();
    let examples = examples(PAGE);
    let names: Vec<&str> = examples.iter().map(|(name, _)| *name).collect();
    let known: Vec<&str> = frames.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, known);
    for ((name, bytes), (_, frame)) in examples.iter().zip(&frames) {
        let mut written = BytesMut::new();
        frame.encode(&mut written).unwrap();
        assert_eq!(written, bytes[..], "{name}");
        let mut bytes = Bytes::copy_from_slice(bytes);
        assert_eq!(Frame::decode(&mut bytes).as_ref(), Ok(&Some(frame.clone())), "{name}");
        assert!(bytes.is_empty(), "{name}");
    }
}

#[test]
fn the_page_has_every_kind_of_frame_with_its_number() {
    for kind in Kind::ALL {
        let row = format!("| {:#04x} | {} |", *kind as u8, kind.name());
        assert!(PAGE.contains(&row), "no row begins with {row}");
    }
}

#[test]
fn the_page_has_every_error_with_its_number() {
    for code in 1..=u16::MAX {
        let frame = [&[7, 0, 0, 0, Kind::Error as u8, 0, 0, 0][..], &code.to_le_bytes(), &[0; 5]];
        let mut bytes = Bytes::from(frame.concat());
        let known = Frame::decode(&mut bytes).is_ok();
        let documented = PAGE.contains(&format!("\n| {code} | ")) && code <= 11;
        assert_eq!(known, documented, "{code}");
    }
}
