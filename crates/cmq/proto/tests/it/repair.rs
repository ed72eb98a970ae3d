//! Whatever is lost of a group, if it is not more than there are parities, is there again bit for bit.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use quelea_cmq_proto::limits::{
    DATAGRAM_BYTES_MAX, REPAIR_DATA_MAX, REPAIR_GROUPS_MAX, REPAIR_HELD_BYTES_MAX, REPAIR_KEPT_MAX,
    REPAIR_MESSAGE_BYTES_MAX, REPAIR_PARITY_MAX,
};
use quelea_cmq_proto::repair::{FecDecoder, GroupEncoder, PARITY_OVERHEAD_BYTES, Recovered};
use quelea_cmq_proto::wire::parity::Parity;
use quelea_cmq_proto::wire::{Header, Kind, Malformed, flags};
use quelea_cmq_proto::{Config, DestinationOptions, Mailbox, Repair};

use crate::pair::{Datagram, EndpointPair, Fate, messages};

fn header(kind: Kind, sequence: u64) -> Header {
    Header {
        kind,
        flags: flags::CREDIT | if kind == Kind::Data { flags::REPAIR } else { 0 },
        flow: 3,
        session: 4,
        mailbox: Mailbox(5),
        sequence,
        count: 0,
        first_message: 0,
    }
}

/// A datagram on its way: a DATA's header and body, or a PARITY's.
type Sent = (Header, Vec<u8>);

/// Sends the bodies in a group. Returns its DATA and its PARITY.
fn send(repair: Repair, first: u64, bodies: &[Vec<u8>]) -> (Vec<Sent>, Vec<Sent>) {
    let mut encoder = GroupEncoder::new(repair).unwrap();
    let mut data = Vec::new();
    for (at, body) in bodies.iter().enumerate() {
        let head = Header {
            count: at as u16 * 7,
            first_message: 0xFFFF_FFF0_u32.wrapping_add(at as u32),
            flags: flags::CREDIT | flags::REPAIR | if at % 2 == 1 { flags::FRAGMENT } else { 0 },
            ..header(Kind::Data, first + at as u64)
        };
        let full = encoder.add(&head, body);
        assert_eq!(full, encoder.room() == 0);
        data.push((head, body.clone()));
    }
    let body_bytes = encoder.body_bytes();
    let mut parity = Vec::new();
    encoder.finish(|head, sum| {
        let mut body = Vec::new();
        head.write(&mut body);
        body.extend_from_slice(sum);
        assert_eq!(body.len(), body_bytes);
        let sequence = first + (bodies.len() + parity.len()) as u64;
        parity.push((header(Kind::Parity, sequence), body));
    });
    assert!(encoder.is_empty());
    let longest = bodies.iter().map(Vec::len).max().unwrap();
    assert_eq!(body_bytes, longest + PARITY_OVERHEAD_BYTES);
    (data, parity)
}

fn receive(decoder: &mut FecDecoder, (header, body): &Sent) {
    match header.kind {
        Kind::Data => decoder.on_data(header, body),
        _ => {
            let (head, parity) = Parity::read(body, header.sequence).unwrap();
            decoder.on_parity(header, head, parity);
        }
    }
    assert!(decoder.held_bytes() <= REPAIR_HELD_BYTES_MAX);
}

fn recovered(decoder: &mut FecDecoder) -> Vec<Sent> {
    let found = std::iter::from_fn(|| decoder.poll_recovered());
    found
        .map(|recovered| {
            let Recovered { header, segment } = recovered.unwrap();
            assert_eq!(Header::parse(&segment), Ok(header));
            (header, segment[36..].to_vec())
        })
        .collect()
}

