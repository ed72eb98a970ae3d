//! Datagrams come back as they were written, and whatever else comes is refused by cause.

use proptest::collection::vec;
use proptest::prelude::*;
use quelea_cmq_proto::Mailbox;
use quelea_cmq_proto::limits::{REPAIR_DATA_MAX, REPAIR_PARITY_MAX, STATUS_RANGES_MAX};
use quelea_cmq_proto::wire::data::{self, Fragment, Messages};
use quelea_cmq_proto::wire::flags::{self, FlowMode};
use quelea_cmq_proto::wire::handshake::Handshake;
use quelea_cmq_proto::wire::parity::Parity;
use quelea_cmq_proto::wire::probe::Probe;
use quelea_cmq_proto::wire::refusal::{REFUSAL_BYTES, Refusal};
use quelea_cmq_proto::wire::status::{STATUS_BYTES_MAX, STATUS_BYTES_MIN, Status};
use quelea_cmq_proto::wire::{HEADER_BYTES, Header, Kind, Malformed, NUMBER_MAX};

const KINDS: [Kind; 7] = [
    Kind::Data,
    Kind::Status,
    Kind::Probe,
    Kind::Parity,
    Kind::Hello,
    Kind::Challenge,
    Kind::Refusal,
];

fn headers() -> impl Strategy<Value = Header> {
    let who = (any::<u32>(), any::<u64>(), any::<u64>());
    let what = (0_usize..7, 0_u8..5, any::<u8>());
    (what, who, 0..=NUMBER_MAX, any::<u16>(), any::<u32>()).prop_map(
        |((kind, mode, bits), (flow, session, mailbox), sequence, count, first_message)| {
            let kind = KINDS[kind];
            let own = match kind {
                Kind::Data => flags::FRAGMENT | flags::STATUS_WANTED | flags::REPAIR,
                Kind::Probe => flags::END,
                _ => 0,
            };
            let known = flags::SEALED | flags::CREDIT | own;
            Header {
                kind,
                flags: mode | bits & known,
                flow,
                session,
                mailbox: Mailbox(mailbox),
                sequence,
                count,
                first_message,
            }
        },
    )
}

fn statuses() -> impl Strategy<Value = Status> {
    let below = (0..=NUMBER_MAX / 2, any::<u64>());
    let rest = (any::<u64>(), any::<u32>(), any::<u64>(), any::<u32>(), any::<u64>());
    (below, rest, vec((1_u64..1 << 20, 1_u64..1 << 20), 0..=STATUS_RANGES_MAX)).prop_map(
        |((received_below, done), (session, window_bytes, lost, delay_us, echo_us), steps)| {
            let mut end = received_below;
            let mut ranges = Vec::new();
            for (missing, there) in steps {
                let first = end + missing;
                end = first + there;
                ranges.push((first, end));
            }
            Status {
                receiver_session: session,
                received_below,
                acknowledged_below: done % (received_below + 1),
                highest: end,
                window_bytes,
                lost_messages: lost,
                delay_us,
                echo_us,
                ranges,
            }
        },
    )
}

