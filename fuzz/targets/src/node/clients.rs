//! A client: it goes through the handshake, sends what the script says, answers closes, and checks
//! what it gets.

use std::collections::BTreeMap;

use bytes::Bytes;
use quelea_amqp_codec::ShortStr;
use quelea_amqp_codec::frame::PROTOCOL_HEADER;
use quelea_amqp_codec::method::{Method, basic, channel, connection, queue};
use quelea_model::Properties;
use quelea_testkit::amqp_client::{AmqpClient, Received};
use quelea_testkit::node::Client;

use super::script::Verdict;

const FRAME_MAX: u32 = 4_096;

/// Among so many deliveries of its channel a client looks for the one that it settles.
const TAGS_PICKED: usize = 4;

/// From here on a pick is a tag of no delivery.
const PICKS_OF_KNOWN: u8 = 250;

/// The client's end of a connection.
pub(super) struct FuzzClient {
    wire: AmqpClient,
    /// Of each channel: the tags of the deliveries that it has not settled.
    tags: BTreeMap<u16, Vec<u64>>,
    /// Of each channel: the tag of its last delivery.
    last_tags: BTreeMap<u16, u64>,
    /// Whether it takes what the session writes.
    pub(super) reads: bool,
}

impl FuzzClient {
    /// Sends the whole handshake at once, as a client may that knows what will be asked.
    pub(super) fn new() -> Self {
        let mut wire = AmqpClient::new(FRAME_MAX);
        wire.sent.put_slice(PROTOCOL_HEADER);
        let start_ok = connection::StartOk {
            mechanism: ShortStr::from_static("PLAIN"),
            response: Bytes::from_static(b"\0guest\0guest"),
            locale: ShortStr::from_static("en_US"),
            ..connection::StartOk::default()
        };
        let tune_ok = connection::TuneOk { channel_max: 100, frame_max: FRAME_MAX, heartbeat: 60 };
        let open = connection::Open { virtual_host: ShortStr::from_static("/") };
        for method in [Method::from(start_ok), tune_ok.into(), open.into()] {
            wire.sent.method(0, &method);
        }
        for channel in [1, 2] {
            wire.sent.method(channel, &channel::Open {}.into());
        }
        Self { wire, tags: BTreeMap::new(), last_tags: BTreeMap::new(), reads: true }
    }

    pub(super) fn send(&mut self, channel: u16, method: &Method) {
        self.wire.sent.method(channel, method);
    }

    pub(super) fn send_raw(&mut self, bytes: &[u8]) {
        self.wire.sent.put_slice(bytes);
    }

    pub(super) fn publish(
        &mut self,
        channel: u16,
        publish: basic::Publish,
        properties: &Properties,
        body: Bytes,
    ) {
        self.wire.publish(channel, publish, properties, body);
    }

    /// Settles one of its oldest deliveries; says 0 if there is none, and now and then nonsense.
    pub(super) fn acknowledge(&mut self, channel: u16, pick: u8, how: Verdict) {
        let tags = self.tags.entry(channel).or_default();
        let delivery_tag = match tags.len() {
            _ if pick > PICKS_OF_KNOWN => u64::from(pick),
            0 => 0,
            len => tags[usize::from(pick) % len.min(TAGS_PICKED)],
        };
        let multiple =
            matches!(how, Verdict::Ack { multiple: true } | Verdict::Nack { multiple: true, .. });
        tags.retain(|tag| *tag != delivery_tag && (!multiple || *tag > delivery_tag));
        let method: Method = match how {
            Verdict::Ack { multiple } => basic::Ack { delivery_tag, multiple }.into(),
            Verdict::Nack { multiple, requeue } => {
                basic::Nack { delivery_tag, multiple, requeue }.into()
            }
            Verdict::Reject { requeue } => basic::Reject { delivery_tag, requeue }.into(),
        };
        self.send(channel, &method);
    }

    pub(super) fn open_channel(&mut self, number: u16) {
        self.send(number, &channel::Open {}.into());
    }

    pub(super) fn delete_queue(&mut self, channel: u16, name: &str) {
        let delete = queue::Delete { queue: ShortStr::cut(name), ..queue::Delete::default() };
        self.send(channel, &delete.into());
    }

    fn method(&mut self, channel: u16, method: Method) {
        match method {
            Method::BasicDeliver(deliver) => self.delivery(channel, deliver.delivery_tag),
            Method::BasicGetOk(got) => self.delivery(channel, got.delivery_tag),
            Method::ChannelClose(_) => {
                self.forget(channel);
                self.send(channel, &channel::CloseOk {}.into());
                self.open_channel(channel);
            }
            Method::ChannelOpenOk(_) | Method::ChannelCloseOk(_) => {
                self.forget(channel);
            }
            Method::ConnectionClose(_) => self.send(0, &connection::CloseOk {}.into()),
            _ => {}
        }
    }

    fn forget(&mut self, channel: u16) {
        self.tags.remove(&channel);
        self.last_tags.remove(&channel);
    }

    fn delivery(&mut self, channel: u16, tag: u64) {
        let last = self.last_tags.insert(channel, tag).unwrap_or(0);
        assert!(tag > last, "delivery tag {tag} after {last}");
        self.tags.entry(channel).or_default().push(tag);
    }
}

impl Client for FuzzClient {
    fn take_sent(&mut self) -> Bytes {
        self.wire.take_sent(usize::MAX)
    }

    fn receive(&mut self, bytes: Bytes) {
        for Received { channel, method, .. } in self.wire.receive(bytes) {
            self.method(channel, method);
        }
    }

    fn reads(&self) -> bool {
        self.reads
    }

    /// Returns a new client: whoever is closed comes back.
    fn successor(&self) -> Option<Self> {
        Some(Self::new())
    }
}
