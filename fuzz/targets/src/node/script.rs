//! From bytes to what clients do. Names, keys and numbers come from small sets, so that they meet.

use bytes::Bytes;
use quelea_amqp_codec::ShortStr;
use quelea_amqp_codec::method::{Method, basic, channel, confirm, connection, exchange, queue, tx};
use quelea_broker::BrokerConfig;
use quelea_model::{Properties, Table, Value};

/// Most often the two that are open from the start.
const CHANNELS: [u16; 8] = [1, 1, 1, 1, 2, 2, 2, 3];

const QUEUES: [&str; 8] = ["a", "a", "a", "b", "b", "c", "", "amq.rabbitmq.reply-to"];
const EXCHANGES: [&str; 8] =
    ["", "x", "y", "z", "amq.direct", "amq.fanout", "amq.topic", "amq.headers"];
const KINDS: [&str; 5] = ["direct", "fanout", "topic", "headers", "none"];
const KEYS: [&str; 8] = ["a", "a", "b", "c", "", "a.b", "a.#", "*.b"];
const TAGS: [&str; 4] = ["t", "u", "v", ""];
const WAITS_MS: [u64; 8] = [1, 2, 9, 10, 11, 1_000, 31_000, 100_000];

/// Body sizes: none, small, more than a frame, more than a message that is copied.
const BODIES: [usize; 8] = [0, 1, 1, 10, 10, 100, 5_000, 20_000];

/// One thing that happens.
pub(super) enum Step {
    Send {
        client: usize,
        channel: u16,
        method: Method,
    },
    Publish {
        client: usize,
        channel: u16,
        publish: basic::Publish,
        properties: Box<Properties>,
        body: Bytes,
    },
    /// Says something of a delivery that the client has got, or of one that it has not.
    Acknowledge {
        client: usize,
        channel: u16,
        pick: u8,
        how: Verdict,
    },
    Raw {
        client: usize,
        bytes: Vec<u8>,
    },
    Reads {
        client: usize,
        reads: bool,
    },
    Break {
        client: usize,
    },
    Turn,
    Settle,
    Wait {
        ms: u64,
    },
}

/// What a client says of a delivery.
#[derive(Clone, Copy)]
pub(super) enum Verdict {
    Ack { multiple: bool },
    Nack { multiple: bool, requeue: bool },
    Reject { requeue: bool },
}

/// Bytes that are read as steps.
pub(super) struct Script<'a> {
    rest: &'a [u8],
}

impl<'a> Script<'a> {
    pub(super) const fn new(data: &'a [u8]) -> Self {
        Self { rest: data }
    }

    /// Reads the limits of the broker: the default ones or such that every one is met.
    pub(super) fn limits(&mut self) -> BrokerConfig {
        let octet = self.octet();
        let mut limits = BrokerConfig::default();
        if octet & 1 == 1 {
            limits.resident_bytes_max = 2_000;
        }
        if octet & 2 == 2 {
            limits.index_bytes_max = 2_000;
        }
        if octet & 4 == 4 {
            limits.output_bytes_max = 3_000;
        }
        if octet & 8 == 8 {
            limits.unacked_per_channel_max = 3;
            limits.consumers_per_channel_max = 2;
            limits.queues_per_vhost_max = 3;
            limits.exclusive_queues_per_connection_max = 1;
        }
        limits
    }

    pub(super) fn step(&mut self) -> Option<Step> {
        if self.rest.is_empty() {
            return None;
        }
        let kind = self.octet();
        let who = self.octet();
        let (client, channel) = (usize::from(who & 3), CHANNELS[usize::from(who >> 2 & 7)]);
        let method = match kind % 32 {
            0..4 => self.declare_queue(),
            4 => self.declare_exchange(),
            5..7 => self.bind(),
            7..12 => return Some(self.publish(client, channel)),
            12..15 => self.consume(),
            15..19 => return Some(self.acknowledge(client, channel)),
            19 => basic::Get { queue: self.of(&QUEUES), no_ack: self.flag() }.into(),
            20 => self.mode(),
            21 => self.remove(),
            22 => channel::Open {}.into(),
            23 => self.end_channel_or_connection(),
            24 => return Some(Step::Raw { client, bytes: self.bytes(16) }),
            25 => return Some(Step::Reads { client, reads: self.flag() }),
            26 if who < 32 => return Some(Step::Break { client }),
            26 | 27 => return Some(Step::Turn),
            28 => return Some(Step::Wait { ms: self.number(&WAITS_MS) }),
            _ => return Some(Step::Settle),
        };
        let channel = if matches!(method, Method::ConnectionClose(_)) { 0 } else { channel };
        Some(Step::Send { client, channel, method })
    }

