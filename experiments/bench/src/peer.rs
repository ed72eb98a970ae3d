//! One connection under load: a publisher, a subscriber, or both (the paper's publishers also
//! consume their replies), and what the broker says to them.

use bytes::Bytes;
use quelea_amqp_codec::method::Method;
use std::sync::atomic::Ordering;

use crate::client;
use crate::clock::now_ns;
use crate::control::{Gauge, Records};
use crate::error::BenchError;
use crate::inbox::{Confirm, Delivery, Sink};
use crate::link::Link;
use crate::publisher::Publisher;
use crate::subscriber::Subscriber;

/// Messages that a publisher with small writes (`--batch`) sends before others get their turn.
const SMALL_WRITES_MAX: u64 = 64;

/// What a connection's deliveries are.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// There are none.
    Nothing,
    /// The benchmark's messages.
    Messages(Subscriber),
    /// Replies to this connection's publisher.
    Replies,
}

/// A connection with its roles.
#[derive(Debug)]
pub(crate) struct Peer {
    pub link: Link,
    pub publisher: Option<Publisher>,
    pub incoming: Incoming,
    is_blocked: bool,
}

impl Peer {
    pub(crate) const fn new(link: Link, publisher: Option<Publisher>, incoming: Incoming) -> Self {
        Self { link, publisher, incoming, is_blocked: false }
    }

    /// Publishes what is due and writes what the socket takes.
    pub(crate) fn send(&mut self, now: u64, gauge: &Gauge) -> Result<(), BenchError> {
        let mut sent = 0;
        loop {
            let mut goes_on = false;
            if let Some(publisher) = &mut self.publisher {
                let count = publisher.fill(&mut self.link.output, now);
                sent += count;
                goes_on = count > 0 && publisher.writes_small() && sent < SMALL_WRITES_MAX;
            }
            if self.link.has_output() && !self.link.write()? {
                goes_on = false;
            }
            if !goes_on {
                break;
            }
        }
        if sent > 0 {
            Gauge::add(&gauge.sent, sent);
            gauge.last_ns.store(now, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Takes what has arrived.
    pub(crate) fn receive(
        &mut self,
        records: &mut Records,
        gauge: &Gauge,
    ) -> Result<(), BenchError> {
        let Self { link, publisher, incoming, is_blocked } = self;
        // Acknowledgements and replies are collected apart, since the link is being read.
        let mut output = std::mem::take(&mut link.output);
        let mut tally = Tally::default();
        let mut reading = Reading {
            publisher: publisher.as_mut(),
            incoming,
            is_blocked,
            records,
            output: &mut output,
            tally: &mut tally,
            now: 0,
        };
        let result = link.read(&mut reading);
        link.output = output;
        tally.add_to(gauge);
        result
    }

    /// Acknowledges what was received, and begins to end the connection in order.
    pub(crate) fn say_goodbye(&mut self) {
        if let Incoming::Messages(subscriber) = &mut self.incoming {
            subscriber.acknowledge_all(&mut self.link.output);
        }
        self.link.say_goodbye();
    }

    pub(crate) const fn is_blocked(&self) -> bool {
        self.is_blocked
    }

    /// Returns whether the socket should be asked if it takes more.
    pub(crate) fn wants_to_write(&self, now: u64) -> bool {
        self.link.has_output() || self.wakes_at(now).is_some_and(|at| at <= now)
    }

    /// Returns when its publisher can go on without hearing from the broker.
    pub(crate) fn wakes_at(&self, now: u64) -> Option<u64> {
        self.publisher.as_ref().and_then(|publisher| publisher.wakes_at(now))
    }

    /// Returns whether all is written and its publisher is finished. A peer without a publisher
    /// never finishes by itself, so it does not hold up the others.
    pub(crate) fn is_finished(&self) -> bool {
        !self.link.has_output() && self.publisher.as_ref().is_none_or(Publisher::is_finished)
    }
}

/// What one read brought; added to the gauge once.
#[derive(Debug, Default)]
struct Tally {
    received: u64,
    confirmed: u64,
    refused: u64,
    returned: u64,
    last_ns: u64,
}

impl Tally {
    fn add_to(&self, gauge: &Gauge) {
        Gauge::add(&gauge.received, self.received);
        Gauge::add(&gauge.confirmed, self.confirmed);
        Gauge::add(&gauge.refused, self.refused);
        Gauge::add(&gauge.returned, self.returned);
        if self.last_ns > 0 {
            gauge.last_ns.store(self.last_ns, Ordering::Relaxed);
        }
    }
}

/// The sink of a connection's reads. `now` is read once per read, after it.
struct Reading<'a> {
    publisher: Option<&'a mut Publisher>,
    incoming: &'a mut Incoming,
    is_blocked: &'a mut bool,
    records: &'a mut Records,
    output: &'a mut Vec<u8>,
    tally: &'a mut Tally,
    now: u64,
}

impl Sink for Reading<'_> {
    type Error = BenchError;

    fn arrived(&mut self) {
        self.now = now_ns();
    }

    fn delivery(&mut self, delivery: Delivery) -> Result<(), BenchError> {
        self.tally.last_ns = self.now;
        match &mut self.incoming {
            Incoming::Messages(subscriber) => {
                self.tally.received += 1;
                if delivery.stamp != 0 {
                    self.records.delivery.record_since(delivery.stamp, self.now);
                }
                subscriber.take(delivery, self.output);
            }
            Incoming::Replies => {
                let publisher = self.publisher.as_mut();
                if let Some(round_trip) = publisher.and_then(|p| p.reply(&delivery, self.now)) {
                    self.records.confirm.record(round_trip);
                }
            }
            Incoming::Nothing => {
                return Err(client::unexpected("nothing: a delivery without a consumer"));
            }
        }
        Ok(())
    }

    fn confirm(&mut self, confirm: Confirm) -> Result<(), BenchError> {
        let Some(window) = self.publisher.as_mut().and_then(|publisher| publisher.window()) else {
            return Err(client::unexpected("nothing: a confirm that was not asked for"));
        };
        let (now, latencies) = (self.now, &mut self.records.confirm);
        let mut count = 0;
        window.settle(confirm, |stamp| {
            latencies.record_since(stamp, now);
            count += 1;
        })?;
        self.tally.last_ns = now;
        if confirm.accepted {
            self.tally.confirmed += count;
        } else {
            self.tally.refused += count;
        }
        Ok(())
    }

    fn returned(&mut self) {
        self.tally.returned += 1;
    }

    fn control(&mut self, _channel: u16, payload: &[u8]) -> Result<(), BenchError> {
        match client::decode(&Bytes::copy_from_slice(payload))? {
            Method::ConnectionClose(close) => Err(client::connection_closed(&close)),
            Method::ChannelClose(close) => Err(client::channel_closed(&close)),
            Method::BasicCancel(cancel) => {
                Err(BenchError::ConsumerCancelled { consumer_tag: cancel.consumer_tag.to_string() })
            }
            Method::ConnectionBlocked(_) => {
                *self.is_blocked = true;
                Ok(())
            }
            Method::ConnectionUnblocked(_) => {
                *self.is_blocked = false;
                Ok(())
            }
            // Anything else was not asked for, and is harmless.
            _ => Ok(()),
        }
    }
}
