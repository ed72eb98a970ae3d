//! HELLO and the ATTACHes, and what is wrong with them.

use bytes::Bytes;
use quelea_elastic_proto::frame::{AttachListener, ErrorCode, Frame, Hello, Role, SlowPolicy};
use quelea_elastic_proto::limits::{PARTS_MAX, PREFIX_BYTES_MAX, VERSION};
use quelea_elastic_proto::{ClientId, Epoch, Fence, MessageSeq, Slot};

use crate::client::{Client, attach_producer, hello, start};
use crate::relay::{QUEUE, TestRelay};

fn refused(relay: &TestRelay, frame: &Frame) -> (ErrorCode, String, String) {
    let mut client = Client::connected(relay.address);
    client.send(frame);
    let error = client.error();
    assert!(error.fatal, "{error:?}");
    assert_eq!(client.try_next(), None, "the connection ends");
    (error.code, error.field, error.text)
}

#[test]
fn a_wrong_hello_is_answered_by_what_is_wrong() {
    let relay = TestRelay::with(|config| config.key = Bytes::from_static(b"secret"));
    let right =
        Hello { version: VERSION, role: Role::Client, name: "t".into(), key: "secret".into() };
    let version = Hello { version: 99, ..right.clone() };
    let (code, field, text) = refused(&relay, &Frame::Hello(version));
    assert_eq!((code, &*field), (ErrorCode::Version, "version"));
    assert!(text.contains("99") && text.contains(&VERSION.to_string()), "{text}");
    for key in ["", "secreT", "secret and more"] {
        let wrong = Hello { key: key.into(), ..right.clone() };
        let (code, field, text) = refused(&relay, &Frame::Hello(wrong));
        assert_eq!((code, &*field), (ErrorCode::Key, "key"), "{key:?}");
        assert!(!text.contains("secret"), "{text}");
    }
    let role = Hello { role: Role::Keeper, ..right.clone() };
    assert_eq!(refused(&relay, &Frame::Hello(role)).1, "role");
    let (code, ..) = refused(&relay, &attach_producer(1, 1));
    assert_eq!(code, ErrorCode::Order);
    let mut client = Client::connected(relay.address);
    client.send(&Frame::Hello(right));
    assert!(matches!(client.next(), Frame::Welcome(welcome) if welcome.version == VERSION));
}

#[test]
fn what_is_no_frame_ends_the_connection_with_a_reason() {
    let relay = TestRelay::start();
    for bytes in [
        b"GET / HTTP/1.1\r\nHost: relay\r\n\r\n".as_slice(),
        &[0xff; 64],
        b"\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f",
    ] {
        let mut client = Client::connected(relay.address);
        client.send_bytes(bytes);
        let error = client.error();
        assert!(error.fatal && !error.text.is_empty(), "{error:?}");
        assert_eq!(client.try_next(), None);
    }
    // Others do not feel it.
    relay.client().listen(1, &[""]);
}

#[test]
fn a_wrong_queue_or_prefix_or_policy_is_named() {
    let relay = TestRelay::start();
    let mut client = relay.client();
    let attach = AttachListener {
        queue: QUEUE.to_owned(),
        listener: ClientId(1),
        slow: None,
        prefixes: vec![Bytes::new()],
    };
    let other = AttachListener { queue: "others".to_owned(), ..attach.clone() };
    client.send(&Frame::AttachListener(other));
    let error = client.error();
    assert_eq!((error.code, &*error.field, error.fatal), (ErrorCode::Queue, "queue", false));
    assert!(error.text.contains("others") && error.text.contains(QUEUE), "{error:?}");
    let spill = AttachListener { slow: Some(SlowPolicy::Spill), ..attach.clone() };
    client.send(&Frame::AttachListener(spill));
    assert_eq!(client.error().field, "slow");
    client.send(&Frame::Subscribe(Bytes::from(vec![b'x'; PREFIX_BYTES_MAX])));
    assert_eq!(client.error().field, "listener");
    client.listen(1, &[""]);
    client.send(&Frame::AttachListener(attach));
    assert_eq!(client.error().code, ErrorCode::Order);
}

