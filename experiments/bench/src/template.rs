//! A publish command as ready-made frames: method, header, body. Publishing is one copy of these
//! bytes into the write buffer and one patch of eight bytes, the time stamp.

use bytes::BytesMut;
use quelea_model::Properties;

pub(crate) const FRAME_METHOD: u8 = 1;
pub(crate) const FRAME_HEADER: u8 = 2;
pub(crate) const FRAME_BODY: u8 = 3;
pub(crate) const FRAME_HEARTBEAT: u8 = 8;
/// The octet that ends every frame (AMQP 0-9-1 §4.2.3).
pub(crate) const FRAME_END: u8 = 0xCE;
/// Type, channel, size before the payload and the end octet behind it.
pub(crate) const FRAME_OVERHEAD: usize = 8;
/// Class and method of `basic.publish`, and the class alone in a content header.
const BASIC_PUBLISH: [u8; 4] = [0, 60, 0, 40];
const CLASS_BASIC: [u8; 2] = [0, 60];
/// A body at least this long carries the stamp in its first bytes; a shorter message carries it
/// in the property `timestamp`, so that even a message of one byte can be timed.
pub(crate) const STAMP_BYTES: usize = 8;
/// Hexadecimal digits of a stamp.
pub(crate) const UNIQUE_DIGITS: usize = 2 * STAMP_BYTES;
/// Where `basic.publish` with an empty exchange has its routing key: a frame's type, channel and size, the method's
/// numbers, reserved-1, and the lengths of two names.
const KEY_AT: usize = 7 + 4 + 2 + 2;

/// What is published again and again.
#[derive(Debug, Clone)]
pub(crate) struct Message<'a> {
    pub channel: u16,
    pub exchange: &'a str,
    pub routing_key: &'a str,
    pub size: usize,
    pub persistent: bool,
    pub mandatory: bool,
    /// Whether each copy carries the time at which it was (to be) sent.
    pub stamped: bool,
}

/// The frames of a [`Message`].
#[derive(Debug, Clone)]
pub(crate) struct Template {
    frames: Vec<u8>,
    stamp_at: Option<usize>,
    /// Where the routing key has [`UNIQUE_DIGITS`] digits that become the stamp's.
    digits_at: Option<usize>,
}

impl Template {
    /// Builds the frames for a connection whose negotiated frame limit is `frame_max` (at least
    /// 4096, AMQP 0-9-1 §4.2.3). Exchange and routing key were checked to be short strings.
    pub(crate) fn new(message: &Message<'_>, frame_max: usize) -> Self {
        let mut template = Self { frames: Vec::new(), stamp_at: None, digits_at: None };
        template.push_method(message);
        template.push_header(message);
        template.push_body(message, frame_max - FRAME_OVERHEAD);
        template
    }

    /// Lets each message have a routing key of its own: [`UNIQUE_DIGITS`] bytes of the key, from `offset` on, become its
    /// stamp in hexadecimal digits.
    pub(crate) fn with_unique_key(mut self, message: &Message<'_>, offset: usize) -> Self {
        debug_assert!(offset + UNIQUE_DIGITS <= message.routing_key.len());
        self.digits_at = Some(KEY_AT + message.exchange.len() + offset);
        self
    }

    /// Appends one message, stamped with `stamp`, to a write buffer.
    pub(crate) fn append(&self, out: &mut Vec<u8>, stamp: u64) {
        let start = out.len();
        out.extend_from_slice(&self.frames);
        if let Some(at) = self.stamp_at {
            out[start + at..start + at + STAMP_BYTES].copy_from_slice(&stamp.to_be_bytes());
        }
        if let Some(at) = self.digits_at {
            let digits = &mut out[start + at..start + at + UNIQUE_DIGITS];
            for (digit, shift) in digits.iter_mut().rev().zip((0..).step_by(4)) {
                *digit = b"0123456789abcdef"[(stamp >> shift) as usize & 15];
            }
        }
    }

    /// Returns the bytes on the wire for each message.
    #[cfg(test)]
    pub(crate) const fn wire_bytes(&self) -> usize {
        self.frames.len()
    }

    fn push_method(&mut self, message: &Message<'_>) {
        let mut payload = BASIC_PUBLISH.to_vec();
        payload.extend_from_slice(&[0, 0]); // reserved-1, once the access ticket
        for text in [message.exchange, message.routing_key] {
            let length = u8::try_from(text.len()).expect("names are checked in Plan and Paper");
            payload.push(length);
            payload.extend_from_slice(text.as_bytes());
        }
        payload.push(u8::from(message.mandatory)); // bit 0 mandatory, bit 1 immediate
        self.push_frame(FRAME_METHOD, message.channel, &payload);
    }

    fn push_header(&mut self, message: &Message<'_>) {
        let stamp_here = message.stamped && message.size < STAMP_BYTES;
        let properties = Properties {
            delivery_mode: message.persistent.then_some(2),
            timestamp: stamp_here.then_some(0),
            ..Properties::default()
        };
        let mut payload = BytesMut::from(&CLASS_BASIC[..]);
        payload.extend_from_slice(&[0, 0]); // weight, always 0
        payload.extend_from_slice(&(message.size as u64).to_be_bytes());
        properties.encode(&mut payload);
        self.push_frame(FRAME_HEADER, message.channel, &payload);
        if stamp_here {
            // Of the two properties set, timestamp is the last: it ends where the payload ends.
            self.stamp_at = Some(self.frames.len() - 1 - STAMP_BYTES);
        }
    }

