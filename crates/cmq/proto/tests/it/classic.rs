//! The original library's datagrams. The golden ones were made by hand from its format: there is no
//! Haskell in this project.

use proptest::collection::vec;
use proptest::prelude::*;
use quelea_cmq_proto::classic::{self, Element, LIST_HEAD_BYTES, Messages, NotText};
use quelea_cmq_proto::wire::{Malformed, data};

/// `cwPush` of "seq 10", "" and "grün €𝄞" as `String`s, `encode ["seq 10", "", "grün €𝄞"]`.
const STRINGS: &[u8] = &[
    0, 0, 0, 0, 0, 0, 0, 3, // three elements
    0, 0, 0, 0, 0, 0, 0, 6, // six characters
    0x73, 0x65, 0x71, 0x20, 0x31, 0x30, // s e q space 1 0
    0, 0, 0, 0, 0, 0, 0, 0, // no character
    0, 0, 0, 0, 0, 0, 0, 7, // seven characters, in 13 bytes
    0x67, 0x72, // g r
    0xC3, 0xBC, // ü, U+00FC: 110 00011, 10 111100
    0x6E, 0x20, // n space
    0xE2, 0x82, 0xAC, // €, U+20AC: 1110 0010, 10 000010, 10 101100
    0xF0, 0x9D, 0x84, 0x9E, // 𝄞, U+1D11E: 11110 000, 10 011101, 10 000100, 10 011110
];

/// `encode [pack [0, 255, 127], pack []]` of strict `ByteString`s.
const BYTE_STRINGS: &[u8] = &[
    0, 0, 0, 0, 0, 0, 0, 2, // two elements
    0, 0, 0, 0, 0, 0, 0, 3, // three bytes
    0x00, 0xFF, 0x7F, // as they are, UTF-8 or not
    0, 0, 0, 0, 0, 0, 0, 0, // no byte
];

fn encode(messages: &[impl AsRef<[u8]>], element: Element) -> Result<Vec<u8>, NotText> {
    let mut list = Vec::new();
    classic::begin(&mut list);
    for message in messages {
        classic::write_message(&mut list, element, message.as_ref())?;
    }
    classic::write_count(&mut list, messages.len() as u64);
    Ok(list)
}

fn decode(datagram: &[u8], element: Element) -> Result<Vec<&[u8]>, Malformed> {
    Messages::new(datagram, element)?.collect()
}

#[test]
fn a_list_of_strings_is_the_originals_byte_for_byte() {
    let messages = ["seq 10", "", "grün €𝄞"];
    assert_eq!(encode(&messages, Element::Text).unwrap(), STRINGS);
    let found = decode(STRINGS, Element::Text).unwrap();
    assert_eq!(found, messages.map(str::as_bytes));
}

#[test]
fn a_list_of_byte_strings_is_the_originals_byte_for_byte() {
    let messages: [&[u8]; 2] = [&[0, 255, 127], &[]];
    assert_eq!(encode(&messages, Element::Bytes).unwrap(), BYTE_STRINGS);
    assert_eq!(decode(BYTE_STRINGS, Element::Bytes).unwrap(), messages);
}

#[test]
fn an_empty_list_is_eight_zeros() {
    assert_eq!(encode(&[""; 0], Element::Text).unwrap(), [0; 8]);
    assert!(decode(&[0; 8], Element::Bytes).unwrap().is_empty());
}

#[test]
fn forty_one_messages_of_four_bytes_fill_the_papers_512_bytes() {
    let mut list = LIST_HEAD_BYTES;
    let mut messages = 0;
    while messages == 0 || classic::fits(list, 4, 512) {
        list += classic::framed_bytes(4);
        messages += 1;
    }
    assert_eq!((messages, list), (41, 500));
    assert_eq!(encode(&["1234"; 41], Element::Text).unwrap().len(), 500);
}

#[test]
fn a_list_stays_below_qthresh_and_never_reaches_it() {
    assert!(classic::fits(8 + 12, 4, 33));
    assert!(!classic::fits(8 + 12, 4, 32), "the original sends the old list at l = qthresh");
}

#[test]
fn no_list_grows_beyond_what_the_original_takes() {
    assert!(classic::fits(LIST_HEAD_BYTES, classic::MESSAGE_BYTES_MAX, 65_507));
    assert!(!classic::fits(LIST_HEAD_BYTES, classic::MESSAGE_BYTES_MAX + 1, 65_507));
}