#[test]
fn too_many_parts_are_told_as_a_limit() {
    let relay = TestRelay::start();
    let mut client = relay.client();
    let slot = client.produce(9, 1, 0);
    let parts = [b"\x01\x00".repeat(PARTS_MAX), b"\x00\x00".to_vec()].concat();
    let header = quelea_elastic_proto::wire::data_header(slot, MessageSeq(0), parts.len());
    client.send_bytes(&[&header[..], &parts[..]].concat());
    let error = client.error();
    assert_eq!((error.code, &*error.field), (ErrorCode::Limit, "parts"), "{error:?}");
    assert!(error.text.contains("65") && error.text.contains("64"), "{error:?}");
}

#[test]
fn data_out_of_order_or_of_another_slot_ends_the_connection() {
    let relay = TestRelay::start();
    let mut listener = relay.client();
    listener.listen(1, &[""]);
    type Wrong = fn(&mut Client, Slot);
    let wrongs: [(Wrong, &str, &str); 5] = [
        (|client, slot| client.publish(slot, 8, &[b"t"]), "sequence", "8"),
        (|client, slot| client.publish(Slot(slot.0 + 1), 7, &[b"t"]), "slot", "none of this"),
        (
            |client, slot| {
                client.publish(slot, 7, &[b"t"]);
                client.publish(slot, 7, &[b"t"]);
            },
            "sequence",
            "7",
        ),
        (
            |client, slot| {
                let (sequence, parts) = (MessageSeq(7), Bytes::from_static(b"\x00\x09short"));
                let mut bytes =
                    quelea_elastic_proto::wire::data_header(slot, sequence, parts.len()).to_vec();
                bytes.extend_from_slice(&parts);
                client.send_bytes(&bytes);
            },
            "parts",
            "",
        ),
        (
            |client, slot| {
                client.send(&Frame::Fin { slot, next: MessageSeq(7) });
                client.publish(slot, 7, &[b"t"]);
            },
            "slot",
            "",
        ),
    ];
    for (at, (wrong, field, part)) in wrongs.into_iter().enumerate() {
        let mut client = relay.client();
        let slot = client.produce(100 + at as u128, 1, 7);
        wrong(&mut client, slot);
        let error = client.error();
        assert_eq!(error.field, field, "{error:?}");
        assert!(error.fatal && error.text.contains(part), "{error:?}");
        assert_eq!(client.try_next(), None);
    }
    // Each of them is over for the listener too.
    let mut over = 0;
    while over < 5 {
        if let Frame::Fin { .. } = listener.next() {
            over += 1;
        }
    }
}

#[test]
fn an_old_epoch_is_refused_and_a_high_fence_shuts_out_nobody() {
    let relay = TestRelay::start();
    let mut listener = relay.client();
    listener.listen(1, &[""]);
    let (mut old, mut new) = (relay.client(), relay.client());
    let slot = old.produce(9, 5, 0);
    assert_eq!(listener.started().slot, slot);
    old.publish(slot, 0, &[b"t"]);
    assert_eq!(listener.message().sequence, 0);
    new.send(&attach_producer(9, 4));
    let error = new.error();
    assert_eq!((error.code, &*error.field, error.fatal), (ErrorCode::Fenced, "epoch", false));
    // A later epoch takes its place, although the old connection is still there.
    let (next, _) = new.attach(9, 6);
    assert_eq!(listener.next(), Frame::Fin { slot, next: MessageSeq(1) });
    new.send(&start(next, 9, 6, 1));
    assert_eq!(listener.started().slot, next);
    let fenced = |fence| {
        let (queue, producer, epoch) = (QUEUE.to_owned(), ClientId(10), Epoch(1));
        Frame::AttachProducer { queue, producer, fence: Fence(fence), epoch }
    };
    // A fence is a directory's to raise: no client shuts out another one by it.
    for fence in [7, u64::MAX, 6] {
        new.send(&fenced(fence));
        assert!(matches!(new.next_but_flow(), Frame::Attached { .. }), "fence {fence}");
    }
}

#[test]
fn one_connection_too_many_is_told_so() {
    let relay = TestRelay::with(|config| config.connections_max = 2);
    let _first = relay.client();
    let second = relay.client();
    let mut third = Client::connected(relay.address);
    let error = third.error();
    assert_eq!((error.code, &*error.field), (ErrorCode::Limit, "connections"));
    assert!(error.text.contains('2'), "{error:?}");
    drop(second);
    // The relay sees the end of the second some time.
    let place = (0..1_000).find_map(|_| {
        let mut client = Client::connected(relay.address);
        client.send(&hello());
        matches!(client.try_next(), Some(Frame::Welcome(_))).then_some(client)
    });
    assert!(place.is_some(), "its place is free again");
}
