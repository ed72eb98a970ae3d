//! NATS: just enough of a client (docs.nats.io, client protocol).

use crate::elastic::error::ElasticError;
use crate::elastic::wire::dialogue::Dialogue;
use crate::elastic::wire::{Opened, OpenedProducer, Piece, TOPIC, Template};

/// A line of control is never longer.
const LINE_BYTES_MAX: usize = 64 * 1024;
const CONNECT: &[u8] =
    b"CONNECT {\"verbose\":false,\"pedantic\":false,\"name\":\"quelea-bench\"}\r\n";

pub(crate) fn listen(mut dialogue: Dialogue) -> Result<Opened, ElasticError> {
    connect(&mut dialogue, format!("SUB {TOPIC} 1\r\n").as_bytes())?;
    dialogue.end()
}

pub(crate) fn produce(mut dialogue: Dialogue, size: usize) -> Result<OpenedProducer, ElasticError> {
    connect(&mut dialogue, b"")?;
    let mut bytes = format!("PUB {TOPIC} {size}\r\n").into_bytes();
    let body_at = bytes.len();
    bytes.resize(body_at + size, 0);
    bytes.extend_from_slice(b"\r\n");
    let template = Template { bytes, body_at, sequence_at: None };
    Ok(OpenedProducer { client: dialogue.end()?, template, credit: None })
}

/// Says who we are and what we want, and waits until it was understood.
fn connect(dialogue: &mut Dialogue, wish: &[u8]) -> Result<(), ElasticError> {
    let line = |input: &[u8]| Ok(line(input)?.map(|(end, line)| (end, line.to_vec())));
    if !dialogue.hear(line)?.starts_with(b"INFO ") {
        return Err(dialogue.wrong("it does not begin with INFO, as NATS does"));
    }
    dialogue.say(&[CONNECT, wish, b"PING\r\n"].concat())?;
    loop {
        match dialogue.hear(line)? {
            pong if pong == b"PONG" => return Ok(()),
            error if error.starts_with(b"-ERR") => {
                return Err(dialogue.wrong(String::from_utf8_lossy(&error)));
            }
            ping if ping == b"PING" => dialogue.say(b"PONG\r\n")?,
            _ => {} // INFO again
        }
    }
}

pub(crate) fn cut(input: &[u8]) -> Result<Option<(usize, Piece<'_>)>, String> {
    let Some((end, line)) = line(input)? else { return Ok(None) };
    if line.starts_with(b"MSG ") {
        let length = std::str::from_utf8(line).ok().and_then(|line| line.rsplit(' ').next());
        let Some(length) = length.and_then(|length| length.parse::<usize>().ok()) else {
            return Err(format!("no length in '{}'", String::from_utf8_lossy(line)));
        };
        let after = end.saturating_add(length).saturating_add(2);
        return Ok((input.len() >= after).then(|| (after, Piece::Body(&input[end..end + length]))));
    }
    let piece = match line {
        b"PING" => Piece::Question(b"PONG\r\n".to_vec()),
        line if line.starts_with(b"-ERR") => return Err(String::from_utf8_lossy(line).into_owned()),
        _ => Piece::Other,
    };
    Ok(Some((end, piece)))
}

/// Returns the first line without its end, and where the next one begins.
fn line(input: &[u8]) -> Result<Option<(usize, &[u8])>, String> {
    let head = &input[..input.len().min(LINE_BYTES_MAX)];
    match head.windows(2).position(|pair| pair == b"\r\n") {
        Some(at) => Ok(Some((at + 2, &input[..at]))),
        None if head.len() == LINE_BYTES_MAX => {
            Err(format!("a line of more than {LINE_BYTES_MAX} bytes"))
        }
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_whole_with_its_line_end() {
        let bytes = b"MSG load 1 5\r\nhello\r\nPING\r\n";
        for end in 0..21 {
            assert_eq!(cut(&bytes[..end]), Ok(None), "{end}");
        }
        assert_eq!(cut(bytes), Ok(Some((21, Piece::Body(b"hello")))));
        assert_eq!(cut(&bytes[21..]), Ok(Some((6, Piece::Question(b"PONG\r\n".to_vec())))));
    }

    #[test]
    fn errors_are_passed_on_and_nonsense_refused() {
        assert_eq!(cut(b"-ERR 'Slow Consumer'\r\n"), Err("-ERR 'Slow Consumer'".to_owned()));
        assert!(cut(b"MSG load 1 many\r\n").unwrap_err().contains("no length"));
        assert!(cut(&[b'x'; LINE_BYTES_MAX]).is_err());
        assert_eq!(cut(b"INFO {}\r\n"), Ok(Some((9, Piece::Other))));
    }
}
