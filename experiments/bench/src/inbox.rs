//! Parses what a broker sends, in bulk and without allocation: from a delivery only its tag, its
//! stamp and its end matter; everything that is not on the hot path goes to the caller as it is.

use std::sync::Arc;

use quelea_model::Properties;

use crate::template::{
    FRAME_BODY, FRAME_END, FRAME_HEADER, FRAME_HEARTBEAT, FRAME_METHOD, FRAME_OVERHEAD, STAMP_BYTES,
};

/// A method or header frame beyond this size is refused; [`crate::link`]'s buffer holds it.
pub(crate) const WHOLE_FRAME_BYTES_MAX: usize = 192 * 1024;

const BASIC_RETURN: u32 = 60 << 16 | 50;
const BASIC_DELIVER: u32 = 60 << 16 | 60;
const BASIC_ACK: u32 = 60 << 16 | 80;
const BASIC_NACK: u32 = 60 << 16 | 120;
const FLAGS_TIMESTAMP: u16 = 0x0040;
const FLAGS_MODE_AND_TIMESTAMP: u16 = 0x1040;

/// The broker sent something that is not AMQP 0-9-1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the broker broke the protocol: {0}")]
pub struct ProtocolError(pub(crate) String);

/// A message that has arrived as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Delivery {
    pub tag: u64,
    /// When it was (to be) sent; 0 if it does not say.
    pub stamp: u64,
    pub size: u64,
    /// It has another body than [`Inbox::expect`] was given.
    pub is_damaged: bool,
}

/// A broker's word on a published message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Confirm {
    pub tag: u64,
    pub multiple: bool,
    /// `basic.ack`; otherwise `basic.nack`.
    pub accepted: bool,
}

/// Takes what the parser finds, in its order.
pub(crate) trait Sink {
    type Error: From<ProtocolError>;
    /// Bytes have been read, and are about to be parsed: the time of arrival.
    fn arrived(&mut self) {}
    fn delivery(&mut self, delivery: Delivery) -> Result<(), Self::Error>;
    fn confirm(&mut self, confirm: Confirm) -> Result<(), Self::Error>;
    /// A mandatory message came back.
    fn returned(&mut self);
    /// Takes any other method, undecoded.
    fn control(&mut self, channel: u16, payload: &[u8]) -> Result<(), Self::Error>;
}

/// The parser's place in the stream between two reads.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    content: Option<Content>,
    /// Bytes of a body frame (with its end octet) that are still to be passed over.
    skip: usize,
    /// What bodies are, but for their stamps.
    expected: Option<Arc<[u8]>>,
}

#[derive(Debug)]
struct Content {
    returned: bool,
    has_header: bool,
    delivery: Delivery,
    remaining: u64,
    /// Bytes of the body that were passed over.
    passed: usize,
}

impl Inbox {
    /// From now on each body is compared with this one, but for its stamp.
    pub(crate) fn expect(&mut self, body: Option<Arc<[u8]>>) {
        self.expected = body;
    }

    /// Takes as much of `data` as is complete and says how many bytes that was.
    pub(crate) fn parse<S: Sink>(&mut self, data: &[u8], sink: &mut S) -> Result<usize, S::Error> {
        let mut at = 0;
        loop {
            if self.skip > 0 {
                let step = self.skip.min(data.len() - at);
                self.compare(&data[at..at + step]);
                at += step;
                self.skip -= step;
                if self.skip > 0 {
                    return Ok(at);
                }
                check_end(data[at - 1])?;
                self.finish_if_complete(sink)?;
                continue;
            }
            let rest = &data[at..];
            let Some(head) = rest.first_chunk::<{ FRAME_OVERHEAD - 1 }>() else { return Ok(at) };
            let size = u32::from_be_bytes([head[3], head[4], head[5], head[6]]) as usize;
            let kind = head[0];
            if kind == FRAME_BODY {
                if !self.begin_body(size, &rest[head.len()..])? {
                    return Ok(at);
                }
                at += head.len();
                continue;
            }
            if size > WHOLE_FRAME_BYTES_MAX {
                return Err(odd(format!("a frame of type {kind} with {size} bytes")).into());
            }
            let Some(frame) = rest.get(..size + FRAME_OVERHEAD) else { return Ok(at) };
            check_end(frame[frame.len() - 1])?;
            let payload = &frame[head.len()..frame.len() - 1];
            let channel = u16::from_be_bytes([head[1], head[2]]);
            match kind {
                FRAME_METHOD => self.method(channel, payload, sink)?,
                FRAME_HEADER => {
                    self.header(payload)?;
                    self.finish_if_complete(sink)?;
                }
                FRAME_HEARTBEAT => {}
                _ => return Err(odd(format!("frame type {kind}")).into()),
            }
            at += frame.len();
        }
    }

