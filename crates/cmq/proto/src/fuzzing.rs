//! Entry points for fuzzing and for tests over arbitrary input. Not part of the interface.
//!
//! Each panics if something does not hold that should hold for every input.

mod endpoint;

pub use endpoint::fuzz_endpoint;

use crate::classic::{self, Element};
use crate::config::PreSharedKey;
use crate::limits::{DATAGRAM_BYTES_MAX, REPAIR_HELD_BYTES_MAX, STATUS_RANGES_MAX};
use crate::repair::FecDecoder;
use crate::seal::{FlowSeal, Greeting, Keyring, Reception};
use crate::wire::data::{self, Fragment, Messages};
use crate::wire::flags;
use crate::wire::handshake::Handshake;
use crate::wire::parity::Parity;
use crate::wire::probe::Probe;
use crate::wire::refusal::Refusal;
use crate::wire::status::Status;
use crate::wire::{HEADER_BYTES, Header, Kind, Malformed};

/// Datagrams, each behind its length in two bytes, little-endian: what is read of each is consistent
/// and is written as it was; a decoder that gets them all holds no more than it may; and none is
/// authentic.
pub fn fuzz_datagrams(input: &[u8]) {
    let mut decoder = FecDecoder::new();
    let keyring = Keyring::new(PreSharedKey([1; 32]));
    let mut seal = FlowSeal::group_receiver(&keyring, 1, 1);
    let mut greeting = Greeting::new([2; 16]);
    let mut rest = input;
    while let Some((length, after)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_le_bytes(*length)).min(after.len());
        let (datagram, after) = after.split_at(length.min(DATAGRAM_BYTES_MAX));
        rest = after;
        let Ok(header) = Header::parse(datagram) else { continue };
        assert_eq!(header.to_bytes()[..], datagram[..HEADER_BYTES], "a header has one form");
        if header.has(flags::SEALED) {
            check_forged(&header, datagram, &mut seal, &keyring, &mut greeting);
        }
        let _ = check_body(&header, &datagram[HEADER_BYTES..], &mut decoder);
    }
}

fn check_forged(
    header: &Header,
    datagram: &[u8],
    seal: &mut FlowSeal,
    keyring: &Keyring,
    greeting: &mut Greeting,
) {
    assert!(seal.open(header, &mut datagram.to_vec()).is_err(), "nobody has the key");
    assert!(Reception::new(keyring, header, datagram, || [3; 16]).is_err(), "nobody has the key");
    assert!(greeting.on_challenge(keyring, header, datagram).is_err(), "nobody has the key");
}

fn check_body(header: &Header, body: &[u8], decoder: &mut FecDecoder) -> Result<(), Malformed> {
    let sealed = header.has(flags::SEALED);
    let mut again = Vec::new();
    match header.kind {
        Kind::Data if header.has(flags::FRAGMENT) => {
            let (fragment, piece) = Fragment::read(body, header.count)?;
            assert_eq!(piece.len(), fragment.range().len());
            assert!(fragment.range().end <= fragment.total as usize);
        }
        Kind::Data => {
            let end = data::check(body, header.count)?;
            let mut count = 0;
            for message in Messages::new(body, u32::from(header.count)) {
                data::write_message(&mut again, message);
                count += 1;
            }
            assert_eq!(count, header.count, "a body that was checked has all messages");
            assert!(again.len() <= end && end <= body.len(), "a length may have spare bytes");
            if header.has(flags::REPAIR) {
                decoder.on_data(header, body);
            }
        }
        Kind::Status => {
            let status = Status::read(body)?;
            assert!(status.ranges.len() <= STATUS_RANGES_MAX);
            assert!(status.ranges.last().is_none_or(|(_, end)| *end <= status.highest));
            status.write(&mut again);
            assert_eq!(Status::read(&again), Ok(status));
        }
        Kind::Probe => {
            Probe::read(body)?.write(&mut again);
            assert!(body.starts_with(&again));
        }
        Kind::Parity => {
            let (head, parity) = Parity::read(body, header.sequence)?;
            assert!(head.first + u64::from(head.data) <= header.sequence);
            decoder.on_parity(header, head, parity);
        }
        Kind::Hello | Kind::Challenge => {
            Handshake::read(body, sealed)?.write(&mut again);
            assert!(body.starts_with(&again));
        }
        Kind::Refusal => {
            Refusal::read(body)?.write(&mut again);
            assert!(body.starts_with(&again));
        }
    }
    while let Some(recovered) = decoder.poll_recovered() {
        if let Ok(recovered) = recovered {
            assert_eq!(Header::parse(&recovered.segment), Ok(recovered.header));
        }
    }
    assert!(decoder.held_bytes() <= REPAIR_HELD_BYTES_MAX);
    Ok(())
}

/// A datagram of the original library, as both of what it can be: what is decoded encodes to the same
/// bytes, and is delivered as other messages are.
pub fn fuzz_classic(datagram: &[u8]) {
    for element in [Element::Text, Element::Bytes] {
        let mut body = b"before".to_vec();
        let framed = classic::reframe(datagram, element, &mut body);
        let messages = classic::Messages::new(datagram, element)
            .and_then(Iterator::collect::<Result<Vec<&[u8]>, Malformed>>);
        let Ok(messages) = messages else {
            assert!(framed.is_err(), "one that is wrong is not delivered");
            assert_eq!(body, b"before", "nor is a part of it");
            continue;
        };
        assert_eq!(framed, Ok(messages.len() as u32));
        assert!(Messages::new(&body[6..], messages.len() as u32).eq(messages.iter().copied()));
        let mut list = Vec::new();
        classic::begin(&mut list);
        let mut bytes = classic::LIST_HEAD_BYTES;
        for message in &messages {
            classic::write_message(&mut list, element, message).expect("it was decoded as such");
            bytes += classic::framed_bytes(message.len());
        }
        classic::write_count(&mut list, messages.len() as u64);
        assert_eq!(list.len(), bytes, "the length is known without encoding");
        assert!(datagram.starts_with(&list), "a list has one form");
    }
}
