//! The examples of docs/formats/cmq.md are what is sent, and what is sent is read. Their bytes were
//! made by another program (Python's `hmac` and `cryptography`), from that page alone.

use quelea_cmq_proto::classic::{self, Element};
use quelea_cmq_proto::config::PreSharedKey;
use quelea_cmq_proto::repair::{FecDecoder, GroupEncoder};
use quelea_cmq_proto::seal::{
    Answer, FlowSeal, Greeting, KEY_DATAGRAMS, Keyring, Reception, TAG_BYTES,
};
use quelea_cmq_proto::wire::data::{self, Fragment, Messages};
use quelea_cmq_proto::wire::flags::{self, FlowMode};
use quelea_cmq_proto::wire::handshake::Handshake;
use quelea_cmq_proto::wire::parity::Parity;
use quelea_cmq_proto::wire::probe::Probe;
use quelea_cmq_proto::wire::refusal::Refusal;
use quelea_cmq_proto::wire::status::Status;
use quelea_cmq_proto::wire::{HEADER_BYTES, Header, Kind};
use quelea_cmq_proto::{Mailbox, Repair};
use quelea_testkit::golden::examples;

const PAGE: &str = include_str!("../../../../../docs/formats/cmq.md");

/// The flags of most examples: reliable and ordered, with credit.
const FLAGS: u8 = FlowMode::ReliableOrdered as u8 | flags::CREDIT;

/// Returns the bytes of the example of this name.
fn example(name: &str) -> Vec<u8> {
    let found = examples(PAGE).into_iter().find(|(found, _)| *found == name);
    found.unwrap_or_else(|| panic!("no example {name}")).1
}

fn header(kind: Kind, flags: u8, sequence: u64, count: u16, first_message: u32) -> Header {
    Header {
        kind,
        flags,
        flow: 1,
        session: 0x1122_3344_5566_7788,
        mailbox: Mailbox(7),
        sequence,
        count,
        first_message,
    }
}

/// Compares a datagram with its example, and returns its body.
fn check(name: &str, header: Header, body: &[u8]) -> Vec<u8> {
    let expected = example(name);
    let datagram = [&header.to_bytes()[..], body].concat();
    assert_eq!(datagram, expected, "{name}");
    assert_eq!(Header::parse(&expected), Ok(header), "{name}");
    expected[HEADER_BYTES..].to_vec()
}

fn two_messages() -> Vec<u8> {
    let mut body = Vec::new();
    data::write_message(&mut body, b"one");
    data::write_message(&mut body, b"three");
    body
}

#[test]
fn every_example_is_checked() {
    let known = [
        "data",
        "fragment",
        "fragment-2",
        "status",
        "probe",
        "parity-0",
        "parity-1",
        "cookie-challenge",
        "cookie-hello",
        "refusal",
        "sealed-hello",
        "sealed-challenge",
        "sealed-data",
        "sealed-data-later",
        "sealed-refusal",
        "sealed-group",
        "classic",
    ];
    let found: Vec<&str> = examples(PAGE).into_iter().map(|(name, _)| name).collect();
    assert_eq!(found, known);
}

#[test]
fn messages_are_as_on_the_page() {
    let body = check("data", header(Kind::Data, FLAGS, 0, 2, 0), &two_messages());
    assert_eq!(data::check(&body, 2), Ok(body.len()));
    let messages: Vec<&[u8]> = Messages::new(&body, 2).collect();
    assert_eq!(messages, [&b"one"[..], b"three"]);
}

#[test]
fn fragments_are_as_on_the_page() {
    let message: Vec<u8> = (0..10).collect();
    let flags = FLAGS | flags::FRAGMENT;
    for (name, index, sequence, count, first) in
        [("fragment", 0, 1, 1, 2), ("fragment-2", 2, 3, 0, 3)]
    {
        let fragment = Fragment { index, fragments: 3, total: 10 };
        let mut body = Vec::new();
        fragment.write(&mut body, &message);
        let body = check(name, header(Kind::Data, flags, sequence, count, first), &body);
        let found = Fragment::read(&body, count);
        assert_eq!(found, Ok((fragment, &message[fragment.range()])));
    }
}

#[test]
fn a_status_is_as_on_the_page() {
    let status = Status {
        receiver_session: 0xAABB_CCDD_0011_2233,
        received_below: 1,
        acknowledged_below: 1,
        highest: 5,
        window_bytes: 64 << 10,
        delay_us: 250,
        ranges: vec![(2, 5)],
        ..Status::default()
    };
    let mut body = Vec::new();
    status.write(&mut body);
    let body = check("status", header(Kind::Status, FLAGS, 0, 0, 0), &body);
    assert_eq!(Status::read(&body), Ok(status));
}

#[test]
fn a_probe_is_as_on_the_page() {
    let probe = Probe { next: 5, floor: 0, next_message: 3, sent_at_us: 1_000_000 };
    let mut body = Vec::new();
    probe.write(&mut body);
    let body = check("probe", header(Kind::Probe, FLAGS | flags::END, 0, 0, 0), &body);
    assert_eq!(Probe::read(&body), Ok(probe));
}