    fn declare_queue(&mut self) -> Method {
        let flags = self.octet();
        queue::Declare {
            queue: self.of(&QUEUES),
            passive: flags & 15 == 15,
            durable: flags & 16 == 16,
            exclusive: flags & 96 == 96,
            auto_delete: flags & 128 == 128,
            no_wait: flags & 14 == 14,
            arguments: self.queue_arguments(),
        }
        .into()
    }

    fn queue_arguments(&mut self) -> Table {
        let mut table = Table::new();
        let (first, second) = (self.octet(), self.octet());
        let number = i32::from(second % 4);
        let mut set = |bit: u8, name: &str, value: Value| {
            if first >> bit & 1 == 1 {
                table.set(name, value);
            }
        };
        set(0, "x-max-length", Value::I32(number));
        set(1, "x-message-ttl", Value::I32(number * 10));
        set(2, "x-dead-letter-exchange", Value::text(EXCHANGES[usize::from(second % 8)]));
        set(3, "x-max-priority", Value::I32(number + 1));
        set(4, "x-single-active-consumer", Value::Bool(true));
        set(5, "x-delivery-limit", Value::I32(number));
        set(6, "x-expires", Value::I32(number * 10 + 10));
        set(7, "x-max-length-bytes", Value::I32(number * 10));
        let overflow = ["drop-head", "reject-publish", "reject-publish-dlx"];
        if let Some(overflow) = overflow.get(usize::from(second >> 5)) {
            table.set("x-overflow", Value::text(overflow));
        }
        if second >> 5 == 4 {
            table.set("x-dead-letter-routing-key", Value::text(KEYS[usize::from(first % 8)]));
        }
        table
    }

    fn declare_exchange(&mut self) -> Method {
        let flags = self.octet();
        let mut arguments = Table::new();
        if flags & 1 == 1 {
            arguments.set("alternate-exchange", Value::text(self.of(&EXCHANGES).as_str()));
        }
        exchange::Declare {
            exchange: self.of(&EXCHANGES),
            kind: self.of(&KINDS),
            passive: flags & 6 == 6,
            durable: flags & 8 == 8,
            auto_delete: flags & 16 == 16,
            internal: flags & 96 == 96,
            no_wait: flags & 128 == 128,
            arguments,
        }
        .into()
    }

    fn bind(&mut self) -> Method {
        let flags = self.octet();
        let arguments = if flags & 4 == 4 {
            let any = if flags & 8 == 8 { "any" } else { "all" };
            Table::from_iter([("x-match", Value::text(any)), ("h", Value::I32(1))])
        } else {
            Table::new()
        };
        let (name, routing_key) = (self.of(&EXCHANGES), self.of(&KEYS));
        match flags & 3 {
            0 | 1 => {
                let queue = self.of(&QUEUES);
                queue::Bind { queue, exchange: name, routing_key, no_wait: false, arguments }.into()
            }
            2 => {
                let queue = self.of(&QUEUES);
                queue::Unbind { queue, exchange: name, routing_key, arguments }.into()
            }
            _ => {
                let destination = self.of(&EXCHANGES);
                let no_wait = flags & 16 == 16;
                exchange::Bind { destination, source: name, routing_key, no_wait, arguments }.into()
            }
        }
    }