proptest! {
    #[test]
    fn a_header_comes_back_as_it_was_written(header in headers(), behind in vec(any::<u8>(), 0..9)) {
        let mut datagram = header.to_bytes().to_vec();
        datagram.extend(behind);
        prop_assert_eq!(Header::parse(&datagram), Ok(header));
    }

    #[test]
    fn any_bytes_are_a_header_or_refused_by_cause(mut bytes in vec(any::<u8>(), 0..60), ours: bool) {
        if ours && bytes.len() > 2 {
            bytes[0] = 0xC3;
            bytes[1] = 1;
            bytes[2] %= 9;
        }
        if let Ok(header) = Header::parse(&bytes) {
            prop_assert_eq!(&header.to_bytes()[..], &bytes[..HEADER_BYTES]);
        } else if bytes.len() < HEADER_BYTES {
            prop_assert_eq!(Header::parse(&bytes), Err(Malformed::Short));
        }
    }

    #[test]
    fn messages_come_back_as_they_were_written(
        messages in vec(vec(any::<u8>(), 0..300), 0..20),
        padding in 0_usize..40,
    ) {
        let mut body = Vec::new();
        for message in &messages {
            let before = body.len();
            data::write_message(&mut body, message);
            prop_assert_eq!(body.len() - before, data::framed_bytes(message.len()));
        }
        let end = body.len();
        body.resize(end + padding, 0);
        let count = messages.len() as u16;
        prop_assert_eq!(data::check(&body, count), Ok(end));
        let found: Vec<&[u8]> = Messages::new(&body, u32::from(count)).collect();
        prop_assert_eq!(found, messages);
        if end > 0 && padding == 0 {
            prop_assert!(data::check(&body[..end - 1], count).is_err(), "the last one is cut off");
        }
    }

    #[test]
    fn the_messages_of_a_checked_body_are_all_there(body in vec(0_u8..20, 0..200), count in 0_u16..40) {
        let found = Messages::new(&body, u32::from(count)).count();
        prop_assert_eq!(data::check(&body, count).is_ok(), found == usize::from(count));
    }

    #[test]
    fn fragments_make_the_message_again(
        message in vec(any::<u8>(), 0..5_000),
        body_bytes in 20_usize..1_500,
        padding in 0_usize..9,
    ) {
        let total = message.len() as u32;
        let fragments = Fragment::needed(total, body_bytes).unwrap();
        let mut whole = Vec::new();
        for index in 0..fragments {
            let mut body = Vec::new();
            Fragment { index, fragments, total }.write(&mut body, &message);
            prop_assert!(body.len() <= body_bytes, "{} bytes of {body_bytes}", body.len());
            body.resize(body.len() + padding, 0);
            let count = u16::from(index == 0);
            let (found, piece) = Fragment::read(&body, count).unwrap();
            prop_assert_eq!(found, Fragment { index, fragments, total });
            prop_assert!(!piece.is_empty() || total == 0);
            prop_assert_eq!(found.range().start, whole.len());
            whole.extend_from_slice(piece);
            prop_assert_eq!(Fragment::read(&body, 1 - count), Err(Malformed::Fragment));
        }
        prop_assert_eq!(whole, message);
    }

    #[test]
    fn any_bytes_are_a_fragment_within_its_message_or_refused(body in vec(any::<u8>(), 0..40)) {
        for count in 0..=2 {
            if let Ok((found, piece)) = Fragment::read(&body, count) {
                prop_assert_eq!(found.range().len(), piece.len());
                prop_assert!(found.range().end <= found.total as usize);
            }
        }
    }

    #[test]
    fn a_status_comes_back_as_it_was_written(status in statuses(), padding in 0_usize..9) {
        let mut body = Vec::new();
        status.write(&mut body);
        prop_assert!((STATUS_BYTES_MIN..=STATUS_BYTES_MAX).contains(&body.len()));
        let end = body.len();
        body.resize(end + padding, 0);
        prop_assert_eq!(Status::read(&body), Ok(status));
        for cut in 0..end {
            prop_assert_eq!(Status::read(&body[..cut]), Err(Malformed::Status));
        }
    }

    #[test]
    fn what_is_read_as_a_status_holds_together(body in vec(any::<u8>(), 57..120), small: bool) {
        let mut body = body;
        if small {
            // Random numbers are nearly always above 48 bits.
            for at in [14, 15, 22, 23, 30, 31] {
                body[at] = 0;
            }
            body[24..30].fill(0xFF);
            body[16..22].fill(0);
            body[56] %= 8;
        }
        if let Ok(status) = Status::read(&body) {
            prop_assert!(status.acknowledged_below <= status.received_below);
            let mut below = status.received_below;
            for (first, end) in status.ranges {
                prop_assert!(below < first && first < end && end <= status.highest);
                below = end;
            }
        }
    }

    #[test]
    fn a_probe_comes_back_as_it_was_written(
        next in 0..=NUMBER_MAX + 1,
        done in any::<u64>(),
        counted in any::<u64>(),
        sent_at_us in any::<u64>(),
    ) {
        let most = next * u64::from(u16::MAX);
        let next_message = counted % (most + 1);
        let probe = Probe { next, floor: done % (next + 1), next_message, sent_at_us };
        let mut body = Vec::new();
        probe.write(&mut body);
        prop_assert_eq!(Probe::read(&body), Ok(probe));
        prop_assert_eq!(Probe::read(&body[..31]), Err(Malformed::Probe));
        let mut more = body.clone();
        more[16..24].copy_from_slice(&(most + 1).to_le_bytes());
        prop_assert_eq!(Probe::read(&more), Err(Malformed::Probe));
        body[8..16].copy_from_slice(&(next + 1).to_le_bytes());
        prop_assert_eq!(Probe::read(&body), Err(Malformed::Probe));
    }

    #[test]
    fn the_head_of_a_parity_comes_back_as_it_was_written(
        first in 0..NUMBER_MAX / 2,
        data in 1..=REPAIR_DATA_MAX,
        parity in 1..=REPAIR_PARITY_MAX,
        index in 0..REPAIR_PARITY_MAX,
    ) {
        let head = Parity { first, data, parity, index };
        let mut body = Vec::new();
        head.write(&mut body);
        body.extend(b"the parity");
        let sequence = first + u64::from(data);
        if index < parity {
            prop_assert_eq!(Parity::read(&body, sequence), Ok((head, &b"the parity"[..])));
        } else {
            prop_assert_eq!(Parity::read(&body, sequence), Err(Malformed::Parity));
        }
        prop_assert_eq!(Parity::read(&body, sequence - 1), Err(Malformed::Parity));
        prop_assert_eq!(Parity::read(&body[..21], sequence), Err(Malformed::Parity));
    }

    #[test]
    fn greetings_come_back_as_they_were_written(salt: [u8; 16], cookie: [u8; 8]) {
        for greeting in [Handshake::Cookie(cookie), Handshake::Salt(salt)] {
            let mut body = Vec::new();
            greeting.write(&mut body);
            let sealed = matches!(greeting, Handshake::Salt(_));
            prop_assert_eq!(Handshake::read(&body, sealed), Ok(greeting));
            body.pop();
            prop_assert_eq!(Handshake::read(&body, sealed), Err(Malformed::Handshake));
        }
    }
}

