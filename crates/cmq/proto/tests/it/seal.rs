//! Nobody without the key reads a datagram, makes one, changes one or uses one twice.

use std::net::SocketAddr;
use std::ops::Range;

use quelea_cmq_proto::config::PreSharedKey;
use quelea_cmq_proto::limits::WINDOW_DATAGRAMS_MAX;
use quelea_cmq_proto::seal::{
    Answer, Cookies, FlowSeal, Greeting, HANDSHAKE_BYTES, KEY_DATAGRAMS, Keyring, REPLAY_NUMBERS,
    Reception, Rejected, Salts, SealError, TAG_BYTES,
};
use quelea_cmq_proto::wire::{HEADER_BYTES, Header, Kind, NUMBER_MAX, flags};
use quelea_cmq_proto::{Mailbox, Time};

const BODY: &[u8] = b"\x0fa secret message";

fn keyring() -> Keyring {
    Keyring::new(PreSharedKey([7; 32]))
}

fn header(kind: Kind, sequence: u64) -> Header {
    Header {
        kind,
        flags: flags::CREDIT,
        flow: 3,
        session: 0x1122_3344_5566_7788,
        mailbox: Mailbox(9),
        sequence,
        count: u16::from(kind == Kind::Data),
        first_message: 0,
    }
}

/// Both ends of a flow after their handshake.
struct EndpointPair {
    greeting: Greeting,
    sender: Box<FlowSeal>,
    receiver: Reception,
}

impl EndpointPair {
    fn new(receiver_salt: [u8; 16]) -> Self {
        Self::of(header(Kind::Data, 0), receiver_salt)
    }

    fn of(flow: Header, receiver_salt: [u8; 16]) -> Self {
        let keyring = keyring();
        let mut greeting = Greeting::new([1; 16]);
        let hello = greeting.hello(&keyring, flow);
        let parsed = Header::parse(&hello).unwrap();
        let (receiver, challenge) =
            Reception::new(&keyring, &parsed, &hello, || receiver_salt).unwrap();
        let parsed = Header::parse(&challenge).unwrap();
        let answer = greeting.on_challenge(&keyring, &parsed, &challenge).unwrap();
        let Answer::Keys(sender) = answer else { panic!("the first keys") };
        Self { greeting, sender, receiver }
    }

    fn send(&mut self, kind: Kind, sequence: u64) -> Vec<u8> {
        sealed(&mut self.sender, header(kind, sequence)).unwrap()
    }

    fn receive(&mut self, segment: &[u8]) -> Result<(), Rejected> {
        opened(&mut self.receiver.seal, segment).map(|body| assert_eq!(body, BODY))
    }
}

fn sealed(seal: &mut FlowSeal, header: Header) -> Result<Vec<u8>, SealError> {
    let mut segment = vec![0; HEADER_BYTES + BODY.len() + TAG_BYTES];
    segment[HEADER_BYTES..HEADER_BYTES + BODY.len()].copy_from_slice(BODY);
    seal.seal(header, &mut segment).map(|()| segment)
}

fn opened(seal: &mut FlowSeal, segment: &[u8]) -> Result<Vec<u8>, Rejected> {
    let mut segment = segment.to_vec();
    let header = Header::parse(&segment).map_err(|_| Rejected::NotAuthentic)?;
    let body: Range<usize> = seal.open(&header, &mut segment)?;
    Ok(segment[body].to_vec())
}

#[test]
fn what_one_end_seals_the_other_opens() {
    let mut pair = EndpointPair::new([2; 16]);
    for (kind, number) in [(Kind::Data, 0), (Kind::Parity, 1), (Kind::Probe, 0), (Kind::Data, 9)] {
        let segment = pair.send(kind, number);
        assert!(!segment.windows(BODY.len()).any(|part| part == BODY), "it is encrypted");
        let parsed = Header::parse(&segment).unwrap();
        assert_eq!(parsed, Header { flags: flags::CREDIT | flags::SEALED, ..header(kind, number) });
        pair.receive(&segment).unwrap();
    }
    for kind in [Kind::Status, Kind::Refusal] {
        let segment = sealed(&mut pair.receiver.seal, header(kind, 77)).unwrap();
        assert_eq!(opened(&mut pair.sender, &segment).unwrap(), BODY);
    }
}

