//! Frames to bytes.

use bytes::{BufMut, BytesMut};

use super::writer::Writer;
use crate::error::{Fault, FrameError, FrameName};
use crate::frame::{
    AttachListener, Capacity, Frame, Gap, Hello, OpenListener, OpenProducer, ProducerReport,
    Register, RelayAddress, RelaySettings, Report, Start, WireError,
};
use crate::limits::{
    ADDRESS_BYTES_MAX, DATA_HEADER_BYTES, DIRECTORIES_MAX, FRAME_HEADER_BYTES, KEEP_MESSAGES_MAX,
    KEY_BYTES_MAX, MESSAGE_BYTES_MAX, NAME_BYTES_MAX, PREFIX_BYTES_MAX, PREFIXES_MAX,
    QUEUE_NAME_BYTES_MAX, RELAYS_MAX, REPORT_PRODUCERS_MAX, REQUEST_BYTES_MAX,
};
use crate::parts::{self, PartsError};
use crate::wire::Kind;
use crate::{MessageSeq, RelayId, Slot};

impl Frame {
    /// Appends the frame to `out`. Texts for people are cut at their limit. The parts of a DATA are
    /// written as they are: whoever made them has checked them.
    ///
    /// # Errors
    /// If a field is beyond its limit; then `out` is as it was.
    pub fn encode(&self, out: &mut BytesMut) -> Result<(), FrameError> {
        let mut writer = Writer::new(out, self.kind());
        self.put(&mut writer);
        writer.finish()
    }

    /// The body. One arm a frame, so that the compiler says which one is missing.
    #[allow(clippy::too_many_lines, reason = "one arm a frame")]
    fn put(&self, to: &mut Writer<'_>) {
        match self {
            Self::Hello(hello) => hello.put(to),
            Self::Welcome(welcome) => {
                to.u16(welcome.version);
                to.u32(welcome.heartbeat_ms);
            }
            Self::Error(error) => error.put(to),
            Self::Ping(number) | Self::Pong(number) => to.u64(*number),
            Self::Bye(reason) => to.text("reason", reason),
            Self::OpenProducer(open) => open.put(to),
            Self::OpenListener(open) => open.put(to),
            Self::Producing { queue, producer, epoch, relay, first } => {
                to.queue(queue);
                to.u128(producer.0);
                to.u64(epoch.0);
                to.u64(relay.0);
                to.u64(first.0);
            }
            Self::ProduceFailed { queue, producer, epoch, relay, cause } => {
                to.queue(queue);
                to.u128(producer.0);
                to.u64(epoch.0);
                to.u64(relay.0);
                to.text("cause", cause);
            }
            Self::Listening { queue, listener, generation, relays } => {
                to.queue(queue);
                to.u128(listener.0);
                to.u64(*generation);
                to.relays(relays);
            }
            Self::RelayLost { queue, client, relay, cause } => {
                to.queue(queue);
                to.u128(client.0);
                to.u64(relay.0);
                to.text("cause", cause);
            }
            Self::Close { queue, client } => {
                to.queue(queue);
                to.u128(client.0);
            }
            Self::ProduceAt { queue, producer, fence, epoch, relay } => {
                to.queue(queue);
                to.u128(producer.0);
                to.u64(fence.0);
                to.u64(epoch.0);
                relay.put(to);
            }
            Self::ListenAt { queue, listener, fence, generation, relays } => {
                to.queue(queue);
                to.u128(listener.0);
                to.u64(fence.0);
                to.u64(*generation);
                to.count("relays", relays.len(), RELAYS_MAX);
                relays.iter().for_each(|relay| relay.put(to));
            }
            Self::Redirect { queue, address, retry_after_ms } => {
                to.queue(queue);
                to.bytes("address", address.as_bytes(), ADDRESS_BYTES_MAX);
                to.u32(*retry_after_ms);
            }
            Self::Notice { queue, code, text } => {
                to.queue(queue);
                to.u16(*code as u16);
                to.text("text", text);
            }
            Self::Directories(directories) => {
                to.count("directories", directories.len(), DIRECTORIES_MAX);
                for address in directories.iter() {
                    to.name("directories", address, ADDRESS_BYTES_MAX);
                }
            }
            Self::AttachProducer { queue, producer, fence, epoch } => {
                to.queue(queue);
                to.u128(producer.0);
                to.u64(fence.0);
                to.u64(epoch.0);
            }
            Self::AttachListener(attach) => attach.put(to),
            Self::Subscribe(prefix) | Self::Unsubscribe(prefix) => {
                to.at_most("prefix", prefix.len(), PREFIX_BYTES_MAX);
                to.rest(prefix);
            }
            Self::Received(messages) => to.u64(*messages),
            Self::Attached { slot, acknowledge, credit_bytes } => {
                to.u32(slot.0);
                to.u8(*acknowledge as u8);
                to.u64(*credit_bytes);
            }
            Self::Credit { slot, bytes } => {
                to.u32(slot.0);
                to.u64(*bytes);
            }
            Self::Ack { slot, below } => {
                to.u32(slot.0);
                to.u64(below.0);
            }
            Self::Gap(gap) => gap.put(to),
            Self::Draining { deadline_ms } => to.u32(*deadline_ms),
            Self::Start(start) => start.put(to),
            Self::Data { slot, sequence, parts } => {
                to.u32(slot.0);
                to.u64(sequence.0);
                to.at_most("parts", parts.len(), MESSAGE_BYTES_MAX);
                to.rest(parts);
            }
            Self::Fin { slot, next } => {
                to.u32(slot.0);
                to.u64(next.0);
            }
            Self::Missed { producer, listener, below } => {
                to.u128(producer.0);
                to.u128(listener.0);
                to.u64(below.0);
            }
            Self::Register(register) => register.put(to),
            Self::Registered { fence, settings } => {
                to.u64(fence.0);
                settings.put(to);
            }
            Self::Report(report) => report.put(to),
            Self::Drain { fence, deadline_ms } => {
                to.u64(fence.0);
                to.u32(*deadline_ms);
            }
            Self::Stop { fence } => to.u64(fence.0),
            Self::FenceProducer { fence, producer, below } => {
                to.u64(fence.0);
                to.u128(producer.0);
                to.u64(below.0);
            }
            Self::KeepOpen { queue, target } => {
                to.queue(queue);
                to.name("target", target, QUEUE_NAME_BYTES_MAX);
            }
            Self::Keep { producer, first, messages } => {
                to.u128(producer.0);
                to.u64(first.0);
                to.count("messages", messages.len(), KEEP_MESSAGES_MAX);
                messages.iter().for_each(|message| {
                    to.long_bytes("messages[]", message, MESSAGE_BYTES_MAX);
                });
            }
            Self::Kept { producer, below } => {
                to.u128(producer.0);
                to.u64(below.0);
            }
        }
    }
}