    fn method<S: Sink>(
        &mut self,
        channel: u16,
        payload: &[u8],
        sink: &mut S,
    ) -> Result<(), S::Error> {
        let Some((id, arguments)) = payload.split_first_chunk::<4>() else {
            return Err(odd("a method frame without a method".to_owned()).into());
        };
        match u32::from_be_bytes(*id) {
            BASIC_DELIVER => {
                let tag = delivery_tag(arguments)
                    .ok_or_else(|| odd("a short basic.deliver".to_owned()))?;
                self.content = Some(Content::begin(false, tag));
            }
            BASIC_RETURN => self.content = Some(Content::begin(true, 0)),
            method @ (BASIC_ACK | BASIC_NACK) => {
                let (Some((tag, flags)), accepted) =
                    (arguments.split_first_chunk::<8>(), method == BASIC_ACK)
                else {
                    return Err(odd("a short basic.ack".to_owned()).into());
                };
                let multiple = flags.first().is_some_and(|bits| bits & 1 == 1);
                sink.confirm(Confirm { tag: u64::from_be_bytes(*tag), multiple, accepted })?;
            }
            _ => sink.control(channel, payload)?,
        }
        Ok(())
    }

    /// Takes a content header: class, weight, body size, properties (AMQP 0-9-1 §4.2.6.1).
    fn header(&mut self, payload: &[u8]) -> Result<(), ProtocolError> {
        let content = match &mut self.content {
            Some(content) if !content.has_header => content,
            _ => return Err(odd("a content header where none belongs".to_owned())),
        };
        let Some((size, properties)) = payload.get(4..).and_then(|p| p.split_first_chunk::<8>())
        else {
            return Err(odd("a short content header".to_owned()));
        };
        content.has_header = true;
        content.delivery.size = u64::from_be_bytes(*size);
        content.remaining = content.delivery.size;
        if content.delivery.size < STAMP_BYTES as u64 {
            content.delivery.stamp = stamp_property(properties);
        }
        Ok(())
    }

    /// Notes a body frame and its stamp and leaves its payload to be skipped; false if the stamp
    /// has not arrived yet.
    fn begin_body(&mut self, size: usize, payload: &[u8]) -> Result<bool, ProtocolError> {
        let content = match &mut self.content {
            Some(content) if content.has_header && content.remaining >= size as u64 => content,
            _ => return Err(odd(format!("a body frame of {size} bytes where none belongs"))),
        };
        let first = content.remaining == content.delivery.size;
        if first && size >= STAMP_BYTES {
            let Some(stamp) = payload.first_chunk::<STAMP_BYTES>() else { return Ok(false) };
            content.delivery.stamp = u64::from_be_bytes(*stamp);
        }
        content.remaining -= size as u64;
        self.skip = size + 1;
        Ok(true)
    }

