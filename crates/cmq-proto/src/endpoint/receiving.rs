//! What comes to an endpoint: each datagram goes, by its kind, to the inbox or to the flight of the
//! destination that it answers. Nothing that comes can do more than be counted and dropped.

use core::net::SocketAddr;

use bytes::{Bytes, BytesMut};

use super::{Delivery, DeliveryToken, Endpoint, Event, MailboxError};
use crate::config::MailboxOptions;
use crate::inbox::Arrived;
use crate::key::Mailbox;
use crate::time::Time;
use crate::wire::challenge::Challenge;
use crate::wire::hello::Hello;
use crate::wire::probe::Probe;
use crate::wire::refusal::Refusal;
use crate::wire::status::Status;
use crate::wire::{HEADER_BYTES, Header, Kind, Malformed};

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
    /// There are too many mailboxes.
    pub fn open_other_mailboxes(&mut self, options: MailboxOptions) -> Result<(), MailboxError> {
        self.inbox.open_others(&options)
    }

    /// Closes a mailbox and forgets its flows.
    pub fn close_mailbox(&mut self, mailbox: Mailbox) {
        self.inbox.close(mailbox);
    }

    /// The next delivery, for its mailbox's ring.
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

    /// What happened besides messages. Ask when there are no more deliveries.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.outbox.poll_event().or_else(|| self.inbox.poll_event())
    }

    /// Takes what the kernel gave in one buffer: a datagram, or a GRO train of `segment_bytes` each.
    pub fn on_datagrams(
        &mut self,
        from: SocketAddr,
        bytes: BytesMut,
        segment_bytes: usize,
        now: Time,
    ) {
        let segment_bytes = if segment_bytes == 0 { bytes.len().max(1) } else { segment_bytes };
        let buffer = bytes.freeze();
        let mut start = 0;
        // An empty datagram is one too.
        loop {
            let end = (start + segment_bytes).min(buffer.len());
            if let Err(cause) = self.on_datagram(from, &buffer, start..end, now) {
                self.dropped.count(cause);
            }
            start = end;
            if start == buffer.len() {
                return;
            }
        }
    }

    #[inline]
    fn on_datagram(
        &mut self,
        from: SocketAddr,
        buffer: &Bytes,
        place: core::ops::Range<usize>,
        now: Time,
    ) -> Result<(), Malformed> {
        let header = Header::parse(&buffer[place.clone()])?;
        let body = place.start + HEADER_BYTES..place.end;
        let arrived = Arrived { from, header: &header, buffer, body, bytes: place.len(), now };
        if header.kind == Kind::Data {
            return self.inbox.on_data(&arrived).map(|_| ());
        }
        let body = &buffer[arrived.body.clone()];
        match header.kind {
            Kind::Probe => self.inbox.on_probe(&arrived, &Probe::read(body)?),
            Kind::Hello => {
                if let Hello::Cookie(cookie) = Hello::read(body, false)? {
                    self.inbox.on_hello(&arrived, cookie);
                }
            }
            _ => self.on_answer(from, &header, body, now)?,
        }
        Ok(())
    }

    /// What receivers say.
    fn on_answer(
        &mut self,
        from: SocketAddr,
        header: &Header,
        body: &[u8],
        now: Time,
    ) -> Result<(), Malformed> {
        let Some(slot) = self.outbox.find_answered(from, header) else { return Ok(()) };
        match header.kind {
            Kind::Status => {
                let status = Status::read(body)?;
                self.outbox.on_status(slot, header.sequence, &status, now);
            }
            Kind::Challenge => {
                if let Challenge::Cookie(cookie) = Challenge::read(body, false)? {
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
}