/// Appends a message as one DATA frame.
///
/// # Errors
/// If the parts make no message; then `out` is as it was.
pub fn encode_data<P: AsRef<[u8]>>(
    out: &mut BytesMut,
    slot: Slot,
    sequence: MessageSeq,
    parts: &[P],
) -> Result<(), FrameError> {
    let message = |fault: PartsError| FrameError {
        frame: FrameName::Known(Kind::Data),
        field: "parts",
        fault: Fault::Message(fault),
    };
    parts::check_sizes(parts).map_err(message)?;
    let parts_bytes = parts::message_bytes(parts);
    out.reserve(DATA_HEADER_BYTES + parts_bytes);
    out.put_slice(&data_header(slot, sequence, parts_bytes));
    parts::put_parts(out, parts).map_err(message)
}

/// What stands before a message's parts, which are `parts_bytes` long: the frame's header, slot and
/// sequence. The parts are written by other means.
#[must_use]
pub fn data_header(
    slot: Slot,
    sequence: MessageSeq,
    parts_bytes: usize,
) -> [u8; DATA_HEADER_BYTES] {
    let body = DATA_HEADER_BYTES - FRAME_HEADER_BYTES + parts_bytes;
    debug_assert!(body <= Kind::Data.body_bytes_max(), "a message is checked before");
    let mut header = [0; DATA_HEADER_BYTES];
    header[..4].copy_from_slice(&(body as u32).to_le_bytes());
    header[4] = Kind::Data as u8;
    header[8..12].copy_from_slice(&slot.0.to_le_bytes());
    header[12..].copy_from_slice(&sequence.0.to_le_bytes());
    header
}

impl Writer<'_> {
    fn queue(&mut self, queue: &str) {
        self.name("queue", queue, QUEUE_NAME_BYTES_MAX);
    }

    fn relays(&mut self, relays: &[RelayId]) {
        self.count("relays", relays.len(), RELAYS_MAX);
        relays.iter().for_each(|relay| self.u64(relay.0));
    }
}

impl Hello {
    fn put(&self, to: &mut Writer<'_>) {
        to.u16(self.version);
        to.u8(self.role as u8);
        to.bytes("name", self.name.as_bytes(), NAME_BYTES_MAX);
        to.bytes("key", &self.key, KEY_BYTES_MAX);
    }
}

