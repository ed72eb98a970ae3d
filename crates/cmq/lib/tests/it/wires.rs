//! The same over other datagrams: large messages, sealed ones, the original library's, MessagePack's.

use quelea_cmq::{
    Config, DestinationOptions, Endpoint, Key, MailboxOptions, Mode, PreSharedKey, Wire,
};

use crate::ends::*;

fn open(config: Config) -> Endpoint {
    Endpoint::bind("127.0.0.1:0", config).unwrap()
}

#[test]
fn a_message_of_a_megabyte_comes_in_one_piece() {
    let (a, b) = (endpoint(), endpoint());
    let queue = queue(&b, 0);
    let message: Vec<u8> = (0..1 << 20_u32).map(|n| (n / 7) as u8).collect();
    let dest = dest(&a, &b, 0, Mode::ReliableOrdered);
    dest.push(&message).unwrap();
    dest.flush();
    assert_eq!(queue.pop_timeout(LONG).unwrap().bytes, message);
}

#[test]
fn who_has_the_key_is_heard_and_nobody_else() {
    let keyed =
        |byte| Config { pre_shared_key: Some(PreSharedKey([byte; 32])), ..Config::default() };
    let (friend, stranger, b) = (open(keyed(1)), open(keyed(2)), open(keyed(1)));
    let queue = queue(&b, 0);
    for (sender, message) in [(&stranger, b"let me in"), (&friend, b"it is I  ")] {
        let dest = dest(sender, &b, 0, Mode::ReliableOrdered);
        dest.push(message).unwrap();
        dest.flush();
    }
    assert_eq!(&queue.pop_timeout(LONG).unwrap().bytes[..], b"it is I  ");
    assert!(queue.try_pop().is_none());
}

#[test]
fn the_originals_datagrams_carry_strings() {
    let (a, b) = (open(Config::classic()), open(Config::classic()));
    let queue = b.queue(0, MailboxOptions::default()).unwrap();
    let options = DestinationOptions { credit: false, ..DestinationOptions::default() };
    let dest = a.dest(Key::new(b.local_addr(), 0), options).unwrap();
    dest.push("grüße".as_bytes()).unwrap();
    dest.flush();
    assert_eq!(queue.pop_timeout(LONG).unwrap().bytes, "grüße".as_bytes());
    assert_eq!(Config::classic().wire, Wire::ClassicString);
}

#[cfg(feature = "msgpack")]
#[test]
fn messagepack_and_raw_bytes_carry_values_too() {
    use std::time::Duration;

    use quelea_cmq::codec::MsgPack;
    use quelea_cmq::{Cmq, Raw};

    let socket = || std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let timeout = Duration::from_millis(1);
    let one = Cmq::<Vec<String>, MsgPack>::new_rq(socket(), 0, 512, timeout).unwrap();
    let value = vec!["a".to_owned(), "b".to_owned()];
    one.cw_push(Key::new(one.endpoint().local_addr(), 0), &value).unwrap();
    assert_eq!(one.cw_pop_timeout(LONG), Some(value));
    let raw = Cmq::<Vec<u8>, Raw>::new_rq(socket(), 0, 512, timeout).unwrap();
    raw.cw_push(Key::new(raw.endpoint().local_addr(), 0), &vec![1, 2]).unwrap();
    assert_eq!(raw.cw_pop_timeout(LONG), Some(vec![1, 2]));
}