#[test]
fn a_change_of_any_bit_is_noticed() {
    let mut pair = EndpointPair::new([2; 16]);
    let segment = pair.send(Kind::Data, 5);
    for at in 0..segment.len() {
        for bit in 0..8 {
            let mut changed = segment.clone();
            changed[at] ^= 1 << bit;
            assert_eq!(
                pair.receive(&changed),
                Err(Rejected::NotAuthentic),
                "bit {bit} of byte {at}"
            );
        }
    }
    for end in 0..segment.len() {
        assert_eq!(
            pair.receive(&segment[..end]),
            Err(Rejected::NotAuthentic),
            "cut to {end} bytes"
        );
    }
    let longer = [&segment[..], &[0]].concat();
    assert_eq!(pair.receive(&longer), Err(Rejected::NotAuthentic));
    pair.receive(&segment).expect("the datagram itself is still good");
}

#[test]
fn a_change_of_any_bit_of_the_handshake_is_noticed() {
    let keyring = keyring();
    let mut greeting = Greeting::new([1; 16]);
    let hello = greeting.hello(&keyring, header(Kind::Data, 0));
    let good = Header::parse(&hello).unwrap();
    let (mut reception, challenge) = Reception::new(&keyring, &good, &hello, || [2; 16]).unwrap();
    for at in 0..HANDSHAKE_BYTES {
        for bit in 0..8 {
            let mut changed = hello;
            changed[at] ^= 1 << bit;
            if let Ok(parsed) = Header::parse(&changed) {
                let fresh = || panic!("no salt for a forger");
                let new = Reception::new(&keyring, &parsed, &changed, fresh).err();
                assert_eq!(new, Some(Rejected::NotAuthentic), "bit {bit} of byte {at}");
                let again = reception.on_hello(&keyring, &parsed, &changed).err();
                assert_eq!(again, Some(Rejected::NotAuthentic), "bit {bit} of byte {at}");
            }
            let mut changed = challenge;
            changed[at] ^= 1 << bit;
            if let Ok(parsed) = Header::parse(&changed) {
                let answer = greeting.on_challenge(&keyring, &parsed, &changed).err();
                assert_eq!(answer, Some(Rejected::NotAuthentic), "bit {bit} of byte {at}");
            }
        }
        let cut = &hello[..at];
        assert!(Reception::new(&keyring, &good, cut, || [2; 16]).is_err(), "cut to {at} bytes");
    }
    // A HELLO is no CHALLENGE and the other way round.
    let parsed = Header::parse(&challenge).unwrap();
    assert!(Reception::new(&keyring, &parsed, &challenge, || [2; 16]).is_err());
    assert!(greeting.on_challenge(&keyring, &good, &hello).is_err());
    let answer = greeting.on_challenge(&keyring, &parsed, &challenge);
    assert!(matches!(answer, Ok(Answer::Keys(_))), "the datagram itself is still good");
}

#[test]
fn an_answer_to_hello_is_not_larger() {
    let hello = Greeting::new([1; 16]).hello(&keyring(), header(Kind::Data, 0));
    let parsed = Header::parse(&hello).unwrap();
    let (_, challenge) = Reception::new(&keyring(), &parsed, &hello, || [2; 16]).unwrap();
    assert!(challenge.len() <= hello.len());
}

#[test]
fn another_key_opens_nothing() {
    let other = Keyring::new(PreSharedKey([8; 32]));
    let hello = Greeting::new([1; 16]).hello(&other, header(Kind::Data, 0));
    let parsed = Header::parse(&hello).unwrap();
    assert!(Reception::new(&keyring(), &parsed, &hello, || [2; 16]).is_err());

    let mut of_other = FlowSeal::group_sender(&other, 1, 2);
    let segment = sealed(&mut of_other, header(Kind::Data, 0)).unwrap();
    let mut ours = FlowSeal::group_receiver(&keyring(), 1, 2);
    assert_eq!(opened(&mut ours, &segment), Err(Rejected::NotAuthentic));
}

#[test]
fn a_datagram_of_another_flow_session_or_handshake_opens_nothing() {
    let flow = header(Kind::Data, 0);
    let segment = EndpointPair::new([2; 16]).send(Kind::Data, 0);
    for (what, other) in [
        ("flow", EndpointPair::of(Header { flow: 4, ..flow }, [2; 16])),
        ("session", EndpointPair::of(Header { session: 4, ..flow }, [2; 16])),
        ("handshake", EndpointPair::new([3; 16])),
    ] {
        let mut other = other;
        assert_eq!(other.receive(&segment), Err(Rejected::NotAuthentic), "another {what}");
    }
    EndpointPair::new([2; 16]).receive(&segment).expect("the same salts make the same keys");
}

