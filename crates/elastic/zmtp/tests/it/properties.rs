//! What holds for all messages and all cuts.

use bytes::Bytes;
use proptest::prelude::*;
use quelea_elastic_zmtp::{Event, Parts, PublicKey, SecretKey, ZmtpTime, frame_parts, fuzzing};

use crate::pair::{ConnectionPair, Seen, mechanisms, take};

fn parts() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let part = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..40),
        prop::collection::vec(any::<u8>(), 250..260),
        prop::collection::vec(any::<u8>(), 0..3_000),
    ];
    prop::collection::vec(part, 1..6)
}

fn framed(parts: &[Vec<u8>]) -> Bytes {
    frame_parts(&parts.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn messages_survive_any_mechanism_and_any_cuts(
        which in 0usize..5,
        messages in prop::collection::vec(parts(), 1..6),
        cuts in prop::collection::vec(1usize..700, 1..20),
    ) {
        let (a, b) = mechanisms().swap_remove(which);
        let mut pair = ConnectionPair::ready(a, b);
        let mut wire = Vec::new();
        for message in &messages {
            wire.extend_from_slice(&pair.b.seal(&framed(message)).expect("ready"));
        }
        let mut seen = Seen::default();
        let (mut rest, mut cuts) = (&wire[..], cuts.iter().cycle());
        while !rest.is_empty() {
            let cut = (*cuts.next().expect("a cycle")).min(rest.len());
            take(&mut pair.a, ZmtpTime(0), &rest[..cut], &mut seen);
            rest = &rest[cut..];
        }
        prop_assert_eq!(seen.error, None);
        let expected: Vec<Event> = messages.iter().map(|message| Event::Message(framed(message))).collect();
        prop_assert_eq!(seen.events, expected);
    }

    #[test]
    fn the_parts_of_a_framed_message_are_what_was_framed(parts in parts()) {
        let found: Vec<Bytes> = Parts::of(framed(&parts)).collect();
        prop_assert_eq!(found, parts);
    }

    #[test]
    fn no_bytes_do_harm(data in prop::collection::vec(any::<u8>(), 0..300)) {
        fuzzing::fuzz_connection(&data);
    }

    /// Frames of the right form, after a genuine handshake, with any content.
    #[test]
    fn no_frames_do_harm(kind in 0x40u8.., cut in any::<u8>(), frames in prop::collection::vec(frame(), 0..12)) {
        fuzzing::fuzz_connection(&[vec![kind, cut], frames.concat()].concat());
    }

    #[test]
    fn keys_survive_their_text_form(bytes in any::<[u8; 32]>()) {
        let key = PublicKey(bytes);
        prop_assert_eq!(key.to_string().parse(), Ok(key));
        let secret = SecretKey::from_bytes(bytes);
        let again: SecretKey = secret.to_z85().parse().expect("its own text");
        prop_assert_eq!(again.public(), secret.public());
    }
}

fn frame() -> impl Strategy<Value = Vec<u8>> {
    let names = prop::sample::select(vec![
        &b"\x04PING"[..],
        b"\x04PONG",
        b"\x09SUBSCRIBE",
        b"\x06CANCEL",
        b"\x05ERROR",
        b"\x05READY",
        b"\x07MESSAGE",
        b"\x01\x00",
    ]);
    (0u8..8, names, prop::collection::vec(any::<u8>(), 0..30)).prop_map(|(flags, name, rest)| {
        let body = if flags & 4 != 0 { [name, &rest[..]].concat() } else { rest };
        let length = body.len() as u64;
        let head = if flags & 2 != 0 {
            [&[flags][..], &length.to_be_bytes()].concat()
        } else {
            vec![flags, length as u8]
        };
        [head, body].concat()
    })
}
