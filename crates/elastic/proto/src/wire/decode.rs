//! Bytes to frames.

use bytes::{Buf, Bytes};

use super::reader::{Read, Reader};
use crate::error::{Fault, FrameError};
use crate::frame::{
    Acknowledge, AttachListener, Capacity, ErrorCode, Frame, Gap, GapCause, Hello, NoticeCode,
    OpenListener, OpenProducer, ProducerReport, Register, RelayAddress, RelaySettings, Report,
    Role, SlowPolicy, Start, Welcome, WireError,
};
use crate::limits::{
    ADDRESS_BYTES_MAX, DIRECTORIES_MAX, FRAME_HEADER_BYTES, KEEP_MESSAGES_MAX, KEY_BYTES_MAX,
    MESSAGE_BYTES_MAX, NAME_BYTES_MAX, PREFIX_BYTES_MAX, PREFIXES_MAX, QUEUE_NAME_BYTES_MAX,
    RELAYS_MAX, REPORT_PRODUCERS_MAX, REQUEST_BYTES_MAX, SEQUENCE_MAX,
};
use crate::parts;
use crate::wire::{FrameHeader, Kind};
use crate::{ClientId, Epoch, Fence, MessageSeq, Named as _, RelayId, Slot};

/// The least that a [`RelayAddress`] takes.
const RELAY_ADDRESS_BYTES_MIN: usize = 10;
/// What a [`ProducerReport`] takes.
const PRODUCER_REPORT_BYTES: usize = 57;

impl Frame {
    /// Takes the next frame from the beginning of `input`; `None`, and `input` as it was, if it is not
    /// there as a whole. What a frame holds of bytes are slices of `input`.
    ///
    /// # Errors
    /// What is wrong with the frame. The connection cannot go on.
    pub fn decode(input: &mut Bytes) -> Result<Option<Self>, FrameError> {
        let Some(header) = FrameHeader::read(input)? else { return Ok(None) };
        if input.len() < header.frame_bytes() {
            return Ok(None);
        }
        let mut frame = input.split_to(header.frame_bytes());
        frame.advance(FRAME_HEADER_BYTES);
        let mut reader = Reader::new(header.kind, frame);
        let frame = Self::read(header.kind, &mut reader)?;
        reader.end()?;
        Ok(Some(frame))
    }