#[test]
fn an_end_does_not_take_its_own_datagrams() {
    let mut pair = EndpointPair::new([2; 16]);
    let data = pair.send(Kind::Data, 0);
    assert_eq!(opened(&mut pair.sender, &data), Err(Rejected::NotAuthentic));
    let status = sealed(&mut pair.receiver.seal, header(Kind::Status, 0)).unwrap();
    assert_eq!(pair.receive(&status), Err(Rejected::NotAuthentic));
    let mut segment = vec![0; 100];
    assert_eq!(pair.sender.seal(header(Kind::Status, 0), &mut segment), Err(SealError::Impossible));
    assert_eq!(segment, [0; 100]);
    assert_eq!(
        pair.sender.seal(header(Kind::Data, 1), &mut [0; HEADER_BYTES + TAG_BYTES - 1]),
        Err(SealError::Impossible)
    );
}

#[test]
fn a_datagram_that_was_taken_is_not_taken_again() {
    let mut pair = EndpointPair::new([2; 16]);
    let early = pair.send(Kind::Data, 0);
    let parity = pair.send(Kind::Parity, 1);
    let segment = pair.send(Kind::Data, 7);
    pair.receive(&segment).unwrap();
    pair.receive(&segment).expect("the receiver had no room for it, and its repetition is welcome");
    pair.receiver.seal.taken(7);
    assert_eq!(pair.receive(&segment), Err(Rejected::Replayed));
    pair.receive(&early).expect("late, but not here before");
    pair.receive(&parity).unwrap();
    pair.receiver.seal.taken(1);
    assert_eq!(pair.receive(&parity), Err(Rejected::Replayed));

    pair.receiver.seal.taken(WINDOW_DATAGRAMS_MAX as u64 - 1);
    pair.receive(&early).expect("just within the window");
    pair.receiver.seal.taken(WINDOW_DATAGRAMS_MAX as u64);
    assert_eq!(pair.receive(&early), Err(Rejected::Replayed), "too old to know");
}

#[test]
fn a_probe_or_a_status_is_not_taken_twice() {
    let mut pair = EndpointPair::new([2; 16]);
    let probe = pair.send(Kind::Probe, 0);
    pair.receive(&probe).unwrap();
    assert_eq!(pair.receive(&probe), Err(Rejected::Replayed));
    let late = pair.send(Kind::Probe, 0);
    for _ in 0..REPLAY_NUMBERS {
        let probe = pair.send(Kind::Probe, 0);
        pair.receive(&probe).unwrap();
    }
    assert_eq!(pair.receive(&late), Err(Rejected::Replayed), "too old to know");

    let status = sealed(&mut pair.receiver.seal, header(Kind::Status, 0)).unwrap();
    opened(&mut pair.sender, &status).unwrap();
    assert_eq!(opened(&mut pair.sender, &status), Err(Rejected::Replayed));
}

#[test]
fn no_number_is_sealed_twice() {
    let mut pair = EndpointPair::new([2; 16]);
    pair.send(Kind::Data, 5);
    for number in [5, 4, 0] {
        let again = sealed(&mut pair.sender, header(Kind::Parity, number));
        assert_eq!(again, Err(SealError::Reused { number }));
    }
    let first = pair.send(Kind::Probe, 99);
    let second = pair.send(Kind::Probe, 99);
    assert_eq!(Header::parse(&first).unwrap().sequence, 0);
    assert_eq!(Header::parse(&second).unwrap().sequence, 1);
    pair.send(Kind::Data, NUMBER_MAX);
    let beyond = sealed(&mut pair.sender, header(Kind::Data, NUMBER_MAX + 1));
    assert_eq!(beyond, Err(SealError::Exhausted));
}

#[test]
fn keys_change_as_numbers_rise_and_older_ones_still_open() {
    let mut pair = EndpointPair::new([2; 16]);
    let sequences = [0, KEY_DATAGRAMS - 1, KEY_DATAGRAMS, 5 * KEY_DATAGRAMS, NUMBER_MAX];
    let segments = sequences.map(|sequence| pair.send(Kind::Data, sequence));
    for segment in segments.iter().chain(segments.iter().rev()) {
        pair.receive(segment).unwrap();
        let probe = pair.send(Kind::Probe, 0);
        pair.receive(&probe).unwrap();
    }
}