    /// Looks at bytes that are passed over: of a body frame, the last of them being its end octet.
    fn compare(&mut self, bytes: &[u8]) {
        let (Some(expected), Some(content)) = (&self.expected, &mut self.content) else { return };
        let bytes = &bytes[..bytes.len().min(self.skip - 1)];
        let from = content.passed;
        content.passed += bytes.len();
        // The stamp, where it is in the body.
        let stamp = if expected.len() < STAMP_BYTES { 0 } else { STAMP_BYTES.saturating_sub(from) };
        let stamp = stamp.min(bytes.len());
        let wanted = expected.get(from + stamp..from + bytes.len());
        content.delivery.is_damaged |= wanted != Some(&bytes[stamp..]);
    }

    fn finish_if_complete<S: Sink>(&mut self, sink: &mut S) -> Result<(), S::Error> {
        if let Some(mut content) = self.content.take_if(|c| c.has_header && c.remaining == 0) {
            let size = self.expected.as_ref().map(|body| body.len() as u64);
            content.delivery.is_damaged |= size.is_some_and(|size| size != content.delivery.size);
            if content.returned {
                sink.returned();
            } else {
                sink.delivery(content.delivery)?;
            }
        }
        Ok(())
    }
}

impl Content {
    const fn begin(returned: bool, tag: u64) -> Self {
        let delivery = Delivery { tag, stamp: 0, size: 0, is_damaged: false };
        Self { returned, has_header: false, delivery, remaining: 0, passed: 0 }
    }
}

/// Returns the tag behind the consumer tag in the arguments of `basic.deliver`.
fn delivery_tag(arguments: &[u8]) -> Option<u64> {
    let (length, rest) = arguments.split_first()?;
    let tag = rest.get(usize::from(*length)..)?.first_chunk::<8>()?;
    Some(u64::from_be_bytes(*tag))
}

