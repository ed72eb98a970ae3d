//! Our codec against that of the crate `amq-protocol`, in both directions.

use amq_protocol::frame::{AMQPFrame, WriteContext, gen_frame, parse_frame};
use bytes::{Bytes, BytesMut};
use proptest::prelude::*;
use quelea_amqp_codec::{FrameKind, Method, Output, fuzzing};
use quelea_model::Properties;

use crate::conversation::{frames, method_of};

fn theirs(bytes: &[u8]) -> AMQPFrame {
    let (rest, frame) = parse_frame(bytes).expect("they read what we wrote");
    assert_eq!(rest.len(), 0);
    frame
}

fn written_by_them(frame: &AMQPFrame) -> Bytes {
    let context = WriteContext::from(Vec::new());
    let (bytes, _) = gen_frame(frame)(context).expect("they write what they read").into_inner();
    Bytes::from(bytes)
}

fn written_by_us(channel: u16, method: &Method) -> Bytes {
    let mut output = Output::new();
    output.method(channel, method);
    output.to_bytes()
}

proptest! {
    /// Ours → theirs → ours → theirs: they understand the same before and after. They sort the
    /// entries of tables, so that bytes may differ.
    #[test]
    fn both_understand_every_method_alike(
        channel in 1u16..,
        data in proptest::collection::vec(any::<u8>(), 0..4_000),
    ) {
        for method in fuzzing::methods_from(&data) {
            let first = theirs(&written_by_us(channel, &method));
            prop_assert!(matches!(&first, AMQPFrame::Method(on, _) if *on == channel));
            let (on, read) = method_of(frames(written_by_them(&first)).remove(0));
            prop_assert_eq!(on, channel);
            prop_assert_eq!(read.name(), method.name());
            prop_assert_eq!(theirs(&written_by_us(channel, &read)), first, "{}", method.name());
        }
    }

    #[test]
    fn both_understand_content_alike(
        content_type in proptest::option::of("[a-z/]{0,20}"),
        delivery_mode: Option<u8>,
        priority: Option<u8>,
        timestamp: Option<u64>,
        app_id in proptest::option::of("[a-z]{0,20}"),
        body in proptest::collection::vec(any::<u8>(), 1..100),
    ) {
        let properties = Properties {
            content_type: content_type.map(String::into_boxed_str),
            delivery_mode,
            priority,
            timestamp,
            app_id: app_id.map(String::into_boxed_str),
            ..Properties::default()
        };
        let wire = properties.to_bytes();
        let body = Bytes::from(body);
        let mut output = Output::new();
        output.publish(3, "e", "k", true, &wire, body.clone(), 4_096);
        let mut kinds = Vec::new();
        for frame in frames(output.to_bytes()) {
            let raw = crate::conversation::raw_frame(frame.kind as u8, frame.channel, &frame.payload);
            let parsed = theirs(&raw);
            match (&frame.kind, &parsed) {
                (FrameKind::Header, AMQPFrame::Header(3, header)) => {
                    prop_assert_eq!(header.body_size, body.len() as u64);
                    prop_assert_eq!(header.properties.delivery_mode(), &delivery_mode);
                    prop_assert_eq!(header.properties.timestamp(), &timestamp);
                }
                (FrameKind::Body, AMQPFrame::Body(3, content)) => {
                    prop_assert_eq!(&content[..], &body[..]);
                }
                (FrameKind::Method, AMQPFrame::Method(3, _)) => {}
                other => panic!("read as {other:?}"),
            }
            // They write the same bytes.
            prop_assert_eq!(written_by_them(&parsed), raw);
            kinds.push(frame.kind);
        }
        prop_assert_eq!(kinds, [FrameKind::Method, FrameKind::Header, FrameKind::Body]);
    }
}

#[test]
fn both_write_the_same_heartbeat() {
    let mut output = Output::new();
    output.heartbeat();
    assert_eq!(written_by_them(&AMQPFrame::Heartbeat), output.to_bytes());
    let mut once = BytesMut::new();
    once.extend_from_slice(&output.to_bytes());
    assert_eq!(theirs(&once), AMQPFrame::Heartbeat);
}
