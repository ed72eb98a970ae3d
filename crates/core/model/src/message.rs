//! A message as it travels and as it is stored: routing facts, wire-shaped properties, body.

use bytes::Bytes;

use crate::limits::SHORT_STRING_BYTES_MAX;
use crate::properties::PropertyView;
use crate::resident::{Resident, SharedBodies};

/// Up to this many bytes of head and body are copied into one allocation of their own, so that a
/// small message neither pins the read buffer it came in nor needs two reference counts.
const COMPACT_BYTES_MAX: usize = 16 * 1024;

/// One message. Immutable; queues share it through an `Arc`.
///
/// The head is `exchange, routing key, properties` back to back. Properties keep the shape of the
/// AMQP content header (AMQP 0-9-1 §4.2.6.1): the flag words, then the values.
#[derive(Clone, Debug)]
pub struct Message {
    head: Bytes,
    /// Empty when the body follows the head in `head` itself.
    separate_body: Bytes,
    exchange_len: u8,
    routing_key_len: u8,
    head_len: u32,
    /// The separate body is counted by a [`SharedBodies`].
    is_body_shared: bool,
}

impl Message {
    /// Builds a message. Copies everything when it is small, shares `body` otherwise.
    ///
    /// `properties` are wire-shaped: at least the two bytes of an empty flag word.
    ///
    /// # Panics
    /// If `exchange` or `routing_key` is longer than a short string; fronts check that on parsing.
    #[must_use]
    pub fn new(exchange: &str, routing_key: &str, properties: &[u8], body: Bytes) -> Self {
        assert!(exchange.len() <= SHORT_STRING_BYTES_MAX, "exchange is a short string");
        assert!(routing_key.len() <= SHORT_STRING_BYTES_MAX, "routing key is a short string");
        let head_len = exchange.len() + routing_key.len() + properties.len();
        let compact = head_len + body.len() <= COMPACT_BYTES_MAX;
        let mut head = Vec::with_capacity(head_len + if compact { body.len() } else { 0 });
        head.extend_from_slice(exchange.as_bytes());
        head.extend_from_slice(routing_key.as_bytes());
        head.extend_from_slice(properties);
        if compact {
            head.extend_from_slice(&body);
        }
        Self {
            head: Bytes::from(head),
            separate_body: if compact { Bytes::new() } else { body },
            exchange_len: exchange.len() as u8,
            routing_key_len: routing_key.len() as u8,
            head_len: head_len as u32,
            is_body_shared: false,
        }
    }

    /// Creates a message that several queues will hold: a large body is counted by `bodies` from
    /// now on.
    ///
    /// # Panics
    /// As [`Self::new`].
    #[must_use]
    pub fn new_shared(
        exchange: &str,
        routing_key: &str,
        properties: &[u8],
        body: Bytes,
        bodies: &SharedBodies,
    ) -> Self {
        let mut message = Self::new(exchange, routing_key, properties, body);
        if !message.separate_body.is_empty() {
            message.separate_body = bodies.count(message.separate_body);
            message.is_body_shared = true;
        }
        message
    }

    /// Returns the exchange it was published to; empty for the default exchange.
    #[must_use]
    pub fn exchange(&self) -> &str {
        text(self.exchange_bytes())
    }

    /// Returns the exchange's name as bytes, for those who only copy it.
    #[must_use]
    #[inline]
    pub fn exchange_bytes(&self) -> &[u8] {
        &self.head[..self.exchange_len as usize]
    }

    /// Returns the routing key it was published with.
    #[must_use]
    pub fn routing_key(&self) -> &str {
        text(self.routing_key_bytes())
    }

    /// Returns the routing key as bytes, for those who only copy it.
    #[must_use]
    #[inline]
    pub fn routing_key_bytes(&self) -> &[u8] {
        let from = self.exchange_len as usize;
        &self.head[from..from + self.routing_key_len as usize]
    }

    /// Returns the wire-shaped properties, ready for a content header frame.
    #[must_use]
    #[inline]
    pub fn properties(&self) -> &[u8] {
        let from = self.exchange_len as usize + self.routing_key_len as usize;
        &self.head[from..self.head_len as usize]
    }

    /// Returns exchange, routing key and properties back to back, as the log stores them.
    #[must_use]
    pub fn head(&self) -> &[u8] {
        &self.head[..self.head_len as usize]
    }

    /// Returns the length of the exchange's name in the head, in bytes.
    #[must_use]
    pub const fn exchange_len(&self) -> u8 {
        self.exchange_len
    }

    /// Returns the length of the routing key in the head, in bytes.
    #[must_use]
    pub const fn routing_key_len(&self) -> u8 {
        self.routing_key_len
    }

    /// Returns a view that decodes single properties on demand.
    #[must_use]
    pub fn property_view(&self) -> PropertyView<'_> {
        PropertyView::new(self.properties())
    }

    /// Returns the body.
    #[must_use]
    #[inline]
    pub fn body(&self) -> &[u8] {
        if self.separate_body.is_empty() {
            &self.head[self.head_len as usize..]
        } else {
            &self.separate_body
        }
    }

    /// Returns the body as shared bytes, for writing it out without a copy.
    #[must_use]
    pub fn body_bytes(&self) -> Bytes {
        if self.separate_body.is_empty() {
            self.head.slice(self.head_len as usize..)
        } else {
            self.separate_body.clone()
        }
    }

    /// Returns the same as [`Self::resident_bytes`], and what of it is counted elsewhere.
    #[must_use]
    pub fn resident(&self) -> Resident {
        let shared = if self.is_body_shared { self.separate_body.len() } else { 0 };
        Resident { all: self.resident_bytes(), shared }
    }

    /// Returns the bytes that this message keeps in memory, with a fair share of bookkeeping.
    #[must_use]
    pub fn resident_bytes(&self) -> usize {
        self.head.len() + self.separate_body.len() + size_of::<Self>() + 2 * size_of::<usize>() + 32
    }
}

/// Returns a part of a head as text. Only UTF-8 ever enters a head.
fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("names were UTF-8 when the message was built")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_large_message_shares_its_body() {
        for len in [0, 1, 100, COMPACT_BYTES_MAX - 9, 100_000] {
            let body = Bytes::from(vec![7; len]);
            let message = Message::new("logs", "a.b", &[0, 0], body.clone());
            assert_eq!(message.exchange(), "logs");
            assert_eq!(message.routing_key(), "a.b");
            assert_eq!(message.properties(), [0, 0]);
            assert_eq!(message.body(), &body[..]);
            assert_eq!(message.body_bytes(), body);
            let shared = len > 0 && message.body().as_ptr() == body.as_ptr();
            assert_eq!(shared, len > COMPACT_BYTES_MAX);
        }
    }
}
