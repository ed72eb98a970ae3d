//! What comes to an endpoint that shares a key with its peers. Everything is opened in place before the
//! buffer is shared, so that nothing is copied.

use core::net::SocketAddr;
use core::ops::Range;

use bytes::BytesMut;

use super::Endpoint;
use super::receiving::segments;
use crate::Time;
use crate::inbox::{Arrived, Taken};
use crate::seal::{FlowSeal, Rejected};
use crate::wire::{Header, Kind, Malformed, flags};

/// What was opened.
#[derive(Debug)]
pub(super) struct Opened {
    /// The address that its flow is known by.
    from: SocketAddr,
    /// Whether its keys are a group's.
    of_group: bool,
    header: Header,
    /// Its place in the buffer, and its body's.
    place: Range<usize>,
    body: Range<usize>,
}

/// How a datagram was opened: by whose keys, and where in it its body is.
struct Authenticated {
    from: SocketAddr,
    of_group: bool,
    body: Range<usize>,
}

impl Endpoint {
    /// Takes the datagrams of one buffer, as far as they are authentic.
    pub(super) fn on_sealed(
        &mut self,
        from: SocketAddr,
        mut bytes: BytesMut,
        segment_bytes: usize,
        now: Time,
    ) {
        let mut opened = core::mem::take(&mut self.opened);
        for place in segments(bytes.len(), segment_bytes) {
            let datagram = &mut bytes[place.clone()];
            match Header::parse(datagram) {
                Ok(header) => match self.open(from, &header, datagram, now) {
                    Ok(None) => {}
                    Ok(Some(found)) => {
                        let Authenticated { from, of_group, body } = found;
                        let body = place.start + body.start..place.start + body.end;
                        opened.push(Opened { from, of_group, header, place, body });
                    }
                    Err(cause) => self.reject(from, &header, cause),
                },
                Err(cause) => self.dropped.count(cause),
            }
        }
        let buffer = bytes.freeze();
        let mut forgotten = false;
        for Opened { from, of_group, header, place, body } in opened.drain(..) {
            let (header, bytes) = (&header, place.len());
            if forgotten && !of_group && self.is_orphan(from, header) {
                self.reject(from, header, Rejected::NotAuthentic);
                continue;
            }
            let arrived = Arrived { from, header, buffer: &buffer, body, bytes, now };
            let taken = self.on_authentic(&arrived, of_group);
            if let Err(cause) = taken {
                self.dropped.count(cause);
            }
            forgotten |= self.inbox.forget_keys(&mut self.receptions);
        }
        self.opened = opened;
    }

    /// Opens a datagram in place. None for a HELLO or CHALLENGE, which are dealt with here.
    fn open(
        &mut self,
        from: SocketAddr,
        header: &Header,
        datagram: &mut [u8],
        now: Time,
    ) -> Result<Option<Authenticated>, Rejected> {
        let found = |body| Some(Authenticated { from, of_group: false, body });
        let Some(keyring) = self.outbox.keyring() else { return Err(Rejected::NotAuthentic) };
        if header.kind == Kind::Hello {
            let salt = || self.salts.salt();
            let challenge = self.receptions.on_hello(keyring, from, header, datagram, salt)?;
            self.challenge(from, &challenge);
            return Ok(None);
        }
        if !header.kind.is_answer() {
            let Some(seal) = self.receptions.seal(from, header) else {
                return self.open_of_group(from, header, datagram).map(Some);
            };
            let body = seal.open(header, datagram)?;
            self.receptions.opened();
            return Ok(found(body));
        }
        let Some(slot) = self.outbox.find_answered(from, header) else { return Ok(None) };
        if header.kind == Kind::Challenge {
            self.outbox.on_challenge(slot, header, datagram, now)?;
            return Ok(None);
        }
        self.outbox.open_answer(slot, header, datagram).map(found)
    }

    /// Opens a datagram to a group. A group's members have no handshake: its keys follow from the
    /// datagram's head.
    fn open_of_group(
        &mut self,
        from: SocketAddr,
        header: &Header,
        datagram: &mut [u8],
    ) -> Result<Authenticated, Rejected> {
        let keyring = self.outbox.keyring().ok_or(Rejected::NotAuthentic)?;
        // Whoever recorded a group's datagrams can send them to any socket of whoever has the key.
        if !self.in_group || header.has(flags::CREDIT) || header.mode().is_reliable() {
            return Err(Rejected::NotAuthentic);
        }
        if let Some((seal, from)) = self.groups.find(header) {
            let body = seal.open(header, datagram)?;
            self.groups.touch(header);
            return Ok(Authenticated { from, of_group: true, body });
        }
        let (seal, body) = FlowSeal::open_of_group(keyring, header, datagram)?;
        self.groups.add(from, header, seal);
        Ok(Authenticated { from, of_group: true, body })
    }

    /// Returns whether a datagram's flow was forgotten since it was opened: without keys it cannot
    /// go on.
    fn is_orphan(&mut self, from: SocketAddr, header: &Header) -> bool {
        !header.kind.is_answer() && self.receptions.seal(from, header).is_none()
    }

    /// Takes what was opened. What was taken is a replay when it comes again.
    fn on_authentic(&mut self, arrived: &Arrived<'_>, of_group: bool) -> Result<(), Malformed> {
        let header = arrived.header;
        let taken = self.on_opened(arrived)?;
        if taken == Taken::Taken && matches!(header.kind, Kind::Data | Kind::Parity) {
            let seal = if of_group {
                self.groups.find(header).map(|(seal, _)| seal)
            } else {
                self.receptions.seal(arrived.from, header)
            };
            if let Some(seal) = seal {
                seal.taken(header.sequence);
            }
        }
        Ok(())
    }

    fn reject(&mut self, from: SocketAddr, header: &Header, cause: Rejected) {
        match cause {
            Rejected::NotAuthentic => self.dropped.not_authentic += 1,
            Rejected::Replayed => {
                self.dropped.replayed += 1;
                self.inbox.on_replay(from, header);
            }
        }
    }
}
