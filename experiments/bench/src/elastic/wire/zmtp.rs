//! ZMTP 3.0, mechanism NULL: just enough of PUB and SUB (rfc.zeromq.org/spec/23).

use crate::elastic::error::ElasticError;
use crate::elastic::wire::dialogue::Dialogue;
use crate::elastic::wire::{Opened, OpenedProducer, Piece, TOPIC, Template};

const GREETING_BYTES: usize = 64;
/// What follows in the frame's flags.
const MORE: u8 = 1;
const LONG: u8 = 2;
const COMMAND: u8 = 4;
/// A subscription to everything, as a message.
const SUBSCRIBE_ALL: [u8; 3] = [0, 1, 1];

pub(crate) fn listen(mut dialogue: Dialogue) -> Result<Opened, ElasticError> {
    greet(&mut dialogue, b"SUB")?;
    dialogue.say(&SUBSCRIBE_ALL)?;
    dialogue.end()
}

/// Returns when a subscription to everything has reached it: a publisher may drop what nobody wants.
pub(crate) fn produce(mut dialogue: Dialogue, size: usize) -> Result<OpenedProducer, ElasticError> {
    greet(&mut dialogue, b"PUB")?;
    let end = |frame: Frame| Ok::<_, String>((frame.end, frame.body == [1]));
    while !dialogue.hear(|input| Frame::cut(input)?.map(end).transpose())? {}
    let mut bytes = Vec::new();
    put(&mut bytes, MORE, TOPIC.as_bytes());
    put(&mut bytes, 0, &vec![0; size]);
    let body_at = bytes.len() - size;
    let template = Template { bytes, body_at, sequence_at: None };
    Ok(OpenedProducer { client: dialogue.end()?, template, credit: None })
}

pub(crate) fn cut(input: &[u8]) -> Result<Option<(usize, Piece<'_>)>, String> {
    let Some(frame) = Frame::cut(input)? else { return Ok(None) };
    // We say that we speak 3.0, so that no heartbeat asks for an answer.
    let is_body = frame.flags & (MORE | COMMAND) == 0;
    let piece = if is_body { Piece::Body(frame.body) } else { Piece::Other };
    Ok(Some((frame.end, piece)))
}

fn greet(dialogue: &mut Dialogue, socket_type: &[u8; 3]) -> Result<(), ElasticError> {
    let mut greeting = [0; GREETING_BYTES];
    (greeting[0], greeting[9]) = (0xFF, 0x7F);
    greeting[10] = 3;
    greeting[12..16].copy_from_slice(b"NULL");
    dialogue.say(&greeting)?;
    let theirs = dialogue.hear(|input| {
        Ok(input.first_chunk::<GREETING_BYTES>().map(|all| (GREETING_BYTES, *all)))
    })?;
    if theirs[0] != 0xFF || theirs[10] < 3 || &theirs[12..17] != b"NULL\0" {
        return Err(dialogue.wrong("it does not greet as ZMTP 3 with the mechanism NULL does"));
    }
    let mut ready = b"\x05READY\x0bSocket-Type\0\0\0\x03".to_vec();
    ready.extend_from_slice(socket_type);
    let mut bytes = Vec::new();
    put(&mut bytes, COMMAND, &ready);
    dialogue.say(&bytes)?;
    let is_ready = dialogue.hear(|input| {
        let ready = |frame: Frame| {
            (frame.end, frame.flags & COMMAND != 0 && frame.body.starts_with(b"\x05READY"))
        };
        Ok(Frame::cut(input)?.map(ready))
    })?;
    if is_ready { Ok(()) } else { Err(dialogue.wrong("its first frame is not READY")) }
}

fn put(bytes: &mut Vec<u8>, flags: u8, body: &[u8]) {
    if let Ok(length) = u8::try_from(body.len()) {
        bytes.extend_from_slice(&[flags, length]);
    } else {
        bytes.push(flags | LONG);
        bytes.extend_from_slice(&(body.len() as u64).to_be_bytes());
    }
    bytes.extend_from_slice(body);
}

struct Frame<'a> {
    flags: u8,
    body: &'a [u8],
    end: usize,
}

impl<'a> Frame<'a> {
    /// Returns the first frame of `input`.
    fn cut(input: &'a [u8]) -> Result<Option<Self>, String> {
        let Some(flags) = input.first().copied() else { return Ok(None) };
        if flags & !(MORE | LONG | COMMAND) != 0 {
            return Err(format!("a ZMTP frame with the flags {flags:#04x}"));
        }
        let (at, length): (usize, usize) = if flags & LONG == 0 {
            let Some(length) = input.get(1) else { return Ok(None) };
            (2, usize::from(*length))
        } else {
            let Some(length) = input[1..].first_chunk() else { return Ok(None) };
            (9, usize::try_from(u64::from_be_bytes(*length)).unwrap_or(usize::MAX))
        };
        let end = at.saturating_add(length);
        Ok(input.get(at..end).map(|body| Self { flags, body, end }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_part_of_a_message_is_its_body() {
        let mut bytes = Vec::new();
        put(&mut bytes, COMMAND, b"\x04PING");
        put(&mut bytes, MORE, b"topic");
        put(&mut bytes, 0, &[9; 300]);
        let (first, piece) = cut(&bytes).unwrap().unwrap();
        assert_eq!((first, piece), (7, Piece::Other));
        let (second, piece) = cut(&bytes[first..]).unwrap().unwrap();
        assert_eq!((second, piece), (7, Piece::Other));
        let (third, piece) = cut(&bytes[first + second..]).unwrap().unwrap();
        assert_eq!((third, piece), (309, Piece::Body(&[9; 300])));
    }

    #[test]
    fn half_a_frame_is_waited_for_and_nonsense_refused() {
        let mut bytes = Vec::new();
        put(&mut bytes, 0, &[9; 300]);
        for end in [0, 1, 5, 9, 308] {
            assert_eq!(cut(&bytes[..end]), Ok(None), "{end}");
        }
        assert!(cut(&[0x48, 1, 1]).unwrap_err().contains("0x48"));
    }
}