proptest! {
    // The largest groups cost some 20 ms each without optimisation.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_losses_up_to_the_parities_are_recovered_bit_for_bit(
        bodies in vec(vec(any::<u8>(), 0..70), 1..=usize::from(REPAIR_DATA_MAX)),
        parity in 1..=REPAIR_PARITY_MAX,
        losses in vec(any::<Index>(), 0..40),
        padding in 0_usize..5,
        first in 0_u64..1 << 40,
        order in any::<u64>(),
    ) {
        let repair = Repair::ReedSolomon { data: bodies.len() as u8, parity };
        let (data, mut parities) = send(repair, first, &bodies);
        // What is lost: as many as there are parities, data or parities.
        let mut lost: Vec<u64> = losses
            .iter()
            .map(|index| first + index.index(data.len() + parities.len()) as u64)
            .collect();
        lost.sort_unstable();
        lost.dedup();
        let mut random = fastrand::Rng::with_seed(order);
        random.shuffle(&mut lost);
        lost.truncate(usize::from(parity));
        for (_, body) in &mut parities {
            body.resize(body.len() + random.usize(0..=padding), 0);
        }
        let mut way: Vec<&Sent> = data
            .iter()
            .chain(&parities)
            .filter(|(header, _)| !lost.contains(&header.sequence))
            .collect();
        random.shuffle(&mut way);

        let mut decoder = FecDecoder::new();
        let mut there: Vec<Sent> = Vec::new();
        for sent in way {
            receive(&mut decoder, sent);
            if sent.0.kind == Kind::Data {
                there.push(sent.clone());
            }
            // On its way through another order one may be recovered that comes later by itself.
            there.extend(recovered(&mut decoder));
        }
        there.sort_by_key(|(header, _)| header.sequence);
        there.dedup();
        prop_assert_eq!(there, data);
    }

    #[test]
    fn more_losses_than_parities_recover_nothing(
        bodies in vec(vec(any::<u8>(), 0..40), 3..12),
        parity in 1_u8..3,
    ) {
        let repair = Repair::ReedSolomon { data: REPAIR_DATA_MAX, parity };
        let (data, parities) = send(repair, 9, &bodies);
        let mut decoder = FecDecoder::new();
        for sent in data[usize::from(parity) + 1..].iter().chain(&parities) {
            receive(&mut decoder, sent);
        }
        prop_assert_eq!(decoder.poll_recovered(), None);
        receive(&mut decoder, &data[0]);
        let expected = &data[1..usize::from(parity) + 1];
        prop_assert_eq!(recovered(&mut decoder), expected, "the last that it took came late");
    }

    #[test]
    fn nothing_that_comes_is_too_much(steps in vec((any::<bool>(), 0_u64..200, any::<u64>()), 1..300)) {
        let mut decoder = FecDecoder::new();
        for (is_data, sequence, random) in steps {
            let body = vec![random as u8; (random >> 8) as usize % 2_000];
            if is_data {
                receive(&mut decoder, &(header(Kind::Data, sequence), body));
            } else {
                let head = Parity {
                    first: sequence,
                    data: 1 + (random >> 20) as u8 % REPAIR_DATA_MAX,
                    parity: REPAIR_PARITY_MAX,
                    index: (random >> 30) as u8 % REPAIR_PARITY_MAX,
                };
                decoder.on_parity(&header(Kind::Parity, sequence + 100), head, &body);
            }
            prop_assert!(decoder.held_bytes() <= REPAIR_HELD_BYTES_MAX);
            while let Some(recovered) = decoder.poll_recovered() {
                prop_assert!(matches!(recovered, Ok(_) | Err(Malformed::Parity)));
            }
        }
    }
}

#[test]
fn an_xor_of_two_is_their_xor() {
    let bodies = [vec![0b1100], vec![0b1010, 7]];
    let (data, parities) = send(Repair::Xor { data: 2 }, 5, &bodies);
    let [(_, body)] = &parities[..] else { panic!("one parity") };
    // The head, then length 1 ^ 2, flags with and without FRAGMENT, 0, count 0 ^ 7, first message
    // 0xFFFFFFF0 ^ 0xFFFFFFF1, then the bodies.
    let expected = [5, 0, 0, 0, 0, 0, 0, 0, 2, 1, 0, 0, 3, 0, 8, 0, 7, 0, 1, 0, 0, 0, 0b0110, 7];
    assert_eq!(body, &expected);
    let mut decoder = FecDecoder::new();
    receive(&mut decoder, &data[1]);
    receive(&mut decoder, &parities[0]);
    assert_eq!(recovered(&mut decoder), data[..1]);
}

#[test]
fn a_group_that_is_whole_costs_nothing_more() {
    let bodies = vec![vec![1; 100]; 10];
    let (data, parities) = send(Repair::ReedSolomon { data: 10, parity: 2 }, 0, &bodies);
    let mut decoder = FecDecoder::new();
    for sent in &data {
        receive(&mut decoder, sent);
    }
    let before = decoder.held_bytes();
    for sent in &parities {
        receive(&mut decoder, sent);
    }
    assert_eq!(decoder.held_bytes(), before);
    assert_eq!(decoder.poll_recovered(), None);
}