#[test]
fn what_was_recorded_means_nothing_to_a_receiver_that_was_restarted() {
    let keyring = keyring();
    let mut pair = EndpointPair::new([2; 16]);
    let recorded_data = pair.send(Kind::Data, 0);
    let recorded_hello = pair.greeting.hello(&keyring, header(Kind::Data, 0));
    let parsed = Header::parse(&recorded_hello).unwrap();
    let recorded_challenge = pair.receiver.on_hello(&keyring, &parsed, &recorded_hello).unwrap();

    // The restarted receiver answers the old HELLO, for it cannot know, but with another salt.
    let (new, _) = Reception::new(&keyring, &parsed, &recorded_hello, || [4; 16]).unwrap();
    pair.receiver = new;
    assert_eq!(pair.receive(&recorded_data), Err(Rejected::NotAuthentic));

    // The sender that greets again gets new keys; the old CHALLENGE does not answer its new HELLO.
    let hello = pair.greeting.hello(&keyring, header(Kind::Data, 0));
    let parsed = Header::parse(&recorded_challenge).unwrap();
    let old = pair.greeting.on_challenge(&keyring, &parsed, &recorded_challenge);
    assert_eq!(old.err(), Some(Rejected::Replayed));
    let parsed = Header::parse(&hello).unwrap();
    let challenge = pair.receiver.on_hello(&keyring, &parsed, &hello).unwrap();
    let parsed = Header::parse(&challenge).unwrap();
    let answer = pair.greeting.on_challenge(&keyring, &parsed, &challenge).unwrap();
    let Answer::Keys(mut sender) = answer else { panic!("other keys") };

    // What was not acknowledged is sealed anew.
    let mut kept = recorded_data.clone();
    let (head, body) = pair.sender.recover(&mut kept).unwrap();
    assert_eq!((head.sequence, &kept[body]), (0, BODY));
    sender.seal(head, &mut kept).unwrap();
    assert_ne!(kept, recorded_data);
    pair.receive(&kept).unwrap();
}

#[test]
fn what_the_peer_sent_is_not_recovered_as_ones_own() {
    let mut pair = EndpointPair::new([2; 16]);
    let mut segment = pair.send(Kind::Data, 0);
    assert_eq!(pair.receiver.seal.recover(&mut segment).err(), Some(Rejected::NotAuthentic));
    assert!(pair.sender.recover(&mut segment[..40]).is_err());
}

#[test]
fn a_hello_that_is_said_again_changes_no_keys() {
    let keyring = keyring();
    let mut pair = EndpointPair::new([2; 16]);
    let first = pair.greeting.hello(&keyring, header(Kind::Data, 0));
    let second = pair.greeting.hello(&keyring, header(Kind::Data, 0));
    for hello in [&first, &second, &second] {
        let parsed = Header::parse(hello).unwrap();
        let challenge = pair.receiver.on_hello(&keyring, &parsed, hello).unwrap();
        let parsed = Header::parse(&challenge).unwrap();
        let answer = pair.greeting.on_challenge(&keyring, &parsed, &challenge);
        match hello == &second {
            true => assert!(matches!(answer, Ok(Answer::Same))),
            false => assert_eq!(answer.err(), Some(Rejected::Replayed), "the last HELLO counts"),
        }
    }
    let parsed = Header::parse(&first).unwrap();
    let old = pair.receiver.on_hello(&keyring, &parsed, &first);
    assert_eq!(old.err(), Some(Rejected::Replayed));
    let stranger = {
        let mut greeting = Greeting::new([99; 16]);
        (0..9).map(|_| greeting.hello(&keyring, header(Kind::Data, 0))).last().unwrap()
    };
    let parsed = Header::parse(&stranger).unwrap();
    let other_salt = pair.receiver.on_hello(&keyring, &parsed, &stranger);
    assert_eq!(other_salt.err(), Some(Rejected::Replayed), "a flow keeps its salt");
    let data = pair.send(Kind::Data, 0);
    pair.receive(&data).expect("the keys are as before");
}