    /// The body. One arm a frame, so that the compiler says which one is missing.
    #[allow(clippy::too_many_lines, reason = "one arm a frame")]
    fn read(kind: Kind, from: &mut Reader) -> Read<Self> {
        Ok(match kind {
            Kind::Hello => Self::Hello(Hello::read(from)?),
            Kind::Welcome => Self::Welcome(Welcome {
                version: from.u16("version")?,
                heartbeat_ms: from.u32("heartbeat_ms")?,
            }),
            Kind::Error => Self::Error(WireError::read(from)?),
            Kind::Ping => Self::Ping(from.u64("number")?),
            Kind::Pong => Self::Pong(from.u64("number")?),
            Kind::Bye => Self::Bye(from.text("reason")?),
            Kind::OpenProducer => Self::OpenProducer(OpenProducer::read(from)?),
            Kind::OpenListener => Self::OpenListener(OpenListener::read(from)?),
            Kind::Producing => Self::Producing {
                queue: from.queue()?,
                producer: from.client("producer")?,
                epoch: from.epoch("epoch")?,
                relay: from.relay()?,
                first: from.sequence("first")?,
            },
            Kind::ProduceFailed => Self::ProduceFailed {
                queue: from.queue()?,
                producer: from.client("producer")?,
                epoch: from.epoch("epoch")?,
                relay: from.relay()?,
                cause: from.text("cause")?,
            },
            Kind::Listening => Self::Listening {
                queue: from.queue()?,
                listener: from.client("listener")?,
                generation: from.u64("generation")?,
                relays: from.relays("relays")?,
            },
            Kind::RelayLost => Self::RelayLost {
                queue: from.queue()?,
                client: from.client("client")?,
                relay: from.relay()?,
                cause: from.text("cause")?,
            },
            Kind::Close => Self::Close { queue: from.queue()?, client: from.client("client")? },
            Kind::ProduceAt => Self::ProduceAt {
                queue: from.queue()?,
                producer: from.client("producer")?,
                fence: from.fence()?,
                epoch: from.epoch("epoch")?,
                relay: RelayAddress::read(from)?,
            },
            Kind::ListenAt => Self::ListenAt {
                queue: from.queue()?,
                listener: from.client("listener")?,
                fence: from.fence()?,
                generation: from.u64("generation")?,
                relays: from.list(
                    "relays",
                    RELAYS_MAX,
                    RELAY_ADDRESS_BYTES_MIN,
                    RelayAddress::read,
                )?,
            },
            Kind::Redirect => Self::Redirect {
                queue: from.queue()?,
                address: from.string("address", ADDRESS_BYTES_MAX)?,
                retry_after_ms: from.u32("retry_after_ms")?,
            },
            Kind::Notice => Self::Notice {
                queue: from.queue()?,
                code: NoticeCode::read(from)?,
                text: from.text("text")?,
            },
            Kind::Directories => Self::Directories(from.directories()?.into()),
            Kind::AttachProducer => Self::AttachProducer {
                queue: from.queue()?,
                producer: from.client("producer")?,
                fence: from.fence()?,
                epoch: from.epoch("epoch")?,
            },
            Kind::AttachListener => Self::AttachListener(AttachListener::read(from)?),
            Kind::Subscribe => Self::Subscribe(from.rest_at_most("prefix", PREFIX_BYTES_MAX)?),
            Kind::Unsubscribe => Self::Unsubscribe(from.rest_at_most("prefix", PREFIX_BYTES_MAX)?),
            Kind::Received => Self::Received(from.u64("messages")?),
            Kind::Attached => Self::Attached {
                slot: from.slot()?,
                acknowledge: Acknowledge::read(from)?,
                credit_bytes: from.u64("credit_bytes")?,
            },
            Kind::Credit => Self::Credit { slot: from.slot()?, bytes: from.u64("bytes")? },
            Kind::Ack => Self::Ack { slot: from.slot()?, below: from.sequence("below")? },
            Kind::Gap => Self::Gap(Gap::read(from)?),
            Kind::Draining => Self::Draining { deadline_ms: from.u32("deadline_ms")? },
            Kind::Start => Self::Start(Start::read(from)?),
            Kind::Data => {
                let slot = from.slot()?;
                let sequence = from.sequence("sequence")?;
                let parts = from.rest();
                parts::check(&parts).map_err(|fault| from.error("parts", Fault::Message(fault)))?;
                Self::Data { slot, sequence, parts }
            }
            Kind::Fin => Self::Fin { slot: from.slot()?, next: from.sequence("next")? },
            Kind::Missed => Self::Missed {
                producer: from.client("producer")?,
                listener: from.client("listener")?,
                below: from.sequence("below")?,
            },
            Kind::Register => Self::Register(Register::read(from)?),
            Kind::Registered => {
                let (fence, settings) = (from.fence()?, RelaySettings::read(from)?);
                Self::Registered { fence, settings }
            }
            Kind::Report => Self::Report(Report::read(from)?),
            Kind::Drain => {
                Self::Drain { fence: from.fence()?, deadline_ms: from.u32("deadline_ms")? }
            }
            Kind::Stop => Self::Stop { fence: from.fence()? },
            Kind::FenceProducer => Self::FenceProducer {
                fence: from.fence()?,
                producer: from.client("producer")?,
                below: from.epoch("below")?,
            },
            Kind::KeepOpen => Self::KeepOpen {
                queue: from.queue()?,
                target: from.name("target", QUEUE_NAME_BYTES_MAX)?,
            },
            Kind::Keep => Self::Keep {
                producer: from.client("producer")?,
                first: from.sequence("first")?,
                messages: from.list("messages", KEEP_MESSAGES_MAX, 4, |from| {
                    from.long_bytes("messages[]", MESSAGE_BYTES_MAX)
                })?,
            },
            Kind::Kept => {
                Self::Kept { producer: from.client("producer")?, below: from.sequence("below")? }
            }
        })
    }
}

