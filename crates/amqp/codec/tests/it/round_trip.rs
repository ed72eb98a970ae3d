//! What is written can be read, and any input is read or refused.

use bytes::BytesMut;
use proptest::prelude::*;
use quelea_amqp_codec::{DecodeError, Method, fuzzing};

fn encoded(method: &Method) -> BytesMut {
    let mut out = BytesMut::new();
    method.encode(&mut out);
    out
}

proptest! {
    #[test]
    fn every_method_survives_the_wire(data in proptest::collection::vec(any::<u8>(), 0..4_000)) {
        for method in fuzzing::methods_from(&data) {
            let bytes = encoded(&method).freeze();
            prop_assert_eq!(&bytes[..2], &method.class_id().to_be_bytes()[..]);
            prop_assert_eq!(&bytes[2..4], &method.method_id().to_be_bytes()[..]);
            prop_assert_eq!(Method::decode(&bytes), Ok(method));
        }
    }

    #[test]
    fn every_method_that_is_cut_short_is_refused(data: Vec<u8>, cut in 1usize..50) {
        for method in fuzzing::methods_from(&data) {
            let mut bytes = encoded(&method);
            bytes.truncate(bytes.len().saturating_sub(cut));
            let decoded = Method::decode(&bytes.freeze());
            prop_assert!(
                matches!(decoded, Err(DecodeError::Truncated { .. })),
                "{}: {decoded:?}", method.name()
            );
        }
    }

    #[test]
    fn any_bytes_are_a_method_or_refused(
        class in prop::sample::select(vec![10u16, 20, 30, 40, 50, 60, 85, 90]),
        method in 0u16..130,
        rest: Vec<u8>,
    ) {
        let head = [class.to_be_bytes(), method.to_be_bytes()].concat();
        fuzzing::fuzz_method(&[head, rest].concat());
    }

    #[test]
    fn any_bytes_are_a_table_or_refused(bytes: Vec<u8>) {
        fuzzing::fuzz_table(&bytes);
    }

    #[test]
    fn any_bytes_are_frames_or_refused(bytes: Vec<u8>) {
        fuzzing::fuzz_frames(&bytes);
    }

    #[test]
    fn any_bytes_leave_a_connection_in_order(
        mode: u8,
        frames in proptest::collection::vec(
            (prop::sample::select(vec![1u8, 1, 1, 2, 3, 8]), 0u16..3, 0usize..70, any::<Vec<u8>>()),
            0..40,
        ),
    ) {
        // Frames of the right shape around methods of the right shape reach further than noise.
        let mut data = vec![mode];
        for (kind, channel, pick, bytes) in frames {
            let methods = fuzzing::methods_from(&bytes);
            let payload = match kind {
                1 if pick < methods.len() => encoded(&methods[pick]).to_vec(),
                1 => vec![0, 20, 0, 10, 0],
                2 => [&[0, 60, 0, 0, 0, 0, 0, 0, 0, 0, 0, pick as u8 % 4, 0, 0][..]].concat(),
                _ => bytes.into_iter().take(pick % 4).collect(),
            };
            data.extend_from_slice(&crate::conversation::raw_frame(kind, channel, &payload));
        }
        fuzzing::fuzz_connection(&data);
    }
}
