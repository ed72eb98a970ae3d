//! Input that no client sends on purpose: it costs its own connection and nobody else's.

use quelea_amqp_codec::frame::PROTOCOL_HEADER;

use crate::client::{Client, Gone, TRANSIENT};
use crate::server::{Server, TestDir};

fn frame(kind: u8, channel: u16, size: u32, payload: &[u8], end: u8) -> Vec<u8> {
    let mut frame = vec![kind];
    frame.extend_from_slice(&channel.to_be_bytes());
    frame.extend_from_slice(&size.to_be_bytes());
    frame.extend_from_slice(payload);
    frame.push(end);
    frame
}

#[test]
fn malformed_frames_close_their_own_connection_with_the_right_code() {
    let dir = TestDir::new();
    let server = Server::start(&dir);
    let mut witness = Client::connect(server.address);
    witness.declare("calm", false).unwrap();
    let huge_body_header = [&[0, 60, 0, 0][..], &(2u64 << 30).to_be_bytes(), &[0, 0]].concat();
    let cases: [(&str, Vec<u8>, u16); 7] = [
        ("a frame type that does not exist", frame(7, 1, 0, &[], 0xce), 501),
        ("a frame that does not end", frame(1, 1, 4, &[0, 60, 0, 10], 0xcd), 501),
        ("a frame larger than agreed", frame(1, 1, 1 << 31, &[], 0xce), 501),
        ("a method that does not exist", frame(1, 1, 4, &[0, 60, 0, 99], 0xce), 540),
        ("a method that ends early", frame(1, 1, 5, &[0, 50, 0, 10, 0], 0xce), 502),
        ("a header without its method", frame(2, 1, 14, &huge_body_header, 0xce), 505),
        ("a body without its header", frame(3, 1, 1, b"x", 0xce), 505),
    ];
    for (what, bytes, code) in cases {
        let mut client = Client::connect(server.address);
        client.write(&bytes).unwrap();
        let gone = client.until_gone();
        let Gone::Closed { code: told, text } = gone else { panic!("{what}: {gone:?}") };
        assert_eq!(told, code, "{what}: {text}");
        witness.publish("calm", TRANSIENT, what);
        assert_eq!(witness.get("calm").unwrap().unwrap(), what);
    }
}

#[test]
fn what_does_not_speak_amqp_gets_the_header_and_is_closed() {
    let dir = TestDir::new();
    let server = Server::start(&dir);
    for greeting in [&b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..], b"AMQP\x03\x01\x00\x00", &[0; 4096]]
    {
        let mut client = Client::raw(server.address).unwrap();
        client.write(greeting).unwrap();
        assert_eq!(client.read_to_end(), PROTOCOL_HEADER);
    }
}

#[test]
fn a_peer_that_vanishes_half_way_through_a_message_leaves_nothing_behind() {
    let dir = TestDir::new();
    let server = Server::start(&dir);
    let mut client = Client::connect(server.address);
    client.declare("calm", false).unwrap();
    let publish = [&[0, 60, 0, 40, 0, 0, 0, 4][..], b"calm", &[0]].concat();
    client.write(&frame(1, 1, publish.len() as u32, &publish, 0xce)).unwrap();
    client.write(&frame(2, 1, 14, &[0, 60, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0], 0xce)).unwrap();
    drop(client);
    server.until("the connection is gone", |core| core.counters().connections == 0);
    let mut witness = Client::connect(server.address);
    assert_eq!(witness.declare("calm", false).unwrap(), (0, 0));
}