impl Reader {
    fn queue(&mut self) -> Read<String> {
        self.name("queue", QUEUE_NAME_BYTES_MAX)
    }

    fn client(&mut self, field: &'static str) -> Read<ClientId> {
        self.u128(field).map(ClientId)
    }

    fn relay(&mut self) -> Read<RelayId> {
        self.u64("relay").map(RelayId)
    }

    fn relays(&mut self, field: &'static str) -> Read<Vec<RelayId>> {
        self.list(field, RELAYS_MAX, 8, Self::relay)
    }

    fn directories(&mut self) -> Read<Vec<String>> {
        self.list("directories", DIRECTORIES_MAX, 3, |from| {
            from.name("directories", ADDRESS_BYTES_MAX)
        })
    }

    fn fence(&mut self) -> Read<Fence> {
        self.u64("fence").map(Fence)
    }

    fn epoch(&mut self, field: &'static str) -> Read<Epoch> {
        self.u64(field).map(Epoch)
    }

    fn sequence(&mut self, field: &'static str) -> Read<MessageSeq> {
        let value = self.u64(field)?;
        if value > SEQUENCE_MAX {
            return Err(self.error(field, Fault::Limit { limit: SEQUENCE_MAX, value }));
        }
        Ok(MessageSeq(value))
    }

    fn slot(&mut self) -> Read<Slot> {
        self.u32("slot").map(Slot)
    }
}

/// The enums whose numbers are on the wire.
macro_rules! numbered {
    ($($type:ident $width:ident)*) => {
        $(
            impl $type {
                fn read(from: &mut Reader) -> Read<Self> {
                    let number = from.$width(Self::FIELD)?;
                    Self::of_number(from, number)
                }

                fn of_number(from: &Reader, number: $width) -> Read<Self> {
                    let mut values = Self::NAMES.iter().map(|(_, value)| *value);
                    let found = values.find(|value| *value as $width == number);
                    found.ok_or_else(|| from.unknown(Self::FIELD, u64::from(number)))
                }
            }
        )*
    };
}

numbered! { Role u8  ErrorCode u16  NoticeCode u16  SlowPolicy u8  Acknowledge u8  GapCause u8 }

impl Hello {
    fn read(from: &mut Reader) -> Read<Self> {
        Ok(Self {
            version: from.u16("version")?,
            role: Role::read(from)?,
            name: from.string("name", NAME_BYTES_MAX)?,
            key: from.bytes("key", KEY_BYTES_MAX)?,
        })
    }
}

impl WireError {
    fn read(from: &mut Reader) -> Read<Self> {
        let code = ErrorCode::read(from)?;
        let fatal = from.bool("fatal")?;
        Ok(Self { code, fatal, field: from.text("field")?, text: from.text("text")? })
    }
}

impl OpenProducer {
    fn read(from: &mut Reader) -> Read<Self> {
        let queue = from.queue()?;
        let producer = from.client("producer")?;
        let expected_bytes_per_s = from.u64("expected_bytes_per_s")?;
        let current = if from.bool("current")? {
            Some((from.relay()?, from.epoch("epoch")?, from.sequence("next")?))
        } else {
            None
        };
        Ok(Self { queue, producer, current, expected_bytes_per_s })
    }
}

impl OpenListener {
    fn read(from: &mut Reader) -> Read<Self> {
        Ok(Self {
            queue: from.queue()?,
            listener: from.client("listener")?,
            attached: from.relays("attached")?,
        })
    }
}

impl RelayAddress {
    fn read(from: &mut Reader) -> Read<Self> {
        Ok(Self { relay: from.relay()?, address: from.string("address", ADDRESS_BYTES_MAX)? })
    }
}