#[test]
fn a_challenge_that_nobody_asked_for_is_not_taken() {
    let keyring = keyring();
    let mut asked = Greeting::new([1; 16]);
    let hello = asked.hello(&keyring, header(Kind::Data, 0));
    let parsed = Header::parse(&hello).unwrap();
    let (_, challenge) = Reception::new(&keyring, &parsed, &hello, || [2; 16]).unwrap();
    let parsed = Header::parse(&challenge).unwrap();
    let answer = Greeting::new([1; 16]).on_challenge(&keyring, &parsed, &challenge);
    assert_eq!(answer.err(), Some(Rejected::Replayed));
    let answer = Greeting::new([3; 16]).on_challenge(&keyring, &parsed, &challenge);
    assert_eq!(answer.err(), Some(Rejected::NotAuthentic), "the answer to another sender");
}

#[test]
fn a_group_reads_what_any_member_sends_and_others_do_not() {
    let head = header(Kind::Data, 0);
    let mut sender = FlowSeal::group_sender(&keyring(), head.session, head.flow);
    let segment = sealed(&mut sender, head).unwrap();
    for _ in 0..2 {
        let mut member = FlowSeal::group_receiver(&keyring(), head.session, head.flow);
        assert_eq!(opened(&mut member, &segment).unwrap(), BODY);
        member.taken(0);
        assert_eq!(opened(&mut member, &segment), Err(Rejected::Replayed));
    }
    let mut other = FlowSeal::group_receiver(&keyring(), head.session + 1, head.flow);
    assert_eq!(opened(&mut other, &segment), Err(Rejected::NotAuthentic));
    assert_eq!(EndpointPair::new([2; 16]).receive(&segment), Err(Rejected::NotAuthentic));
}

#[test]
fn what_is_not_sealed_is_not_opened() {
    let mut pair = EndpointPair::new([2; 16]);
    let mut segment = pair.send(Kind::Data, 0);
    segment[3] &= !flags::SEALED;
    assert_eq!(pair.receive(&segment), Err(Rejected::NotAuthentic));
    segment.truncate(HEADER_BYTES + TAG_BYTES - 1);
    segment[3] |= flags::SEALED;
    assert_eq!(pair.receive(&segment), Err(Rejected::NotAuthentic));
}

#[test]
fn a_cookie_is_good_for_one_address_and_flow_and_two_minutes() {
    let cookies = Cookies::new(&[5; 32]);
    let at = |seconds: u64| Time::from_micros(seconds * 1_000_000);
    let from: SocketAddr = "192.0.2.1:4711".parse().unwrap();
    let cookie = cookies.cookie(from, 1, 2, at(59));
    assert!(cookies.is_good(cookie, from, 1, 2, at(59)));
    assert!(cookies.is_good(cookie, from, 1, 2, at(119)));
    assert!(!cookies.is_good(cookie, from, 1, 2, at(120)));
    for other in ["192.0.2.2:4711", "192.0.2.1:4712", "[2001:db8::1]:4711"] {
        assert!(!cookies.is_good(cookie, other.parse().unwrap(), 1, 2, at(59)), "{other}");
    }
    assert!(!cookies.is_good(cookie, from, 2, 2, at(59)));
    assert!(!cookies.is_good(cookie, from, 1, 3, at(59)));
    assert!(!Cookies::new(&[6; 32]).is_good(cookie, from, 1, 2, at(59)));
    assert_eq!(cookie, cookies.cookie("[::ffff:192.0.2.1]:4711".parse().unwrap(), 1, 2, at(0)));
}

#[test]
fn salts_come_from_the_seed_and_never_twice() {
    let mut salts = Salts::new(&[1; 32]);
    let mut again = Salts::new(&[1; 32]);
    let mut other = Salts::new(&[2; 32]);
    let mut seen = std::collections::HashSet::new();
    for _ in 0..100 {
        let salt = salts.salt();
        assert_eq!(salt, again.salt());
        assert!(seen.insert(salt) && seen.insert(other.salt()));
    }
    assert_eq!(salts.session(), again.session());
    assert_ne!(salts.session(), salts.session());
    assert_ne!(salts.seed(), salts.seed());
}

#[test]
fn nothing_secret_is_printed() {
    let pair = EndpointPair::new([2; 16]);
    let texts = [
        format!("{:?}", PreSharedKey([7; 32])),
        format!("{:?}", keyring()),
        format!("{:?}", pair.sender),
        format!("{:?}", Salts::new(&[7; 32])),
        format!("{:?}", Cookies::new(&[7; 32])),
    ];
    for text in texts {
        assert!(!text.contains("7, 7"), "{text}");
    }
}