impl WireError {
    fn put(&self, to: &mut Writer<'_>) {
        to.u16(self.code as u16);
        to.u8(u8::from(self.fatal));
        to.text("field", &self.field);
        to.text("text", &self.text);
    }
}

impl OpenProducer {
    fn put(&self, to: &mut Writer<'_>) {
        to.queue(&self.queue);
        to.u128(self.producer.0);
        to.u64(self.expected_bytes_per_s);
        to.u8(u8::from(self.current.is_some()));
        if let Some((relay, epoch, next)) = self.current {
            to.u64(relay.0);
            to.u64(epoch.0);
            to.u64(next.0);
        }
    }
}

impl OpenListener {
    fn put(&self, to: &mut Writer<'_>) {
        to.queue(&self.queue);
        to.u128(self.listener.0);
        to.relays(&self.attached);
    }
}

impl RelayAddress {
    fn put(&self, to: &mut Writer<'_>) {
        to.u64(self.relay.0);
        to.bytes("address", self.address.as_bytes(), ADDRESS_BYTES_MAX);
    }
}

impl AttachListener {
    fn put(&self, to: &mut Writer<'_>) {
        to.queue(&self.queue);
        to.u128(self.listener.0);
        to.u8(self.slow.map_or(0, |slow| slow as u8));
        to.count("prefixes", self.prefixes.len(), PREFIXES_MAX);
        self.prefixes.iter().for_each(|prefix| to.bytes("prefixes[]", prefix, PREFIX_BYTES_MAX));
    }
}

impl Gap {
    fn put(&self, to: &mut Writer<'_>) {
        to.u32(self.slot.0);
        to.u64(self.from.0);
        to.u64(self.to.0);
        to.u64(self.messages);
        to.u8(self.cause as u8);
    }
}

impl Start {
    fn put(&self, to: &mut Writer<'_>) {
        to.u32(self.slot.0);
        to.u128(self.producer.0);
        to.u64(self.epoch.0);
        to.u64(self.first.0);
        to.u64(self.previous.0);
    }
}

impl Register {
    fn put(&self, to: &mut Writer<'_>) {
        to.u64(self.relay.0);
        to.queue(&self.queue);
        to.bytes("request", self.request.as_bytes(), REQUEST_BYTES_MAX);
        to.bytes("address", self.address.as_bytes(), ADDRESS_BYTES_MAX);
        to.bytes("zmtp.in", self.zmtp.0.as_bytes(), ADDRESS_BYTES_MAX);
        to.bytes("zmtp.out", self.zmtp.1.as_bytes(), ADDRESS_BYTES_MAX);
        self.capacity.put(to);
        to.u64(self.fence.0);
    }
}

impl Capacity {
    fn put(self, to: &mut Writer<'_>) {
        to.u64(self.bytes_in_per_s);
        to.u64(self.bytes_out_per_s);
        to.u64(self.messages_in_per_s);
        to.u64(self.messages_out_per_s);
        to.u32(self.connections);
    }
}

impl RelaySettings {
    fn put(&self, to: &mut Writer<'_>) {
        to.u8(self.acknowledge as u8);
        to.u8(self.slow as u8);
        to.u64(self.ring_bytes_max);
        to.u32(self.report_ms);
        to.bytes("keep.address", self.keep.0.as_bytes(), ADDRESS_BYTES_MAX);
        to.bytes("keep.queue", self.keep.1.as_bytes(), QUEUE_NAME_BYTES_MAX);
    }
}

impl Report {
    fn put(&self, to: &mut Writer<'_>) {
        to.u64(self.number);
        to.u64(self.uptime_ms);
        to.u64(self.messages_in);
        to.u64(self.bytes_in);
        to.u64(self.messages_out);
        to.u64(self.bytes_out);
        to.u64(self.dropped);
        to.u64(self.spilled);
        to.u64(self.left_behind);
        to.u32(self.listeners);
        to.u64(self.cpu_us);
        to.u64(self.queued_bytes);
        to.u32(self.latency_mean_us);
        to.u32(self.latency_p99_us);
        to.u8(u8::from(self.drained));
        to.u8(u8::from(self.more));
        to.count("producers", self.producers.len(), REPORT_PRODUCERS_MAX);
        self.producers.iter().for_each(|producer| producer.put(to));
    }
}

impl ProducerReport {
    fn put(&self, to: &mut Writer<'_>) {
        to.u128(self.producer.0);
        to.u64(self.epoch.0);
        to.u64(self.next.0);
        to.u64(self.messages);
        to.u64(self.bytes);
        to.u64(self.bytes_out);
        to.u8(u8::from(self.foreign));
    }
}