impl AttachListener {
    fn read(from: &mut Reader) -> Read<Self> {
        let queue = from.queue()?;
        let listener = from.client("listener")?;
        let slow = match from.u8("slow")? {
            0 => None,
            number => Some(SlowPolicy::of_number(from, number)?),
        };
        let prefixes = from
            .list("prefixes", PREFIXES_MAX, 2, |from| from.bytes("prefixes[]", PREFIX_BYTES_MAX))?;
        Ok(Self { queue, listener, slow, prefixes })
    }
}

impl Gap {
    fn read(from: &mut Reader) -> Read<Self> {
        Ok(Self {
            slot: from.slot()?,
            from: from.sequence("from")?,
            to: from.sequence("to")?,
            messages: from.u64("messages")?,
            cause: GapCause::read(from)?,
        })
    }
}

impl Start {
    fn read(from: &mut Reader) -> Read<Self> {
        Ok(Self {
            slot: from.slot()?,
            producer: from.client("producer")?,
            epoch: from.epoch("epoch")?,
            first: from.sequence("first")?,
            previous: from.epoch("previous")?,
        })
    }
}

impl Register {
    fn read(from: &mut Reader) -> Read<Self> {
        Ok(Self {
            relay: from.relay()?,
            queue: from.queue()?,
            request: from.string("request", REQUEST_BYTES_MAX)?,
            address: from.string("address", ADDRESS_BYTES_MAX)?,
            zmtp: (
                from.string("zmtp.in", ADDRESS_BYTES_MAX)?,
                from.string("zmtp.out", ADDRESS_BYTES_MAX)?,
            ),
            capacity: Capacity::read(from)?,
            fence: from.fence()?,
        })
    }
}

impl Capacity {
    fn read(from: &mut Reader) -> Read<Self> {
        Ok(Self {
            bytes_in_per_s: from.u64("capacity.bytes_in_per_s")?,
            bytes_out_per_s: from.u64("capacity.bytes_out_per_s")?,
            messages_in_per_s: from.u64("capacity.messages_in_per_s")?,
            messages_out_per_s: from.u64("capacity.messages_out_per_s")?,
            connections: from.u32("capacity.connections")?,
        })
    }
}

impl RelaySettings {
    fn read(from: &mut Reader) -> Read<Self> {
        Ok(Self {
            acknowledge: Acknowledge::read(from)?,
            slow: SlowPolicy::read(from)?,
            ring_bytes_max: from.u64("ring_bytes_max")?,
            report_ms: from.u32("report_ms")?,
            keep: (
                from.string("keep.address", ADDRESS_BYTES_MAX)?,
                from.string("keep.queue", QUEUE_NAME_BYTES_MAX)?,
            ),
        })
    }
}

impl Report {
    fn read(from: &mut Reader) -> Read<Self> {
        Ok(Self {
            number: from.u64("number")?,
            uptime_ms: from.u64("uptime_ms")?,
            messages_in: from.u64("messages_in")?,
            bytes_in: from.u64("bytes_in")?,
            messages_out: from.u64("messages_out")?,
            bytes_out: from.u64("bytes_out")?,
            dropped: from.u64("dropped")?,
            spilled: from.u64("spilled")?,
            left_behind: from.u64("left_behind")?,
            listeners: from.u32("listeners")?,
            cpu_us: from.u64("cpu_us")?,
            queued_bytes: from.u64("queued_bytes")?,
            latency_mean_us: from.u32("latency_mean_us")?,
            latency_p99_us: from.u32("latency_p99_us")?,
            drained: from.bool("drained")?,
            more: from.bool("more")?,
            producers: from.list(
                "producers",
                REPORT_PRODUCERS_MAX,
                PRODUCER_REPORT_BYTES,
                ProducerReport::read,
            )?,
        })
    }
}

impl ProducerReport {
    fn read(from: &mut Reader) -> Read<Self> {
        Ok(Self {
            producer: from.client("producers[].producer")?,
            epoch: from.epoch("producers[].epoch")?,
            next: from.sequence("producers[].next")?,
            messages: from.u64("producers[].messages")?,
            bytes: from.u64("producers[].bytes")?,
            bytes_out: from.u64("producers[].bytes_out")?,
            foreign: from.bool("producers[].foreign")?,
        })
    }
}
