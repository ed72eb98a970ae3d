//! What a connection reads, in whatever pieces it comes.

use bytes::{BufMut, BytesMut};
use proptest::collection::vec;
use proptest::prelude::*;
use quelea_elastic_proto::limits::GREETING_BYTES_MAX;
use quelea_elastic_proto::wire::encode_data;
use quelea_elastic_proto::{Frame, FrameBuffer, MessageSeq, Slot};

use crate::any_frame::any_frame;

proptest! {
    #[test]
    fn frames_come_whole_and_in_order_however_they_are_read(
        frames in vec(any_frame(), 1..12),
        pieces in vec(1_usize..700, 1..20),
        one_by_one in any::<bool>(),
    ) {
        let mut wire = BytesMut::new();
        frames.iter().for_each(|frame| frame.encode(&mut wire).unwrap());
        let mut buffer = FrameBuffer::new();
        buffer.greeted();
        let mut read = Vec::new();
        let mut pieces = pieces.into_iter().cycle();
        while !wire.is_empty() {
            let piece = wire.split_to(pieces.next().unwrap().min(wire.len()));
            buffer.room().put_slice(&piece);
            if one_by_one {
                while let Some(frame) = buffer.next_frame().unwrap() {
                    read.push(frame);
                }
            } else {
                let mut whole = buffer.take().unwrap();
                while let Some(frame) = Frame::decode(&mut whole).unwrap() {
                    read.push(frame);
                }
                prop_assert!(whole.is_empty());
            }
        }
        prop_assert_eq!(read, frames);
    }
}

#[test]
fn there_is_room_for_the_whole_frame_under_way() {
    let mut wire = BytesMut::new();
    encode_data(&mut wire, Slot(1), MessageSeq(0), &[vec![0; 3_000_000]]).unwrap();
    let mut buffer = FrameBuffer::new();
    buffer.greeted();
    let room = buffer.room();
    assert!(room.capacity() < 1_000_000, "nobody has said yet that a large frame comes");
    room.put_slice(&wire[..20]);
    assert!(buffer.take().unwrap().is_empty());
    let room = buffer.room();
    assert!(room.capacity() >= wire.len(), "{} < {}", room.capacity(), wire.len());
}

#[test]
fn who_has_not_greeted_is_given_no_large_buffer() {
    let mut wire = BytesMut::new();
    encode_data(&mut wire, Slot(1), MessageSeq(0), &[vec![0; GREETING_BYTES_MAX]]).unwrap();
    let mut buffer = FrameBuffer::new();
    buffer.room().put_slice(&wire[..8]);
    let error = buffer.take().unwrap_err().to_string();
    assert_eq!(error, "DATA: field length: 4117 is more than the limit of 4096");
    assert_eq!(buffer.next_frame().unwrap_err().to_string(), error);
}

#[test]
fn frames_before_a_wrong_one_are_still_given() {
    let mut buffer = FrameBuffer::new();
    let room = buffer.room();
    Frame::Ping(1).encode(room).unwrap();
    room.put_slice(&[0, 0, 0, 0, 0xee, 0, 0, 0]);
    let mut whole = buffer.take().unwrap();
    assert_eq!(Frame::decode(&mut whole), Ok(Some(Frame::Ping(1))));
    let error = buffer.take().unwrap_err().to_string();
    assert_eq!(error, "frame kind 0xee: field kind: 238 is none of its values");
}
