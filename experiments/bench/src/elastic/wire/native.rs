//! Quelea's own protocol (docs/formats/elastic.md), straight to one relay: no directory, no session.

use bytes::{Bytes, BytesMut};
use quelea_elastic_proto::frame::{AttachListener, Frame, Hello, Role, Start};
use quelea_elastic_proto::limits::{DATA_HEADER_BYTES, FRAME_HEADER_BYTES, VERSION};
use quelea_elastic_proto::wire::{FrameHeader, Kind};
use quelea_elastic_proto::{ClientId, Epoch, Fence, MessageSeq, Slot, parts};

use crate::elastic::error::ElasticError;
use crate::elastic::wire::dialogue::Dialogue;
use crate::elastic::wire::{Opened, OpenedProducer, Piece, TOPIC, Template};

/// Where a DATA frame has its message's number: behind the header and the slot.
const SEQUENCE_AT: usize = FRAME_HEADER_BYTES + 4;

pub(crate) fn listen(mut dialogue: Dialogue, queue: &str) -> Result<Opened, ElasticError> {
    greet(&mut dialogue)?;
    let attach = AttachListener {
        queue: queue.to_owned(),
        listener: ClientId(fastrand::u128(..)),
        slow: None,
        prefixes: vec![Bytes::new()],
    };
    attach_with(&mut dialogue, Frame::AttachListener(attach))?;
    dialogue.end()
}

pub(crate) fn produce(
    mut dialogue: Dialogue,
    queue: &str,
    size: usize,
) -> Result<OpenedProducer, ElasticError> {
    greet(&mut dialogue)?;
    let producer = ClientId(fastrand::u128(..));
    let (fence, epoch) = (Fence(0), Epoch::first_of(Fence(0)));
    let attach = Frame::AttachProducer { queue: queue.to_owned(), producer, fence, epoch };
    let (slot, credit) = attach_with(&mut dialogue, attach)?;
    let start = Start { slot, producer, epoch, first: MessageSeq(0), previous: Epoch(0) };
    say(&mut dialogue, &Frame::Start(start))?;
    let parts = parts::encode(&[TOPIC.as_bytes(), &vec![0; size]])
        .map_err(|error| dialogue.wrong(error.to_string()))?;
    let bytes = encoded(&dialogue, &Frame::Data { slot, sequence: MessageSeq(0), parts })?.to_vec();
    let body_at = bytes.len() - size;
    let template = Template { bytes, body_at, sequence_at: Some(SEQUENCE_AT) };
    Ok(OpenedProducer { client: dialogue.end()?, template, credit: Some(credit) })
}

pub(crate) fn cut(input: &[u8]) -> Result<Option<(usize, Piece<'_>)>, String> {
    let Some(header) = FrameHeader::read(input).map_err(|error| error.to_string())? else {
        return Ok(None);
    };
    let Some(frame) = input.get(..header.frame_bytes()) else { return Ok(None) };
    let piece = match header.kind {
        Kind::Data => Piece::Body(last_part(&frame[DATA_HEADER_BYTES..])?),
        Kind::Start => Piece::Other,
        _ => control(decoded(frame)?)?,
    };
    Ok(Some((frame.len(), piece)))
}

fn control(frame: Frame) -> Result<Piece<'static>, String> {
    match frame {
        Frame::Credit { bytes, .. } => Ok(Piece::Credit(bytes)),
        Frame::Ping(number) => {
            let mut answer = BytesMut::new();
            Frame::Pong(number).encode(&mut answer).map_err(|error| error.to_string())?;
            Ok(Piece::Question(answer.to_vec()))
        }
        Frame::Error(error) => Err(format!("{:?}: {} {}", error.code, error.field, error.text)),
        Frame::Bye(reason) => Err(format!("it ends the connection: {reason}")),
        _ => Ok(Piece::Other),
    }
}

/// Returns the message's last part. It is not found by the library: the listeners' clients do this
/// for each message.
fn last_part(mut message: &[u8]) -> Result<&[u8], String> {
    loop {
        let (more, body, rest) = match *message {
            [flags @ 0..=1, length, ref rest @ ..] => (flags, usize::from(length), rest),
            [flags @ 2..=3, a, b, c, d, e, f, g, h, ref rest @ ..] => {
                let length = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
                (flags & 1, usize::try_from(length).unwrap_or(usize::MAX), rest)
            }
            _ => return Err("a message whose parts cannot be read".to_owned()),
        };
        let Some((body, rest)) = rest.split_at_checked(body) else {
            return Err("a message whose last part is not whole".to_owned());
        };
        if more == 0 {
            return Ok(body);
        }
        message = rest;
    }
}

