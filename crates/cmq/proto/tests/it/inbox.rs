//! What an endpoint takes: wrong datagrams, floods, mailboxes that nobody empties.

mod causes;
mod floods;
mod peers;
mod windows;

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

use bytes::{Bytes, BytesMut};
use quelea_cmq_proto::wire::{Header, Kind};
use quelea_cmq_proto::{Config, DestinationOptions, Mode, Time};

use crate::pair::{Datagram, EndpointPair, Fate};

fn in_mode(mode: Mode) -> DestinationOptions {
    DestinationOptions { mode, ..DestinationOptions::default() }
}

/// Everything that goes over a pair's network.
#[derive(Clone, Default)]
struct Recording(Rc<RefCell<Vec<Datagram>>>);

impl Recording {
    fn of(pair: &mut EndpointPair) -> Self {
        let recording = Self::default();
        let taken = recording.clone();
        pair.network = Box::new(move |datagram| {
            taken.0.borrow_mut().push(datagram.clone());
            Fate::Arrives
        });
        recording
    }

    fn all(&self) -> Vec<Datagram> {
        self.0.borrow().clone()
    }

    fn last(&self, kind: Kind) -> Bytes {
        let all = self.0.borrow();
        let last = all.iter().rev().find(|datagram| datagram.kind() == Some(kind));
        last.expect("there was one").bytes.clone()
    }
}

/// Gives the server a datagram that its peer did not send.
fn forge(pair: &mut EndpointPair, from: SocketAddr, bytes: &[u8]) {
    pair.server.on_datagrams(from, BytesMut::from(bytes), bytes.len(), pair.now);
}

/// Returns the same datagram with another header.
fn reheaded(bytes: &[u8], change: impl FnOnce(&mut Header)) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let mut header = Header::parse(&bytes).unwrap();
    change(&mut header);
    header.write(&mut bytes);
    bytes
}

fn pair_in(
    mode: Mode,
    messages: &[Vec<u8>],
) -> (EndpointPair, Recording, quelea_cmq_proto::DestinationId) {
    let mut pair = EndpointPair::new(Config::default());
    let recording = Recording::of(&mut pair);
    let to = pair.destination(in_mode(mode));
    pair.push_all(to, messages);
    pair.run();
    assert!(pair.received == messages, "the first ones came");
    assert!(pair.now > Time::ZERO);
    (pair, recording, to)
}
