//! What the fuzzer calls: any peer, cut in any way.

use std::sync::Arc;

use bytes::Bytes;

use crate::limits::{MESSAGE_BYTES_MAX, PARTS_MAX};
use crate::{
    AllowedKeys, Connection, Entropy, Error, Event, Heartbeat, Parts, SecretKey, Security,
    Settings, SocketType, Users, ZmtpTime,
};

/// Byte 0 chooses mechanism, side, kind of socket and whether a genuine peer makes the handshake first;
/// byte 1 how what follows is cut. Whatever comes, nothing panics, what is given out keeps the limits,
/// and the cuts make no difference.
pub fn fuzz_connection(data: &[u8]) {
    let Some((&[kind, cut], bytes)) = data.split_first_chunk() else { return };
    let whole = run(kind, bytes, bytes.len().max(1));
    let cut = run(kind, bytes, usize::from(cut).max(1));
    assert_eq!(whole, cut, "the same bytes in other pieces mean something else");
}

type Run = (Vec<Event>, Option<Error>, Bytes);

fn run(kind: u8, bytes: &[u8], cut: usize) -> Run {
    let (mut ours, mut theirs) = pair(kind);
    let mut events = Vec::new();
    let mut written = Vec::new();
    if kind & 0x40 != 0 {
        assert!(
            shake_hands(&mut ours, &mut theirs, &mut events),
            "genuine peers understand each other"
        );
    }
    let sealed =
        if kind & 0xc0 == 0xc0 { theirs.seal(&Bytes::copy_from_slice(bytes)) } else { None };
    let bytes = sealed.as_deref().unwrap_or(bytes);
    for piece in bytes.chunks(cut) {
        let now = ZmtpTime(1);
        ours.receive(now, piece);
        let end = drain(&mut ours, now, &mut events);
        written.extend_from_slice(&ours.take_output());
        if end.is_some() {
            return (events, end, written.into());
        }
    }
    let _ = ours.handle_timeout(ZmtpTime(100_000));
    (events, None, written.into())
}

/// Takes all events, and checks what they hold.
fn drain(connection: &mut Connection, now: ZmtpTime, events: &mut Vec<Event>) -> Option<Error> {
    loop {
        match connection.poll_event(now) {
            Ok(None) => return None,
            Ok(Some(event)) => {
                check(&event);
                events.push(event);
            }
            Err(error) => return Some(error),
        }
    }
}

fn check(event: &Event) {
    let Event::Message(message) = event else { return };
    let parts: Vec<Bytes> = Parts::of(message.clone()).collect();
    assert!((1..=PARTS_MAX).contains(&parts.len()) && message.len() <= MESSAGE_BYTES_MAX);
    let bytes: usize = parts.iter().map(Bytes::len).sum();
    assert!(message.len() - bytes >= 2 * parts.len(), "each part is there, behind its header");
}

/// Runs both handshakes. Returns whether they ended well; false if either end gives up.
fn shake_hands(ours: &mut Connection, theirs: &mut Connection, events: &mut Vec<Event>) -> bool {
    for _ in 0..4 {
        if !hand_over(ours, theirs, events) || !hand_over(theirs, ours, events) {
            return false;
        }
    }
    events.iter().filter(|event| matches!(event, Event::Ready(_))).count() == 2
}

/// Hands what one end has written to the other. Returns false if that one gives up.
fn hand_over(from: &mut Connection, to: &mut Connection, events: &mut Vec<Event>) -> bool {
    to.receive(ZmtpTime(0), &from.take_output());
    drain(to, ZmtpTime(0), events).is_none()
}

fn pair(kind: u8) -> (Connection, Connection) {
    let key = |byte| SecretKey::from_bytes([byte; 32]);
    let entropy = |byte| Entropy::from_bytes(&[byte; Entropy::BYTES]);
    let mut users = Users::default();
    assert!(users.insert("u", "p"), "both are short");
    let (server, client) = match kind & 0x03 {
        0 | 1 => (Security::Null, Security::Null),
        2 => (
            Security::PlainServer(Arc::new(users)),
            Security::PlainClient { user: "u".to_owned(), password: "p".to_owned() },
        ),
        _ => (
            Security::CurveServer {
                secret: key(1),
                clients: Arc::new(AllowedKeys::All),
                entropy: entropy(3),
            },
            Security::CurveClient { secret: key(2), server: key(1).public(), entropy: entropy(4) },
        ),
    };
    let (ours, theirs) = if kind & 0x04 == 0 { (server, client) } else { (client, server) };
    let types = if kind & 0x08 == 0 {
        (SocketType::Xsub, SocketType::Pub)
    } else {
        (SocketType::Xpub, SocketType::Sub)
    };
    let heartbeat = Heartbeat { interval_ms: 1_000, timeout_ms: 0, ttl_ms: 3_000 };
    let settings = |socket_type| Settings { socket_type, identity: Bytes::new(), heartbeat };
    (
        Connection::new(settings(types.0), ours, ZmtpTime(0)),
        Connection::new(settings(types.1), theirs, ZmtpTime(0)),
    )
}
