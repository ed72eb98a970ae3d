//! What comes to an endpoint that shares a key with its peers. Everything is opened in place before the
//! buffer is shared, so that nothing is copied.

use core::net::SocketAddr;
use core::ops::Range;

use bytes::BytesMut;

use super::Endpoint;
use super::receiving::segments;
use crate::inbox::{Arrived, Taken};
use crate::seal::{FlowSeal, Rejected};
use crate::time::Time;
use crate::wire::{Header, Kind, Malformed, flags};

/// Where a datagram was opened: its place in the buffer, and its body's.
#[derive(Debug)]
pub(super) struct Opened {
    header: Header,
    place: Range<usize>,
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
                    Ok(Some(body)) => {
                        let body = place.start + body.start..place.start + body.end;
                        opened.push(Opened { header, place, body });
                    }
                    Err(cause) => self.reject(from, &header, cause),
                },
                Err(cause) => self.dropped.count(cause),
            }
        }
        let buffer = bytes.freeze();
        let mut forgotten = false;
        for Opened { header, place, body } in opened.drain(..) {
            let (header, bytes) = (&header, place.len());
            if forgotten && self.is_orphan(from, header) {
                self.reject(from, header, Rejected::NotAuthentic);
                continue;
            }
            let taken =
                self.on_authentic(&Arrived { from, header, buffer: &buffer, body, bytes, now });
            if let Err(cause) = taken {
                self.dropped.count(cause);
            }
            forgotten |= self.inbox.forget_keys(&mut self.receptions);
        }
        self.opened = opened;
    }

    /// Opens a datagram in place, and says where its body is. None for a HELLO or CHALLENGE, which are
    /// dealt with here.
    fn open(
        &mut self,
        from: SocketAddr,
        header: &Header,
        datagram: &mut [u8],
        now: Time,
    ) -> Result<Option<Range<usize>>, Rejected> {
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
            return Ok(Some(body));
        }
        let Some(slot) = self.outbox.find_answered(from, header) else { return Ok(None) };
        if header.kind == Kind::Challenge {
            self.outbox.on_challenge(slot, header, datagram, now)?;
            return Ok(None);
        }
        self.outbox.open_answer(slot, header, datagram).map(Some)
    }

    /// A group's members have no handshake: its keys follow from the datagram's head.
    fn open_of_group(
        &mut self,
        from: SocketAddr,
        header: &Header,
        datagram: &mut [u8],
    ) -> Result<Range<usize>, Rejected> {
        let keyring = self.outbox.keyring().ok_or(Rejected::NotAuthentic)?;
        if header.has(flags::CREDIT) || header.mode().is_reliable() {
            return Err(Rejected::NotAuthentic);
        }
        let mut seal = FlowSeal::group_receiver(keyring, header.session, header.flow);
        let body = seal.open(header, datagram)?;
        self.receptions.join_group(from, header, seal);
        Ok(body)
    }

    /// Whether a datagram's flow was forgotten since it was opened: without keys it cannot go on.
    fn is_orphan(&mut self, from: SocketAddr, header: &Header) -> bool {
        !header.kind.is_answer() && self.receptions.seal(from, header).is_none()
    }

    /// Takes what was opened. What was taken is a replay when it comes again.
    fn on_authentic(&mut self, arrived: &Arrived<'_>) -> Result<(), Malformed> {
        let header = arrived.header;
        let taken = self.on_opened(arrived)?;
        if taken == Taken::Taken
            && matches!(header.kind, Kind::Data | Kind::Parity)
            && let Some(seal) = self.receptions.seal(arrived.from, header)
        {
            seal.taken(header.sequence);
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
