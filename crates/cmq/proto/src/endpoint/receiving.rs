//! What comes to an endpoint: each datagram goes, by its kind, to the inbox or to the flight of the
//! destination that it answers. Nothing that comes can do more than be counted and dropped.

use core::net::SocketAddr;
use core::ops::Range;

use bytes::Bytes;

use super::{Buffer, Delivery, DeliveryToken, Endpoint, Event, MailboxError};
use crate::Time;
use crate::classic::{self, Element};
use crate::config::MailboxOptions;
use crate::inbox::{Arrived, Taken};
use crate::key::Mailbox;
use crate::wire::handshake::Handshake;
use crate::wire::probe::Probe;
use crate::wire::refusal::Refusal;
use crate::wire::status::Status;
use crate::wire::{HEADER_BYTES, Header, Kind, Malformed, flags};

impl Endpoint {
    /// Opens a mailbox.
    ///
    /// # Errors
    /// It is open, or there are too many.
    pub fn open_mailbox(
        &mut self,
        mailbox: Mailbox,
        options: MailboxOptions,
    ) -> Result<(), MailboxError> {
        self.inbox.open(mailbox, &options)
    }

    /// Opens one mailbox for all that are not opened by themselves; deliveries say which they were
    /// for. The broker's front takes any mailbox that way.
    ///
    /// # Errors
    /// It is open, or there are too many mailboxes.
    pub fn open_other_mailboxes(&mut self, options: MailboxOptions) -> Result<(), MailboxError> {
        self.inbox.open_others(&options)
    }

    /// Closes a mailbox and forgets its flows.
    pub fn close_mailbox(&mut self, mailbox: Mailbox) {
        self.inbox.close(mailbox);
        self.inbox.forget_keys(&mut self.receptions);
    }

    /// Closes the mailbox of all that are not opened by themselves, and forgets its flows.
    pub fn close_other_mailboxes(&mut self) {
        self.inbox.close_others();
        self.inbox.forget_keys(&mut self.receptions);
    }

    /// Whether the socket is in a multicast group. Only then is taken what nobody but a group's sender has
    /// sealed, and are losses reported of senders that prove nothing.
    pub const fn set_in_group(&mut self, in_group: bool) {
        self.in_group = in_group;
        self.inbox.set_in_group(in_group);
    }

    /// Returns the next delivery, for its mailbox's ring.
    pub fn poll_delivery(&mut self) -> Option<Delivery> {
        self.inbox.poll_delivery()
    }

    /// The application has taken a delivery out of its mailbox: its room is credit again.
    pub fn popped(&mut self, token: DeliveryToken, now: Time) {
        self.inbox.popped(token, now);
    }

    /// For mailboxes whose application acknowledges: this delivery and, in its flow, all before it.
    pub fn acknowledge(&mut self, token: DeliveryToken, now: Time) {
        self.inbox.acknowledge(token, now);
    }

    /// Returns what happened besides messages. Ask when there are no more deliveries.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.outbox.poll_event().or_else(|| self.inbox.poll_event())
    }

    /// Takes what the kernel gave in one buffer: a datagram, or a GRO train of `segment_bytes` each.
    /// With a key the buffer should be the endpoint's own ([`Endpoint::opens_in_place`]), or it is
    /// copied.
    pub fn on_datagrams(
        &mut self,
        from: SocketAddr,
        bytes: impl Into<Buffer>,
        segment_bytes: usize,
        now: Time,
    ) {
        self.on_buffer(from, bytes.into(), segment_bytes, now);
    }

    /// Returns whether what comes is changed where it lies.
    #[must_use]
    pub fn opens_in_place(&self) -> bool {
        self.element.is_none() && self.outbox.keyring().is_some()
    }

    fn on_buffer(&mut self, from: SocketAddr, bytes: Buffer, segment_bytes: usize, now: Time) {
        let segment_bytes = if segment_bytes == 0 { bytes.len().max(1) } else { segment_bytes };
        match self.element {
            Some(element) => self.on_lists(from, &bytes, segment_bytes, element),
            None if self.outbox.keyring().is_some() => {
                self.on_sealed(from, bytes.into_own(), segment_bytes, now);
            }
            None => {
                let buffer = bytes.into_shared();
                for place in segments(buffer.len(), segment_bytes) {
                    if let Err(cause) = self.on_plain(from, &buffer, place, now) {
                        self.dropped.count(cause);
                    }
                }
            }
        }
    }

    #[inline]
    fn on_plain(
        &mut self,
        from: SocketAddr,
        buffer: &Bytes,
        place: Range<usize>,
        now: Time,
    ) -> Result<Taken, Malformed> {
        let header = Header::parse(&buffer[place.clone()])?;
        if header.has(flags::SEALED) {
            self.dropped.not_authentic += 1;
            return Ok(Taken::Dropped);
        }
        let body = place.start + HEADER_BYTES..place.end;
        self.on_opened(&Arrived { from, header: &header, buffer, body, bytes: place.len(), now })
    }

    /// Takes a datagram that is what it says.
    #[inline]
    pub(super) fn on_opened(&mut self, arrived: &Arrived<'_>) -> Result<Taken, Malformed> {
        let body = &arrived.buffer[arrived.body.clone()];
        match arrived.header.kind {
            Kind::Data => return self.inbox.on_data(arrived),
            Kind::Parity => return self.inbox.on_parity(arrived),
            Kind::Probe => self.inbox.on_probe(arrived, &Probe::read(body)?),
            Kind::Hello => {
                if let Handshake::Cookie(cookie) = Handshake::read(body, false)? {
                    self.inbox.on_hello(arrived, cookie);
                }
            }
            Kind::Status | Kind::Challenge | Kind::Refusal => {
                if let Some(slot) = self.outbox.find_answered(arrived.from, arrived.header) {
                    self.on_answer(slot, arrived.header, body, arrived.now)?;
                }
            }
        }
        Ok(Taken::Taken)
    }

    /// Takes what receivers say.
    pub(super) fn on_answer(
        &mut self,
        slot: u32,
        header: &Header,
        body: &[u8],
        now: Time,
    ) -> Result<(), Malformed> {
        match header.kind {
            Kind::Status => {
                let status = Status::read(body)?;
                self.outbox.on_status(slot, header.sequence, &status, now);
            }
            Kind::Challenge => {
                if let Handshake::Cookie(cookie) = Handshake::read(body, false)? {
                    self.outbox.on_cookie(slot, cookie);
                }
            }
            Kind::Refusal => {
                Refusal::read(body)?;
                self.outbox.on_refusal(slot, now);
            }
            Kind::Data | Kind::Probe | Kind::Parity | Kind::Hello => {}
        }
        Ok(())
    }

    /// Takes the lists of the original library.
    #[cold]
    fn on_lists(&mut self, from: SocketAddr, bytes: &[u8], segment_bytes: usize, element: Element) {
        for place in segments(bytes.len(), segment_bytes) {
            let mut batch = Vec::new();
            match classic::reframe(&bytes[place], element, &mut batch) {
                Ok(count) => self.inbox.on_list(from, batch.into(), count),
                Err(cause) => self.dropped.count(cause),
            }
        }
    }
}

/// Returns where the datagrams of a buffer are. An empty buffer is one datagram too.
pub(super) fn segments(bytes: usize, segment_bytes: usize) -> impl Iterator<Item = Range<usize>> {
    (0..bytes.max(1))
        .step_by(segment_bytes)
        .map(move |start| start..(start + segment_bytes).min(bytes))
}