fn header(kind: Kind, flags: u8) -> Header {
    Header {
        kind,
        flags,
        flow: 1,
        session: 2,
        mailbox: Mailbox(3),
        sequence: 4,
        count: 5,
        first_message: 6,
    }
}

#[test]
fn a_foreign_header_is_refused_by_cause() {
    let good = header(Kind::Data, 0).to_bytes();
    let changed = |at: usize, value: u8| {
        let mut bytes = good;
        bytes[at] = value;
        Header::parse(&bytes)
    };
    assert_eq!(Header::parse(&good[..35]), Err(Malformed::Short));
    assert_eq!(Header::parse(&[]), Err(Malformed::Short));
    assert_eq!(changed(0, 0xC2), Err(Malformed::Magic));
    assert_eq!(changed(1, 0), Err(Malformed::Version));
    assert_eq!(changed(1, 2), Err(Malformed::Version));
    assert_eq!(changed(2, 0), Err(Malformed::Kind));
    assert_eq!(changed(2, 8), Err(Malformed::Kind));
    for mode in 5..8 {
        assert_eq!(changed(3, mode), Err(Malformed::Flags));
    }
    assert_eq!(changed(3, 0xF8), Ok(header(Kind::Data, 0xF8)));
}

#[test]
fn flags_are_refused_on_kinds_that_have_none_of_them() {
    for kind in KINDS {
        for flag in [flags::FRAGMENT, flags::STATUS_WANTED, flags::END] {
            let mut bytes = header(kind, 0).to_bytes();
            bytes[3] = flag;
            let probe_too = flag == flags::END && kind == Kind::Probe;
            let expected = if kind == Kind::Data || probe_too {
                Ok(header(kind, flag))
            } else {
                Err(Malformed::Flags)
            };
            assert_eq!(Header::parse(&bytes), expected, "{kind:?} {flag:#x}");
        }
    }
}

#[test]
fn the_mode_of_a_flow_stands_in_every_header() {
    let modes = [
        FlowMode::Lossy,
        FlowMode::LatestOnly,
        FlowMode::ReliableUnordered,
        FlowMode::ReliableOrdered,
        FlowMode::ReliableUntil,
    ];
    for mode in modes {
        assert_eq!(header(Kind::Status, mode as u8 | flags::CREDIT).mode(), mode);
    }
}

#[test]
fn a_refusal_is_no_larger_than_the_smallest_data() {
    for refusal in [Refusal::NoSuchMailbox, Refusal::NoRoom] {
        let mut body = Vec::new();
        refusal.write(&mut body);
        assert_eq!(body.len(), REFUSAL_BYTES);
        assert!(body.len() <= data::framed_bytes(0));
        assert_eq!(Refusal::read(&body), Ok(refusal));
    }
    assert_eq!(Refusal::read(&[]), Err(Malformed::Handshake));
    assert_eq!(Refusal::read(&[0]), Err(Malformed::Handshake));
    assert_eq!(Refusal::read(&[3]), Err(Malformed::Handshake));
}

#[test]
fn a_length_beyond_the_body_is_refused_and_not_believed() {
    assert_eq!(data::check(&[3, 1, 2], 1), Err(Malformed::Messages));
    assert_eq!(data::check(&[0xFF, 0xFF, 0xFF, 0xFF, 0x0F], 1), Err(Malformed::Messages));
    assert_eq!(data::check(&[0xFF, 0xFF, 0xFF, 0xFF, 0x1F], 1), Err(Malformed::Varint));
    assert_eq!(data::check(&[0x80], 1), Err(Malformed::Varint));
    assert_eq!(data::check(&[], u16::MAX), Err(Malformed::Varint));
    assert_eq!(data::check(&[0, 0, 9], 2), Ok(2));
}

#[test]
fn a_message_is_cut_evenly_and_not_into_too_many() {
    assert_eq!(Fragment::needed(10, 5 + 4), Some(3));
    assert_eq!(Fragment { index: 2, fragments: 3, total: 10 }.range(), 8..10);
    assert_eq!(Fragment::needed(100_000, 7 + 12), None, "more than a window of datagrams");
    assert_eq!(Fragment::needed(100, 5), None, "no room for anything but the head");
    // Three of four bytes would leave nothing for the fourth fragment.
    let empty_last = [3, 4, 9, 0, 0, 0, 0, 0];
    assert_eq!(Fragment::read(&empty_last, 0), Err(Malformed::Fragment));
}