fn greet(dialogue: &mut Dialogue) -> Result<(), ElasticError> {
    let hello = Hello {
        version: VERSION,
        role: Role::Client,
        name: "quelea-bench".to_owned(),
        key: Bytes::new(),
    };
    say(dialogue, &Frame::Hello(hello))?;
    match hear(dialogue)? {
        Frame::Welcome(_) => Ok(()),
        other => Err(unexpected(dialogue, &other)),
    }
}

/// Attaches, and returns the slot with its credit.
fn attach_with(dialogue: &mut Dialogue, frame: Frame) -> Result<(Slot, u64), ElasticError> {
    say(dialogue, &frame)?;
    loop {
        match hear(dialogue)? {
            Frame::Attached { slot, credit_bytes, .. } => return Ok((slot, credit_bytes)),
            Frame::Start(_) => {} // a listener's, of who produces already
            other => return Err(unexpected(dialogue, &other)),
        }
    }
}

fn unexpected(dialogue: &Dialogue, frame: &Frame) -> ElasticError {
    match frame {
        Frame::Error(error) => {
            dialogue.wrong(format!("{:?}: {} {}", error.code, error.field, error.text))
        }
        other => dialogue.wrong(format!("it answers with {}", other.kind().name())),
    }
}

fn say(dialogue: &mut Dialogue, frame: &Frame) -> Result<(), ElasticError> {
    let bytes = encoded(dialogue, frame)?;
    dialogue.say(&bytes)
}

fn encoded(dialogue: &Dialogue, frame: &Frame) -> Result<BytesMut, ElasticError> {
    let mut bytes = BytesMut::new();
    frame.encode(&mut bytes).map_err(|error| dialogue.wrong(error.to_string()))?;
    Ok(bytes)
}

/// Waits for the next frame but PINGs, which it answers, and returns it.
fn hear(dialogue: &mut Dialogue) -> Result<Frame, ElasticError> {
    loop {
        match dialogue.hear(next)? {
            Frame::Ping(number) => say(dialogue, &Frame::Pong(number))?,
            frame => return Ok(frame),
        }
    }
}

fn next(input: &[u8]) -> Result<Option<(usize, Frame)>, String> {
    let Some(header) = FrameHeader::read(input).map_err(|error| error.to_string())? else {
        return Ok(None);
    };
    let Some(frame) = input.get(..header.frame_bytes()) else { return Ok(None) };
    Ok(Some((frame.len(), decoded(frame)?)))
}

fn decoded(frame: &[u8]) -> Result<Frame, String> {
    match Frame::decode(&mut Bytes::copy_from_slice(frame)) {
        Ok(Some(frame)) => Ok(frame),
        Ok(None) => Err("a frame that is shorter than it says".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of(frame: &Frame) -> Vec<u8> {
        let mut bytes = BytesMut::new();
        frame.encode(&mut bytes).unwrap();
        bytes.to_vec()
    }

    #[test]
    fn a_messages_body_is_its_last_part_of_any_length() {
        for size in [0, 255, 256, 5_000] {
            let body = vec![7; size];
            let parts = parts::encode(&[b"load".as_slice(), &[1; 300], &body]).unwrap();
            let data = Frame::Data { slot: Slot(1), sequence: MessageSeq(2), parts };
            let bytes = bytes_of(&data);
            assert_eq!(cut(&bytes), Ok(Some((bytes.len(), Piece::Body(&body)))), "{size}");
            assert_eq!(cut(&bytes[..bytes.len() - 1]), Ok(None), "{size}");
        }
    }

    #[test]
    fn credit_is_taken_pings_are_answered_and_errors_passed_on() {
        let credit = bytes_of(&Frame::Credit { slot: Slot(1), bytes: 9 });
        assert_eq!(cut(&credit), Ok(Some((credit.len(), Piece::Credit(9)))));
        let ping = bytes_of(&Frame::Ping(5));
        let pong = bytes_of(&Frame::Pong(5));
        assert_eq!(cut(&ping), Ok(Some((ping.len(), Piece::Question(pong)))));
        let bye = bytes_of(&Frame::Bye("drained".to_owned()));
        assert!(cut(&bye).unwrap_err().contains("drained"));
        assert!(cut(&[0xFF; 20]).is_err());
    }

    #[test]
    fn a_message_with_torn_parts_is_refused() {
        for torn in [&[][..], &[1, 1, b'x'], &[2, 0, 0], &[0, 5, b'x'], &[4, 1, b'x']] {
            assert!(last_part(torn).is_err(), "{torn:?}");
        }
    }
}