#[test]
fn a_message_that_is_no_text_leaves_the_list_unchanged() {
    let mut list = Vec::new();
    classic::begin(&mut list);
    classic::write_message(&mut list, Element::Text, b"good").unwrap();
    let before = list.clone();
    assert_eq!(classic::write_message(&mut list, Element::Text, &[0xFF]), Err(NotText));
    assert_eq!(list, before);
    classic::write_message(&mut list, Element::Bytes, &[0xFF]).unwrap();
}

#[test]
fn what_the_original_died_of_is_an_error() {
    let huge = [0xFF; 24];
    let one_of = |length: u64, bytes: &[u8]| {
        [&1_u64.to_be_bytes()[..], &length.to_be_bytes()[..], bytes].concat()
    };
    let cases: [(&str, Vec<u8>); 9] = [
        ("nothing", vec![]),
        ("half a count", vec![0; 7]),
        ("a count of 2^64 - 1", huge.to_vec()),
        ("a length of 2^64 - 1", one_of(u64::MAX, b"abc")),
        ("one more than is there", one_of(4, b"abc")),
        ("a character that is cut off", one_of(1, &[0xE2, 0x82])),
        ("a byte that begins no character", one_of(1, &[0x80])),
        ("a lone surrogate, which Haskell's String can hold", one_of(1, &[0xED, 0xA0, 0x80])),
        ("a character in more bytes than it needs", one_of(1, &[0xC0, 0x80])),
    ];
    for (what, datagram) in cases {
        assert_eq!(decode(&datagram, Element::Text), Err(Malformed::Classic), "{what}");
        let mut body = b"before".to_vec();
        assert!(classic::reframe(&datagram, Element::Text, &mut body).is_err(), "{what}");
        assert_eq!(body, b"before", "{what}");
    }
    assert_eq!(decode(&one_of(4, b"abc"), Element::Bytes), Err(Malformed::Classic));
    assert_eq!(decode(&one_of(u64::MAX, b"abc"), Element::Bytes), Err(Malformed::Classic));
    // A truncated datagram, as the original's `recvFrom 512` made of every larger one.
    assert_eq!(decode(&STRINGS[..STRINGS.len() - 1], Element::Text), Err(Malformed::Classic));
}

#[test]
fn bytes_behind_the_list_are_ignored_as_the_original_does() {
    let datagram = [BYTE_STRINGS, b"behind"].concat();
    assert_eq!(decode(&datagram, Element::Bytes), decode(BYTE_STRINGS, Element::Bytes));
}

proptest! {
    #[test]
    fn the_encoded_length_is_known_without_encoding(messages in vec(".{0,40}", 0..30)) {
        let mut bytes = LIST_HEAD_BYTES;
        for message in &messages {
            bytes += classic::framed_bytes(message.len());
        }
        for element in [Element::Text, Element::Bytes] {
            let list = encode(&messages, element).unwrap();
            prop_assert_eq!(list.len(), bytes);
            let found = decode(&list, element).unwrap();
            prop_assert!(found.iter().eq(messages.iter().map(String::as_bytes).collect::<Vec<_>>().iter()));
        }
    }

    #[test]
    fn messages_are_delivered_as_those_of_a_data_are(messages in vec(vec(any::<u8>(), 0..200), 0..30)) {
        let list = encode(&messages, Element::Bytes).unwrap();
        let mut body = Vec::new();
        let count = classic::reframe(&list, Element::Bytes, &mut body).unwrap();
        prop_assert_eq!(data::check(&body, count as u16), Ok(body.len()));
        let found: Vec<&[u8]> = data::Messages::new(&body, count).collect();
        prop_assert_eq!(found, messages);
    }

    #[test]
    fn any_bytes_decode_to_what_encodes_to_them_or_are_refused(
        head in 0_u8..6,
        elements in vec((0_u8..9, vec(any::<u8>(), 0..9)), 0..6),
    ) {
        let mut datagram = vec![0, 0, 0, 0, 0, 0, 0, head];
        for (length, bytes) in elements {
            datagram.extend([0, 0, 0, 0, 0, 0, 0, length]);
            datagram.extend(bytes);
        }
        for element in [Element::Text, Element::Bytes] {
            if let Ok(messages) = decode(&datagram, element) {
                let again = encode(&messages, element).unwrap();
                prop_assert!(datagram.starts_with(&again));
            }
        }
    }
}