/// Returns the property `timestamp`, 0 if there is none. The two shapes that this generator
/// publishes are read in place; a broker that added headers (`x-delivery-count`) costs a real
/// decoding.
fn stamp_property(properties: &[u8]) -> u64 {
    let Some((flags, values)) = properties.split_first_chunk::<2>() else { return 0 };
    let value = match u16::from_be_bytes(*flags) {
        FLAGS_TIMESTAMP => values.first_chunk::<8>(),
        FLAGS_MODE_AND_TIMESTAMP => values.get(1..).and_then(|v| v.first_chunk::<8>()),
        0 => None,
        _ => return Properties::decode(properties).ok().and_then(|p| p.timestamp).unwrap_or(0),
    };
    value.map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

fn check_end(octet: u8) -> Result<(), ProtocolError> {
    if octet == FRAME_END {
        return Ok(());
    }
    Err(odd(format!("a frame ends in {octet:#04x} instead of 0xce")))
}

const fn odd(what: String) -> ProtocolError {
    ProtocolError(what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::{Message, Template, push_frame};

    #[derive(Debug, Default, PartialEq)]
    struct Found {
        deliveries: Vec<Delivery>,
        confirms: Vec<Confirm>,
        returned: usize,
        control: Vec<(u16, Vec<u8>)>,
    }

    impl Sink for Found {
        type Error = ProtocolError;

        fn delivery(&mut self, delivery: Delivery) -> Result<(), ProtocolError> {
            self.deliveries.push(delivery);
            Ok(())
        }

        fn confirm(&mut self, confirm: Confirm) -> Result<(), ProtocolError> {
            self.confirms.push(confirm);
            Ok(())
        }

        fn returned(&mut self) {
            self.returned += 1;
        }

        fn control(&mut self, channel: u16, payload: &[u8]) -> Result<(), ProtocolError> {
            self.control.push((channel, payload.to_vec()));
            Ok(())
        }
    }

    /// A delivery as a broker would send it: the publish frames behind another method.
    fn push_delivery(out: &mut Vec<u8>, method: u8, tag: u64, stamp: u64, size: usize) {
        let message = Message {
            channel: 1,
            exchange: "",
            routing_key: "q",
            size,
            persistent: true,
            mandatory: false,
            stamped: true,
        };
        let mut publish = Vec::new();
        Template::new(&message, 4096).append(&mut publish, stamp);
        let mut payload = vec![0, 60, 0, method, 2, b'c', b't'];
        payload.extend_from_slice(&tag.to_be_bytes());
        payload.extend_from_slice(&[0, 0, 1, b'q']);
        push_frame(out, FRAME_METHOD, 1, &payload);
        let method_bytes = u32::from_be_bytes(publish[3..7].try_into().unwrap()) as usize;
        out.extend_from_slice(&publish[method_bytes + FRAME_OVERHEAD..]);
    }

    fn stream() -> (Vec<u8>, Found) {
        let mut out = Vec::new();
        let mut expected = Found::default();
        for (tag, size) in [(1, 16), (2, 1), (3, 0), (4, 8), (5, 10_000), (6, 4088)] {
            push_delivery(&mut out, 60, tag, 99 + tag, size);
            let delivery = Delivery { tag, stamp: 99 + tag, size: size as u64, is_damaged: false };
            expected.deliveries.push(delivery);
        }
        push_frame(&mut out, FRAME_HEARTBEAT, 0, &[]);
        push_frame(&mut out, FRAME_METHOD, 1, &[0, 60, 0, 80, 0, 0, 0, 0, 0, 0, 0, 9, 1]);
        expected.confirms.push(Confirm { tag: 9, multiple: true, accepted: true });
        push_frame(&mut out, FRAME_METHOD, 1, &[0, 60, 0, 120, 0, 0, 0, 0, 0, 0, 0, 10, 0]);
        expected.confirms.push(Confirm { tag: 10, multiple: false, accepted: false });
        push_delivery(&mut out, 50, 0, 0, 20);
        expected.returned = 1;
        push_frame(&mut out, FRAME_METHOD, 0, &[0, 10, 0, 61]);
        expected.control.push((0, vec![0, 10, 0, 61]));
        (out, expected)
    }

    #[test]
    fn a_stream_is_understood_however_it_is_cut() {
        let (bytes, expected) = stream();
        for step in [1, 2, 3, 7, 8, 100, 4096, bytes.len()] {
            let (mut inbox, mut found) = (Inbox::default(), Found::default());
            let (mut start, mut end) = (0, 0);
            while start < bytes.len() {
                end = (end + step).min(bytes.len());
                start += inbox.parse(&bytes[start..end], &mut found).unwrap();
            }
            assert_eq!(found, expected, "step {step}");
        }
    }

    #[test]
    fn what_is_not_amqp_is_refused_with_words() {
        let frame = |kind: u8, payload: &[u8]| {
            let mut out = Vec::new();
            push_frame(&mut out, kind, 1, payload);
            out
        };
        let mut unended = frame(FRAME_HEARTBEAT, &[]);
        unended[7] = 0;
        let huge = vec![FRAME_METHOD, 0, 1, 0xff, 0xff, 0xff, 0xff];
        let cases = [
            (unended, "ends in 0x00"),
            (frame(9, &[]), "frame type 9"),
            (huge, "4294967295 bytes"),
            (frame(FRAME_METHOD, &[0, 60]), "without a method"),
            (frame(FRAME_METHOD, &[0, 60, 0, 60, 9, 1]), "short basic.deliver"),
            (frame(FRAME_METHOD, &[0, 60, 0, 80, 9, 1]), "short basic.ack"),
            (frame(FRAME_HEADER, &[0, 60]), "header where none belongs"),
            (frame(FRAME_BODY, &[1]), "body frame of 1 bytes where none belongs"),
        ];
        for (bytes, expected) in cases {
            let error = Inbox::default().parse(&bytes, &mut Found::default()).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        }
    }

    #[test]
    fn a_stamp_behind_headers_that_a_broker_added_is_still_found() {
        let mut headers = quelea_model::Table::new();
        headers.set("x-delivery-count", quelea_model::Value::I64(1));
        let properties =
            Properties { headers: Some(headers), timestamp: Some(42), ..Properties::default() };
        assert_eq!(stamp_property(&properties.to_bytes()), 42);
        assert_eq!(stamp_property(&Properties::default().to_bytes()), 0);
    }
}
