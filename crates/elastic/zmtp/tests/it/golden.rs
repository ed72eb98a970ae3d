//! The bytes themselves. Those of CURVE are as a real libzmq takes and gives them (tests/elastic_zmtp);
//! here they are held fast.

use quelea_elastic_zmtp::{
    AllowedKeys, Connection, Heartbeat, Security, Settings, SocketType, ZmtpTime, frame_parts,
};

use crate::pair::{ConnectionPair, Seen, curve_client, curve_server, settings, take, user, users};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_greeting() {
    let mut connection = Connection::new(settings(SocketType::Xpub), users(), ZmtpTime(0));
    let expected =
        ["ff00000000000000007f", "0301", &hex(b"PLAIN"), &"00".repeat(15), "01", &"00".repeat(31)];
    assert_eq!(hex(&connection.take_output()), expected.concat());
}

#[test]
fn a_null_handshake() {
    let mut pair = ConnectionPair::new(Security::Null, Security::Null);
    let greeting = pair.b.take_output();
    take(&mut pair.a, ZmtpTime(0), &greeting, &mut Seen::default());
    let written = pair.a.take_output();
    assert_eq!(
        written[64..],
        *b"\x04\x27\x05READY\x0bSocket-Type\x00\x00\x00\x04XSUB\x08Identity\x00\x00\x00\x00"
    );
}

#[test]
fn a_plain_handshake() {
    let mut pair = ConnectionPair::new(users(), user("ada", "lovelace"));
    let (mut client, mut server) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        let (to_server, to_client) = (pair.b.take_output(), pair.a.take_output());
        client.extend_from_slice(&to_server);
        server.extend_from_slice(&to_client);
        take(&mut pair.a, ZmtpTime(0), &to_server, &mut Seen::default());
        take(&mut pair.b, ZmtpTime(0), &to_client, &mut Seen::default());
    }
    let metadata = |kind: &str| {
        format!("\x0bSocket-Type\0\0\0{}{kind}\x08Identity\0\0\0\0", char::from(kind.len() as u8))
    };
    let initiate = format!("\x08INITIATE{}", metadata("PUB"));
    let ready = format!("\x05READY{}", metadata("XSUB"));
    let frame = |body: &str| format!("\x04{}{body}", char::from(body.len() as u8));
    assert_eq!(
        client[64..],
        *(frame("\x05HELLO\x03ada\x08lovelace") + &frame(&initiate)).as_bytes()
    );
    assert_eq!(server[64..], *(frame("\x07WELCOME") + &frame(&ready)).as_bytes());
}

/// All bytes of both sides with given keys and randomness, and a message each way.
#[test]
fn a_curve_connection() {
    let mut pair = ConnectionPair::new(curve_server(AllowedKeys::All), curve_client(2, 1));
    let mut transcript = String::new();
    for _ in 0..4 {
        carry("client", &mut pair.b, &mut pair.a, &mut transcript);
        carry("server", &mut pair.a, &mut pair.b, &mut transcript);
    }
    pair.a.subscribe(b"t");
    transcript += &format!("server subscribes {}\n", hex(&pair.a.take_output()));
    let message = pair.b.seal(&frame_parts(&[b"topic", b"body"])).unwrap();
    transcript += &format!("client sends {}\n", hex(&message));
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/curve.txt");
    if std::env::var_os("QUELEA_BLESS").is_some() {
        std::fs::write(path, &transcript).unwrap();
    }
    assert_eq!(transcript, std::fs::read_to_string(path).unwrap());
}

fn carry(name: &str, from: &mut Connection, to: &mut Connection, transcript: &mut String) {
    let bytes = from.take_output();
    for line in bytes.chunks(32) {
        *transcript += &format!("{name} {}\n", hex(line));
    }
    take(to, ZmtpTime(0), &bytes, &mut Seen::default());
}

#[test]
fn a_ping_says_for_how_long_we_may_be_silent() {
    let heartbeat = Heartbeat { interval_ms: 1_000, timeout_ms: 0, ttl_ms: 2_550 };
    let ours = Settings { heartbeat, ..settings(SocketType::Xsub) };
    let mut pair =
        ConnectionPair::of(ours, Security::Null, settings(SocketType::Pub), Security::Null);
    pair.run();
    pair.a.handle_timeout(ZmtpTime(1_000)).unwrap();
    // In tenths of a second, rounded up.
    assert_eq!(pair.a.take_output(), &b"\x04\x07\x04PING\x00\x1a"[..]);
}