#[test]
fn parities_are_as_on_the_page() {
    let flags = flags::CREDIT | flags::REPAIR;
    let first = (header(Kind::Data, flags, 0, 2, 0), two_messages());
    let second = (header(Kind::Data, flags, 1, 1, 2), b"\x04four".to_vec());
    let mut encoder = GroupEncoder::new(Repair::ReedSolomon { data: 2, parity: 2 }).unwrap();
    encoder.add(&first.0, &first.1);
    encoder.add(&second.0, &second.1);
    let mut decoder = FecDecoder::new();
    encoder.finish(|head, sum| {
        let mut body = Vec::new();
        head.write(&mut body);
        body.extend_from_slice(sum);
        let header = header(Kind::Parity, flags::CREDIT, 2 + u64::from(head.index), 0, 0);
        let body = check(&format!("parity-{}", head.index), header, &body);
        let (head, parity) = Parity::read(&body, header.sequence).unwrap();
        decoder.on_parity(&header, head, parity);
    });
    for expected in [first, second] {
        let recovered = decoder.poll_recovered().unwrap().unwrap();
        assert_eq!(
            (recovered.header, &recovered.segment[HEADER_BYTES..]),
            (expected.0, &expected.1[..])
        );
    }
}

#[test]
fn greetings_without_a_key_are_as_on_the_page() {
    let cookie = [1, 2, 3, 4, 5, 6, 7, 8];
    let mut body = Vec::new();
    Handshake::Cookie(cookie).write(&mut body);
    let challenge = header(Kind::Challenge, flags::CREDIT, 0, 0, 0);
    let body = check("cookie-challenge", challenge, &body);
    assert_eq!(Handshake::read(&body, false), Ok(Handshake::Cookie(cookie)));

    let mut body = Vec::new();
    Handshake::Cookie(cookie).write(&mut body);
    let body = check("cookie-hello", header(Kind::Hello, flags::CREDIT, 0, 0, 0), &body);
    assert_eq!(Handshake::read(&body, false), Ok(Handshake::Cookie(cookie)));

    let mut body = Vec::new();
    Refusal::NoSuchMailbox.write(&mut body);
    let body = check("refusal", header(Kind::Refusal, FLAGS, 0, 0, 0), &body);
    assert_eq!(Refusal::read(&body), Ok(Refusal::NoSuchMailbox));
}

fn keyring() -> Keyring {
    Keyring::new(PreSharedKey(std::array::from_fn(|at| at as u8)))
}

fn seal(seal: &mut FlowSeal, header: Header, body: &[u8]) -> Vec<u8> {
    let mut segment = vec![0; HEADER_BYTES + body.len() + TAG_BYTES];
    segment[HEADER_BYTES..][..body.len()].copy_from_slice(body);
    seal.seal(header, &mut segment).unwrap();
    segment
}

fn open(seal: &mut FlowSeal, mut segment: Vec<u8>) -> Vec<u8> {
    let header = Header::parse(&segment).unwrap();
    let body = seal.open(&header, &mut segment).unwrap();
    segment[body].to_vec()
}

#[test]
fn a_sealed_flow_is_as_on_the_page() {
    let keyring = keyring();
    let mut greeting = Greeting::new([0x51; 16]);
    let hello = greeting.hello(&keyring, header(Kind::Data, FLAGS, 0, 0, 0));
    assert_eq!(hello[..], example("sealed-hello"));
    let parsed = Header::parse(&hello).unwrap();
    let (mut receiver, challenge) =
        Reception::new(&keyring, &parsed, &hello, || [0x52; 16]).unwrap();
    assert_eq!(challenge[..], example("sealed-challenge"));
    let parsed = Header::parse(&challenge).unwrap();
    let Answer::Keys(mut sender) = greeting.on_challenge(&keyring, &parsed, &challenge).unwrap()
    else {
        panic!("the first keys");
    };

    for (name, sequence) in [("sealed-data", 0), ("sealed-data-later", 5 * KEY_DATAGRAMS + 1)] {
        let segment = seal(&mut sender, header(Kind::Data, FLAGS, sequence, 2, 0), &two_messages());
        assert_eq!(segment, example(name), "{name}");
        assert_eq!(open(&mut receiver.seal, segment), two_messages());
    }
    let refusal = seal(&mut receiver.seal, header(Kind::Refusal, FLAGS, 0, 0, 0), &[1]);
    assert_eq!(refusal, example("sealed-refusal"));
    assert_eq!(open(&mut sender, refusal), [1]);
}

#[test]
fn a_sealed_group_is_as_on_the_page() {
    let header = header(Kind::Data, 0, 0, 2, 0);
    let mut sender = FlowSeal::group_sender(&keyring(), header.session, header.flow);
    let segment = seal(&mut sender, header, &two_messages());
    assert_eq!(segment, example("sealed-group"));
    let mut receiver = FlowSeal::group_receiver(&keyring(), header.session, header.flow);
    assert_eq!(open(&mut receiver, segment), two_messages());
}

#[test]
fn a_classic_list_is_as_on_the_page() {
    let mut list = Vec::new();
    classic::begin(&mut list);
    for message in ["seq 10", "ü"] {
        classic::write_message(&mut list, Element::Text, message.as_bytes()).unwrap();
    }
    classic::write_count(&mut list, 2);
    assert_eq!(list, example("classic"));
}
