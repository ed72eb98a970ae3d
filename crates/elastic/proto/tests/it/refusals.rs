//! Every refusal names the frame, the field, the limit and the value.

use bytes::{BufMut, Bytes, BytesMut};
use quelea_elastic_proto::error::Fault;
use quelea_elastic_proto::frame::{AttachListener, ErrorCode, OpenListener, WireError};
use quelea_elastic_proto::limits::{
    CONTROL_BYTES_MAX, MESSAGE_BYTES_MAX, PREFIXES_MAX, RELAYS_MAX, TEXT_BYTES_MAX,
};
use quelea_elastic_proto::wire::Kind;
use quelea_elastic_proto::{ClientId, Frame, FrameError, RelayId};

/// Reads a frame made by hand.
fn read(kind: Kind, body: &[u8]) -> Result<Option<Frame>, FrameError> {
    let mut out = BytesMut::new();
    out.put_u32_le(body.len() as u32);
    out.put_slice(&[kind as u8, 0, 0, 0]);
    out.put_slice(body);
    Frame::decode(&mut out.freeze())
}

fn refused(kind: Kind, body: &[u8]) -> String {
    read(kind, body).expect_err("it is to be refused").to_string()
}

#[test]
fn a_header_that_is_none_is_refused_before_its_body_is_read() {
    let read = |header: [u8; 8]| {
        Frame::decode(&mut Bytes::copy_from_slice(&header)).unwrap_err().to_string()
    };
    assert_eq!(read(*b"GET / HT"), "frame kind 0x2f: field kind: 47 is none of its values");
    assert_eq!(read([0, 0, 0, 0, 4, 1, 0, 0]), "PING: field flags: 1 is none of its values");
    assert_eq!(read([0, 0, 0, 0, 4, 0, 0, 1]), "PING: field reserved: 256 is none of its values");
    let control = (CONTROL_BYTES_MAX as u32 + 1).to_le_bytes();
    let [a, b, c, d] = control;
    assert_eq!(
        read([a, b, c, d, Kind::Hello as u8, 0, 0, 0]),
        "HELLO: field length: 2097153 is more than the limit of 2097152"
    );
    let [a, b, c, d] = (MESSAGE_BYTES_MAX as u32 + 13).to_le_bytes();
    assert_eq!(
        read([a, b, c, d, Kind::Data as u8, 0, 0, 0]),
        "DATA: field length: 16777229 is more than the limit of 16777228"
    );
}

#[test]
fn a_body_that_is_too_short_or_too_long_is_refused() {
    assert_eq!(
        refused(Kind::Ping, &[0; 7]),
        "PING: field number: needs 8 bytes and the frame has 7 left"
    );
    assert_eq!(refused(Kind::Ping, &[0; 9]), "PING: field length: 1 bytes are left behind it");
    assert_eq!(
        refused(Kind::Data, &[0; 11]),
        "DATA: field sequence: needs 8 bytes and the frame has 7 left"
    );
    assert_eq!(
        refused(Kind::Data, &[0; 12]),
        "DATA: field parts: message: a part needs 2 bytes and 0 are left"
    );
}

#[test]
fn a_name_that_is_none_is_refused() {
    assert_eq!(refused(Kind::Close, &[0; 18]), "CLOSE: field queue: is empty");
    let long = [&256_u16.to_le_bytes()[..], &[b'q'; 256], &[0; 16]].concat();
    assert_eq!(
        refused(Kind::Close, &long),
        "CLOSE: field queue: 256 is more than the limit of 255"
    );
    let foreign = [&3_u16.to_le_bytes()[..], b"q\xff\xff", &[0; 16]].concat();
    assert_eq!(refused(Kind::Close, &foreign), "CLOSE: field queue: is not UTF-8 from byte 1 on");
}

#[test]
fn a_number_that_means_nothing_is_refused() {
    let attached = [&[0; 4][..], &[4], &[0; 8]].concat();
    assert_eq!(
        refused(Kind::Attached, &attached),
        "ATTACHED: field acknowledge: 4 is none of its values"
    );
    let error = [&99_u16.to_le_bytes()[..], &[0; 5]].concat();
    assert_eq!(refused(Kind::Error, &error), "ERROR: field code: 99 is none of its values");
    let error = [&1_u16.to_le_bytes()[..], &[2], &[0; 4]].concat();
    assert_eq!(refused(Kind::Error, &error), "ERROR: field fatal: 2 is none of its values");
}

#[test]
fn a_count_takes_no_memory_for_what_is_not_there() {
    let body = [&1_u16.to_le_bytes()[..], b"q", &[0; 16], &4_000_u32.to_le_bytes()].concat();
    assert_eq!(
        refused(Kind::OpenListener, &body),
        "OPEN_LISTENER: field attached: needs 32000 bytes and the frame has 0 left"
    );
    let body = [&1_u16.to_le_bytes()[..], b"q", &[0; 16], &u32::MAX.to_le_bytes()].concat();
    assert_eq!(
        refused(Kind::OpenListener, &body),
        "OPEN_LISTENER: field attached: 4294967295 is more than the limit of 4096"
    );
}

#[test]
fn what_may_not_be_sent_is_not_written() {
    let mut out = BytesMut::from(&b"before"[..]);
    let close = Frame::Close { queue: String::new(), client: ClientId(1) };
    assert_eq!(close.encode(&mut out).unwrap_err().fault, Fault::Empty);
    let open = Frame::OpenListener(OpenListener {
        queue: "q".to_owned(),
        listener: ClientId(1),
        attached: vec![RelayId(1); RELAYS_MAX + 1],
    });
    let text = open.encode(&mut out).unwrap_err().to_string();
    assert_eq!(text, "OPEN_LISTENER: field attached: 4097 is more than the limit of 4096");
    let attach = Frame::AttachListener(AttachListener {
        queue: "q".to_owned(),
        listener: ClientId(1),
        slow: None,
        prefixes: vec![Bytes::from(vec![0; 1_024]); PREFIXES_MAX],
    });
    let text = attach.encode(&mut out).unwrap_err().to_string();
    assert_eq!(text, "ATTACH_LISTENER: field length: 10260024 is more than the limit of 2097152");
    assert_eq!(out, &b"before"[..]);
}

#[test]
fn a_text_for_people_is_cut_and_not_refused() {
    let mut out = BytesMut::new();
    let reason = "ä".repeat(TEXT_BYTES_MAX);
    Frame::Bye(reason).encode(&mut out).unwrap();
    let read = Frame::decode(&mut out.freeze()).unwrap();
    assert_eq!(read, Some(Frame::Bye("ä".repeat(TEXT_BYTES_MAX / 2))));
}

#[test]
fn the_peer_is_told_what_was_wrong() {
    let error = WireError::from(read(Kind::Ping, &[]).unwrap_err());
    assert_eq!((error.code, error.field.as_str()), (ErrorCode::Malformed, "number"));
    assert!(error.fatal && error.text.starts_with("PING: field number"));
    let many = [&[0; 12][..], &[1, 0].repeat(65)].concat();
    let error = WireError::from(read(Kind::Data, &many).unwrap_err());
    assert_eq!(error.code, ErrorCode::Limit);
    assert_eq!(error.text, "DATA: field parts: message: 65 parts are more than the limit of 64");
}

#[test]
fn every_kind_has_its_number_and_its_name() {
    for number in 0..=u8::MAX {
        if let Some(kind) = Kind::of_number(number) {
            assert_eq!(kind as u8, number);
            assert!(Kind::ALL.contains(&kind));
        }
    }
    let mut names: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Kind::ALL.len());
}
