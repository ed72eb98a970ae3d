//! What is written is read as it was, and takes no second form.

use bytes::{Bytes, BytesMut};
use proptest::collection::vec;
use proptest::prelude::*;
use quelea_elastic_proto::fuzzing::fuzz_frames;
use quelea_elastic_proto::wire::{DataHeader, FrameHeader, encode_data};
use quelea_elastic_proto::{Frame, MessageSeq, Slot, parts};

use crate::any_frame::any_frame;

proptest! {
    #[test]
    fn a_frame_is_read_as_it_was_written(frame in any_frame()) {
        let mut out = BytesMut::new();
        frame.encode(&mut out).unwrap();
        let header = FrameHeader::read(&out).unwrap().unwrap();
        prop_assert_eq!(header.kind, frame.kind());
        prop_assert_eq!(header.frame_bytes(), out.len());
        let mut input = out.freeze();
        prop_assert_eq!(Frame::decode(&mut input).unwrap(), Some(frame));
        prop_assert!(input.is_empty());
    }

    #[test]
    fn a_frame_that_is_not_whole_is_waited_for(frame in any_frame(), cut in any::<prop::sample::Index>()) {
        let mut out = BytesMut::new();
        frame.encode(&mut out).unwrap();
        let mut input = out.freeze();
        input.truncate(cut.index(input.len()));
        let before = input.clone();
        prop_assert_eq!(Frame::decode(&mut input).unwrap(), None);
        prop_assert_eq!(input, before);
    }

    #[test]
    fn bytes_that_are_a_frame_are_its_only_form(mut frame in any_frame().prop_map(encoded), changes in vec(any::<(prop::sample::Index, u8)>(), 0..3)) {
        for (at, value) in changes {
            let at = at.index(frame.len());
            frame[at] = value;
        }
        let mut input = Bytes::from(frame.clone());
        if let Ok(Some(read)) = Frame::decode(&mut input) {
            let used = frame.len() - input.len();
            prop_assert_eq!(&encoded(read)[..], &frame[..used]);
        }
    }

    #[test]
    fn the_fuzzers_rules_hold_for_frames_in_any_order_and_pieces(frames in vec(any_frame().prop_map(encoded), 0..12), cut in any::<u8>(), changes in vec(any::<(prop::sample::Index, u8)>(), 0..2)) {
        let mut data = [vec![cut], frames.concat()].concat();
        for (at, value) in changes {
            let at = at.index(data.len());
            data[at] = value;
        }
        fuzz_frames(&data);
    }
}

fn encoded(frame: Frame) -> Vec<u8> {
    let mut out = BytesMut::new();
    frame.encode(&mut out).expect("a frame within the limits");
    out.to_vec()
}

#[test]
fn a_message_is_encoded_as_its_frame_would_be() {
    let message = [b"eur.usd".to_vec(), vec![7; 300]];
    let mut out = BytesMut::new();
    encode_data(&mut out, Slot(3), MessageSeq(9), &message).unwrap();
    let header = DataHeader::of_frame(&out).unwrap();
    assert_eq!(header, DataHeader { slot: Slot(3), sequence: MessageSeq(9) });
    let parts = parts::encode(&message).unwrap();
    assert_eq!(out, encoded(Frame::Data { slot: Slot(3), sequence: MessageSeq(9), parts })[..]);
}

#[test]
fn a_message_is_not_copied_when_it_is_read() {
    let mut out = BytesMut::new();
    encode_data(&mut out, Slot(1), MessageSeq(0), &[vec![1; 5_000]]).unwrap();
    let mut input = out.freeze();
    let memory = input.as_ptr_range();
    let Some(Frame::Data { parts, .. }) = Frame::decode(&mut input).unwrap() else {
        panic!("a DATA frame was written")
    };
    assert!(memory.contains(&parts.as_ptr()));
}