    fn publish(&mut self, client: usize, channel: u16) -> Step {
        let flags = self.octet();
        let by_default = flags & 1 == 0;
        let publish = basic::Publish {
            exchange: if by_default { ShortStr::default() } else { self.of(&EXCHANGES) },
            routing_key: self.of(&KEYS),
            mandatory: flags & 2 == 2,
            immediate: flags & 252 == 252,
        };
        let mut properties = Properties::default();
        if flags & 4 == 4 {
            properties.delivery_mode = Some(2);
        }
        if flags & 8 == 8 {
            properties.expiration = Some(self.number(&WAITS_MS).to_string().into());
        }
        if flags & 16 == 16 {
            properties.priority = Some(self.octet());
        }
        if flags & 32 == 32 {
            let copies = Value::Array(vec![Value::text(self.of(&KEYS).as_str())]);
            let name = if self.flag() { "CC" } else { "BCC" };
            properties.headers = Some(Table::from_iter([(name, copies), ("h", Value::I32(1))]));
        }
        if flags & 192 == 192 {
            properties.reply_to = Some(self.of(&QUEUES).as_str().into());
        }
        let body = Bytes::from(vec![7; self.number(&BODIES)]);
        Step::Publish { client, channel, publish, properties: Box::new(properties), body }
    }

    fn consume(&mut self) -> Method {
        let flags = self.octet();
        let mut arguments = Table::new();
        if flags & 8 == 8 {
            arguments.set("x-priority", Value::I32(i32::from(flags >> 6)));
        }
        basic::Consume {
            queue: self.of(&QUEUES),
            consumer_tag: self.of(&TAGS),
            no_local: false,
            no_ack: flags & 3 == 3,
            exclusive: flags & 6 == 6,
            no_wait: flags & 48 == 48,
            arguments,
        }
        .into()
    }

    fn acknowledge(&mut self, client: usize, channel: u16) -> Step {
        let (flags, pick) = (self.octet(), self.octet());
        let (multiple, requeue) = (flags & 1 == 1, flags & 2 == 2);
        let how = match flags >> 2 & 3 {
            0 | 1 => Verdict::Ack { multiple },
            2 => Verdict::Nack { multiple, requeue },
            _ => Verdict::Reject { requeue },
        };
        Step::Acknowledge { client, channel, pick, how }
    }

    fn mode(&mut self) -> Method {
        match self.octet() % 8 {
            0 => confirm::Select { no_wait: false }.into(),
            1 => tx::Select {}.into(),
            2 => tx::Commit {}.into(),
            3 => tx::Rollback {}.into(),
            4 => basic::Recover { requeue: true }.into(),
            5 | 6 => {
                let prefetch_count = u16::from(self.octet() % 4);
                basic::Qos { prefetch_size: 0, prefetch_count, global: self.flag() }.into()
            }
            _ => channel::Flow { active: self.flag() }.into(),
        }
    }

    fn remove(&mut self) -> Method {
        let flags = self.octet();
        let (if_unused, if_empty) = (flags & 4 == 4, flags & 8 == 8);
        match flags & 3 {
            0 => queue::Purge { queue: self.of(&QUEUES), no_wait: false }.into(),
            1 => {
                let queue = self.of(&QUEUES);
                queue::Delete { queue, if_unused, if_empty, no_wait: false }.into()
            }
            2 => {
                let exchange = self.of(&EXCHANGES);
                exchange::Delete { exchange, if_unused, no_wait: false }.into()
            }
            _ => basic::Cancel { consumer_tag: self.of(&TAGS), no_wait: if_unused }.into(),
        }
    }

    fn end_channel_or_connection(&mut self) -> Method {
        if self.octet() < 200 {
            channel::Close { reply_code: 200, ..channel::Close::default() }.into()
        } else {
            connection::Close { reply_code: 200, ..connection::Close::default() }.into()
        }
    }

    fn octet(&mut self) -> u8 {
        match self.rest {
            [first, rest @ ..] => {
                self.rest = rest;
                *first
            }
            [] => 0,
        }
    }

    fn flag(&mut self) -> bool {
        self.octet() & 1 == 1
    }

    fn of(&mut self, names: &[&'static str]) -> ShortStr {
        ShortStr::from_static(names[usize::from(self.octet()) % names.len()])
    }

    fn number<N: Copy>(&mut self, numbers: &[N]) -> N {
        numbers[usize::from(self.octet()) % numbers.len()]
    }

    fn bytes(&mut self, len_max: usize) -> Vec<u8> {
        let len = usize::from(self.octet()) % len_max;
        (0..len).map(|_| self.octet()).collect()
    }
}
