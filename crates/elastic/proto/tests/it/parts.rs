//! Messages as ZMTP frames.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use quelea_elastic_proto::limits::{MESSAGE_BYTES_MAX, PARTS_MAX};
use quelea_elastic_proto::parts::{self, Parts, PartsError};

proptest! {
    #[test]
    fn parts_come_back_as_they_were(bodies in vec(vec(any::<u8>(), 0..600), 1..PARTS_MAX)) {
        let message = parts::encode(&bodies).unwrap();
        prop_assert_eq!(message.len(), parts::message_bytes(&bodies));
        prop_assert_eq!(parts::check(&message), Ok(bodies.len()));
        prop_assert_eq!(parts::first(&message).unwrap(), &bodies[0][..]);
        prop_assert!(Parts::new(&message).eq(bodies.iter().map(Vec::as_slice)));
        prop_assert!(parts::slices(&message).eq(bodies));
    }

    #[test]
    fn whatever_the_bytes_are_nothing_is_read_beyond_them(bytes in vec(0_u8..6, 0..60)) {
        let message = Bytes::from(bytes);
        let checked = parts::check(&message);
        let read = Parts::new(&message).count();
        prop_assert!(read <= message.len());
        if let Ok(count) = checked {
            prop_assert_eq!(read, count);
            prop_assert!(parts::first(&message).is_ok());
        }
    }
}

#[test]
fn a_part_has_the_form_of_zmtp() {
    let message = parts::encode(&[&b"a"[..], &[7; 256]]).unwrap();
    assert_eq!(message[..3], [0x01, 1, b'a'], "MORE, a length in one byte");
    assert_eq!(message[3..12], [0x02, 0, 0, 0, 0, 0, 0, 1, 0], "LONG, a length in eight");
}

#[test]
fn a_message_without_an_end_is_refused() {
    assert_eq!(parts::check(&[]), Err(PartsError::Short { needed: 2, left: 0 }));
    assert_eq!(parts::check(&[1, 0]), Err(PartsError::Short { needed: 2, left: 0 }));
    assert_eq!(parts::check(&[0, 3, 1]), Err(PartsError::Short { needed: 3, left: 1 }));
    assert_eq!(parts::check(&[0, 0, 0]), Err(PartsError::Trailing { bytes: 1 }));
    assert_eq!(parts::check(&[4, 0]), Err(PartsError::Flags { value: 4 }));
    let claim = [0x02, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
    assert!(matches!(parts::check(&claim), Err(PartsError::Short { left: 0, .. })));
}

#[test]
fn a_message_keeps_to_the_limits_of_its_parts() {
    let none: [&[u8]; 0] = [];
    assert_eq!(parts::encode(&none), Err(PartsError::None));
    let many = vec![[0_u8; 1]; PARTS_MAX + 1];
    assert_eq!(parts::encode(&many), Err(PartsError::TooMany { value: PARTS_MAX + 1 }));
    let large = [vec![0; MESSAGE_BYTES_MAX - 8]];
    assert_eq!(parts::encode(&large), Err(PartsError::TooLarge { value: MESSAGE_BYTES_MAX + 1 }));
    let mut bytes = Vec::new();
    (0..=PARTS_MAX).for_each(|_| bytes.extend([1, 0]));
    assert_eq!(parts::check(&bytes), Err(PartsError::TooMany { value: PARTS_MAX + 1 }));
    let largest = [vec![0; MESSAGE_BYTES_MAX - 9]];
    assert_eq!(parts::encode(&largest).unwrap().len(), MESSAGE_BYTES_MAX);
}