#[test]
fn a_datagram_is_recovered_once_however_many_parities_come() {
    let bodies = vec![vec![1; 100]; 4];
    let (data, parities) = send(Repair::ReedSolomon { data: 4, parity: 4 }, 0, &bodies);
    let mut decoder = FecDecoder::new();
    for sent in data[1..].iter().chain(&parities) {
        receive(&mut decoder, sent);
    }
    assert_eq!(recovered(&mut decoder), data[..1]);
}

#[test]
fn one_group_after_the_other_is_mended() {
    let mut encoder = GroupEncoder::new(Repair::Xor { data: 3 }).unwrap();
    let mut decoder = FecDecoder::new();
    let mut sequence = 0;
    for round in 0..1_000_u64 {
        let lost = sequence + round % 3;
        let mut expected = None;
        for _ in 0..3 {
            let head = header(Kind::Data, sequence);
            let body = sequence.to_le_bytes();
            encoder.add(&head, &body);
            match sequence == lost {
                true => expected = Some((head, body.to_vec())),
                false => decoder.on_data(&head, &body),
            }
            sequence += 1;
        }
        encoder.finish(|head, sum| decoder.on_parity(&header(Kind::Parity, sequence), head, sum));
        sequence += 1;
        assert_eq!(recovered(&mut decoder), [expected.unwrap()]);
    }
    assert!(decoder.held_bytes() <= (REPAIR_KEPT_MAX + 4) * 128, "{} bytes", decoder.held_bytes());
}

#[test]
fn parities_whose_group_never_comes_make_room_for_newer_ones() {
    let mut decoder = FecDecoder::new();
    let bodies = vec![vec![1; 100]; 3];
    for round in 0..100 {
        let (_, parities) = send(Repair::Xor { data: 3 }, round * 4, &bodies);
        receive(&mut decoder, &parities[0]);
    }
    assert!(decoder.held_bytes() <= REPAIR_GROUPS_MAX * 200, "{} bytes", decoder.held_bytes());
    let (data, parities) = send(Repair::Xor { data: 3 }, 400, &bodies);
    for sent in data[..2].iter().chain(&parities) {
        receive(&mut decoder, sent);
    }
    assert_eq!(recovered(&mut decoder), data[2..]);
}

#[test]
fn the_largest_datagrams_do_not_fill_the_memory() {
    let mut decoder = FecDecoder::new();
    let body = vec![7; DATAGRAM_BYTES_MAX - 100];
    for sequence in 0..300 {
        receive(&mut decoder, &(header(Kind::Data, sequence), body.clone()));
        let small = header(Kind::Data, sequence + 1_000);
        receive(&mut decoder, &(small, vec![1]));
    }
    assert!(decoder.held_bytes() > 0);
}

#[test]
fn a_parity_that_contradicts_the_group_is_not_used() {
    let bodies = vec![vec![1; 10]; 3];
    let (data, parities) = send(Repair::ReedSolomon { data: 3, parity: 2 }, 0, &bodies);
    let (other, forged) = send(Repair::ReedSolomon { data: 3, parity: 3 }, 0, &bodies[..2]);
    assert_eq!(other.len(), 2);
    let mut decoder = FecDecoder::new();
    for sent in [&data[0], &parities[1], &forged[0], &forged[2], &parities[0]] {
        receive(&mut decoder, sent);
    }
    assert_eq!(recovered(&mut decoder), data[1..]);
}

#[test]
fn a_parity_of_nonsense_is_malformed_and_recovers_nothing() {
    let (data, parities) = send(Repair::Xor { data: 2 }, 0, &[vec![1; 10], vec![2; 10]]);
    // Each byte of the block's head but the count and the first message, which can be anything.
    for at in [12, 13, 14, 15] {
        let mut parity = parities[0].clone();
        parity.1[at] ^= 0x91;
        let mut decoder = FecDecoder::new();
        receive(&mut decoder, &data[0]);
        receive(&mut decoder, &parity);
        assert_eq!(decoder.poll_recovered(), Some(Err(Malformed::Parity)), "byte {at}");
        assert_eq!(decoder.poll_recovered(), None);
    }
}

#[test]
fn a_datagram_that_is_not_the_next_one_begins_another_group() {
    let mut encoder = GroupEncoder::new(Repair::Xor { data: 2 }).unwrap();
    let mut groups = Vec::new();
    for sequence in [5, 0, 1, 2, 3] {
        // Nobody finishes the group of 0 and 1 either.
        encoder.add(&header(Kind::Data, sequence), &[sequence as u8; 9]);
    }
    encoder.finish(|head, sum| groups.push((head.first, head.data, sum[10])));
    assert_eq!(groups, [(2, 2, 2 ^ 3)]);
}