    fn push_body(&mut self, message: &Message<'_>, payload_max: usize) {
        let body = body(message.size);
        if message.stamped && message.size >= STAMP_BYTES {
            self.stamp_at = Some(self.frames.len() + FRAME_OVERHEAD - 1);
        }
        for chunk in body.chunks(payload_max) {
            self.push_frame(FRAME_BODY, message.channel, chunk);
        }
    }

    fn push_frame(&mut self, kind: u8, channel: u16, payload: &[u8]) {
        push_frame(&mut self.frames, kind, channel, payload);
    }
}

/// Returns a message's body, but for its stamp: bytes that a compressing layer could not make
/// disappear, the same in every message.
pub(crate) fn body(size: usize) -> Vec<u8> {
    (0..size as u64).map(|i| (i.wrapping_mul(0x9E37_79B9) >> 24) as u8).collect()
}

/// Appends one frame. The payload is below the negotiated limit, so its length fits.
pub fn push_frame(out: &mut Vec<u8>, kind: u8, channel: u16, payload: &[u8]) {
    out.push(kind);
    out.extend_from_slice(&channel.to_be_bytes());
    out.extend_from_slice(&(payload.len() as u32).to_be_bytes());
    out.extend_from_slice(payload);
    out.push(FRAME_END);
}

/// Appends `basic.ack` of all deliveries up to `tag`.
pub fn push_ack(out: &mut Vec<u8>, channel: u16, tag: u64) {
    let mut payload = [0, 60, 0, 80, 0, 0, 0, 0, 0, 0, 0, 0, 1]; // …, tag, multiple
    payload[4..12].copy_from_slice(&tag.to_be_bytes());
    push_frame(out, FRAME_METHOD, channel, &payload);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(size: usize) -> Message<'static> {
        Message {
            channel: 1,
            exchange: "",
            routing_key: "q",
            size,
            persistent: false,
            mandatory: false,
            stamped: true,
        }
    }

    /// Splits frames into (kind, payload); panics where one is malformed.
    fn frames(mut bytes: &[u8]) -> Vec<(u8, Vec<u8>)> {
        let mut found = Vec::new();
        while !bytes.is_empty() {
            let size = u32::from_be_bytes(bytes[3..7].try_into().unwrap()) as usize;
            assert_eq!(bytes[7 + size], FRAME_END);
            assert_eq!(bytes[1..3], [0, 1]);
            found.push((bytes[0], bytes[7..7 + size].to_vec()));
            bytes = &bytes[size + FRAME_OVERHEAD..];
        }
        found
    }

    #[test]
    fn a_small_message_is_a_method_a_header_and_a_stamped_body() {
        let mut out = Vec::new();
        Template::new(&message(16), 4096).append(&mut out, 0x0102_0304_0506_0708);
        let found = frames(&out);
        assert_eq!(found[0], (FRAME_METHOD, vec![0, 60, 0, 40, 0, 0, 0, 1, b'q', 0]));
        assert_eq!(found[1], (FRAME_HEADER, vec![0, 60, 0, 0, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0]));
        assert_eq!((found[2].0, found[2].1.len()), (FRAME_BODY, 16));
        assert_eq!(found[2].1[..8], [1, 2, 3, 4, 5, 6, 7, 8]);
    }

    #[test]
    fn a_message_too_small_for_a_stamp_carries_it_as_a_property() {
        let mut out = Vec::new();
        let persistent = Message { persistent: true, ..message(1) };
        Template::new(&persistent, 4096).append(&mut out, 7);
        let header = &frames(&out)[1].1;
        let properties = Properties::decode(&header[12..]).unwrap();
        assert_eq!((properties.timestamp, properties.delivery_mode), (Some(7), Some(2)));
    }

    #[test]
    fn an_empty_message_has_no_body_frame() {
        let mut out = Vec::new();
        Template::new(&Message { stamped: false, ..message(0) }, 4096).append(&mut out, 7);
        assert_eq!(frames(&out).len(), 2);
    }

    #[test]
    fn a_large_body_is_cut_at_the_frame_limit() {
        let mut out = Vec::new();
        let template = Template::new(&message(10_000), 4096);
        template.append(&mut out, 7);
        assert_eq!(template.wire_bytes(), out.len());
        let sizes: Vec<usize> = frames(&out)[2..].iter().map(|(_, body)| body.len()).collect();
        assert_eq!(sizes, [4088, 4088, 1824]);
    }

    #[test]
    fn a_unique_key_has_the_stamps_digits() {
        let key = "market.0000000000000000.match";
        let message = Message { exchange: "topics", routing_key: key, ..message(8) };
        let template = Template::new(&message, 4096).with_unique_key(&message, 7);
        let mut out = Vec::new();
        template.append(&mut out, 0x0102_0304_0506_0cde);
        let method = &frames(&out)[0].1;
        let found = &method[4 + 2 + 1 + "topics".len() + 1..method.len() - 1];
        assert_eq!(found, b"market.0102030405060cde.match");
    }

    #[test]
    fn the_mandatory_bit_is_set_when_asked_for() {
        let mut out = Vec::new();
        Template::new(&Message { mandatory: true, ..message(8) }, 4096).append(&mut out, 0);
        assert_eq!(frames(&out)[0].1.last(), Some(&1));
    }

    #[test]
    fn an_ack_covers_all_up_to_its_tag() {
        let mut out = Vec::new();
        push_ack(&mut out, 1, 258);
        let expected = vec![0, 60, 0, 80, 0, 0, 0, 0, 0, 0, 1, 2, 1];
        assert_eq!(frames(&out), [(FRAME_METHOD, expected)]);
    }
}