#[test]
fn groups_are_within_their_limits() {
    assert!(GroupEncoder::new(Repair::None).is_none());
    let encoder = GroupEncoder::new(Repair::ReedSolomon { data: 0, parity: 0 }).unwrap();
    assert_eq!((encoder.room(), encoder.parities()), (1, 1));
    let encoder = GroupEncoder::new(Repair::ReedSolomon { data: 255, parity: 255 }).unwrap();
    assert_eq!(encoder.room(), REPAIR_DATA_MAX);
    assert_eq!(encoder.parities(), usize::from(REPAIR_PARITY_MAX));
}

#[test]
fn a_parity_shorter_than_its_data_is_malformed() {
    // The long one ends in zeros, so that the reckoning would come out right.
    let mut long = vec![1; 10];
    long.resize(60_000, 0);
    let (data, mut parities) = send(Repair::Xor { data: 2 }, 0, &[long, vec![2; 10]]);
    parities[0].1.truncate(12 + 10 + 10);
    let mut decoder = FecDecoder::new();
    receive(&mut decoder, &data[0]);
    receive(&mut decoder, &parities[0]);
    assert_eq!(decoder.poll_recovered(), Some(Err(Malformed::Parity)));
    assert_eq!(decoder.poll_recovered(), None);
}

/// Sends by a lossy flow with a parity for eight datagrams, of which one in a hundred is lost; each
/// arrives so long after the one before.
fn losing(config: Config, apart_us: u64, sent: &[Vec<u8>]) -> EndpointPair {
    let mut pair = EndpointPair::new(config);
    let repair = Repair::Xor { data: 8 };
    let to = pair.destination(DestinationOptions { repair, ..DestinationOptions::default() });
    let mut count = 0;
    pair.network = Box::new(move |datagram: &Datagram| {
        let data = datagram.kind() == Some(Kind::Data);
        count += u64::from(matches!(datagram.kind(), Some(Kind::Data | Kind::Parity)));
        if data && count % 100 == 20 { Fate::Lost } else { Fate::Late(count * apart_us) }
    });
    pair.push_all(to, sent);
    pair.run();
    pair
}

#[test]
fn any_fragment_of_a_long_message_is_mended_however_long_it_takes() {
    for apart_us in [0, 20] {
        let sent = messages(1, REPAIR_MESSAGE_BYTES_MAX);
        let pair = losing(Config::default(), apart_us, &sent);
        let stats = pair.server.stats().received;
        assert!(pair.received == sent, "{apart_us}: {stats:?}");
        assert!(stats.repaired > 5, "{stats:?}");
        assert_eq!((stats.lost_messages, stats.lost_datagrams), (0, 0));
        // What has passed is not kept.
        let kept = pair.server.reassembly_bytes();
        assert!(kept < REPAIR_MESSAGE_BYTES_MAX / 2, "{kept} bytes");
    }
}

#[test]
fn messages_one_after_the_other_have_their_parity_behind_each() {
    for bytes in [2_000, 100_000] {
        let sent = messages(5_000_000 / bytes, bytes);
        let pair = losing(Config::default(), 0, &sent);
        let stats = pair.server.stats().received;
        assert_eq!(stats.lost_messages, 0, "{stats:?}");
        assert_eq!(pair.received.len(), sent.len());
        let sent = pair.client.stats().sent;
        assert!(sent.parities < sent.datagrams / 6, "{sent:?}");
    }
}

#[test]
fn a_message_that_cannot_be_kept_has_no_parity() {
    let config = Config { message_bytes_max: 2 * REPAIR_MESSAGE_BYTES_MAX, ..Config::default() };
    let mut pair = EndpointPair::new(config);
    let repair = Repair::Xor { data: 8 };
    let to = pair.destination(DestinationOptions { repair, ..DestinationOptions::default() });
    let sent = messages(1, REPAIR_MESSAGE_BYTES_MAX + 1);
    pair.push_all(to, &sent);
    pair.run();
    assert!(pair.received == sent);
    assert_eq!(pair.client.stats().sent.parities, 0);
    assert!(pair.server.reassembly_bytes() < 10_000, "{}", pair.server.reassembly_bytes());
    let small = messages(100, 1_000);
    pair.push_all(to, &small);
    pair.run();
    assert!(pair.client.stats().sent.parities > 0);
}
