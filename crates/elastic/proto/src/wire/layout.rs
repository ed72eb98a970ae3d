//! The bytes of all frames: each frame's number and name, and its fields in the order in which they stand on
//! the wire. Kinds, encoding and decoding are made of this one list.

use super::form::{
    ByteString, CutText, Field, Form as _, List, LongByteString, Name, Pair, Parts, Plain, Rest,
    Text,
};
use super::reader::{Read, Reader};
use super::writer::Writer;
use crate::Frame;
use crate::frame::{
    AttachListener, Capacity, Gap, Hello, Host, OpenListener, OpenProducer, ProducerReport,
    Register, RelayAddress, RelaySettings, Report, Start, Welcome, WireError,
};
use crate::limits::{
    ADDRESS_BYTES_MAX, DIRECTORIES_MAX, KEEP_MESSAGES_MAX, KEY_BYTES_MAX, MESSAGE_BYTES_MAX,
    NAME_BYTES_MAX, PREFIX_BYTES_MAX, PREFIXES_MAX, QUEUE_NAME_BYTES_MAX, RELAYS_MAX,
    REPORT_PRODUCERS_MAX, REQUEST_BYTES_MAX,
};

const QUEUE: Name = Name(QUEUE_NAME_BYTES_MAX);
const ADDRESS: Text = Text(ADDRESS_BYTES_MAX);
const PREFIX: Rest = Rest(PREFIX_BYTES_MAX);
const RELAYS: List<Plain> = List { max: RELAYS_MAX, element_bytes_min: 8, each: ("relay", Plain) };
const RELAY_ADDRESSES: List<Plain> =
    List { max: RELAYS_MAX, element_bytes_min: 10, each: ("relay", Plain) };
const DIRECTORIES: List<Name> = List {
    max: DIRECTORIES_MAX,
    element_bytes_min: 3,
    each: ("directories", Name(ADDRESS_BYTES_MAX)),
};
const PREFIXES: List<ByteString> = List {
    max: PREFIXES_MAX,
    element_bytes_min: 2,
    each: ("prefixes[]", ByteString(PREFIX_BYTES_MAX)),
};
const MESSAGES: List<LongByteString> = List {
    max: KEEP_MESSAGES_MAX,
    element_bytes_min: 4,
    each: ("messages[]", LongByteString(MESSAGE_BYTES_MAX)),
};
const PRODUCERS: List<Plain> =
    List { max: REPORT_PRODUCERS_MAX, element_bytes_min: 57, each: ("producers[]", Plain) };
const ZMTP: Pair = Pair(("zmtp.in", ADDRESS), ("zmtp.out", ADDRESS));
const KEEP: Pair = Pair(("keep.address", ADDRESS), ("keep.queue", Text(QUEUE_NAME_BYTES_MAX)));

/// A field's form: as its type says if none is named.
macro_rules! form {
    () => {
        Plain
    };
    ($form:expr) => {
        $form
    };
}

/// `NUMBER NAME Variant(field as FORM)` or `NUMBER NAME Variant { field, field as FORM }`.
macro_rules! frames {
    ($($number:literal $name:ident $variant:ident
        $(( $only:ident $(as $only_form:expr)? ))?
        $({ $($field:ident $(as $form:expr)?),* })?
    ;)*) => {
        /// What a frame is. The numbers are on the wire.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        #[allow(missing_docs, reason = "each is described at crate::Frame")]
        pub enum Kind {
            $($variant = $number,)*
        }

        impl Kind {
            /// All of them, in the order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Returns the kind with this number, if there is one.
            #[must_use]
            pub const fn of_number(number: u8) -> Option<Self> {
                Some(match number {
                    $($number => Self::$variant,)*
                    _ => return None,
                })
            }

            /// Returns the name that the documentation uses.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => stringify!($name),)*
                }
            }
        }

        impl Frame {
            /// Returns the frame's kind.
            #[must_use]
            pub const fn kind(&self) -> Kind {
                match self {
                    $(Self::$variant { .. } => Kind::$variant,)*
                }
            }

            /// Writes the body.
            pub(super) fn put(&self, to: &mut Writer<'_>) {
                match self {
                    $(Self::$variant $(($only))? $({ $($field),* })? => {
                        $(form!($($only_form)?).put(to, stringify!($only), $only);)?
                        $($(form!($($form)?).put(to, stringify!($field), $field);)*)?
                    })*
                }
            }

            /// Reads the body.
            pub(super) fn read(kind: Kind, from: &mut Reader) -> Read<Self> {
                Ok(match kind {
                    $(Kind::$variant => Self::$variant
                        $((form!($($only_form)?).read(from, stringify!($only))?))?
                        $({ $($field: form!($($form)?).read(from, stringify!($field))?),* })?,
                    )*
                })
            }
        }
    };
}

frames! {
    0x01 HELLO Hello(hello);
    0x02 WELCOME Welcome(welcome);
    0x03 ERROR Error(error);
    0x04 PING Ping(number);
    0x05 PONG Pong(number);
    0x06 BYE Bye(reason as CutText);
    0x10 OPEN_PRODUCER OpenProducer(open);
    0x11 OPEN_LISTENER OpenListener(open);
    0x12 PRODUCING Producing { queue as QUEUE, producer, epoch, relay, first };
    0x13 PRODUCE_FAILED ProduceFailed { queue as QUEUE, producer, epoch, relay, cause as CutText };
    0x14 LISTENING Listening { queue as QUEUE, listener, generation, relays as RELAYS };
    0x15 RELAY_LOST RelayLost { queue as QUEUE, client, relay, cause as CutText };
    0x16 CLOSE Close { queue as QUEUE, client };
    0x20 PRODUCE_AT ProduceAt { queue as QUEUE, producer, fence, epoch, relay };
    0x21 LISTEN_AT ListenAt {
        queue as QUEUE, listener, fence, generation, relays as RELAY_ADDRESSES
    };
    0x22 REDIRECT Redirect { queue as QUEUE, address as ADDRESS, retry_after_ms };
    0x23 NOTICE Notice { queue as QUEUE, code, text as CutText };
    0x24 DIRECTORIES Directories(directories as DIRECTORIES);
    0x30 ATTACH_PRODUCER AttachProducer { queue as QUEUE, producer, fence, epoch };
    0x31 ATTACH_LISTENER AttachListener(attach);
    0x32 SUBSCRIBE Subscribe(prefix as PREFIX);
    0x33 UNSUBSCRIBE Unsubscribe(prefix as PREFIX);
    0x34 RECEIVED Received(messages);
    0x40 ATTACHED Attached { slot, acknowledge, credit_bytes };
    0x41 CREDIT Credit { slot, bytes };
    0x42 ACK Ack { slot, below };
    0x43 GAP Gap(gap);
    0x44 DRAINING Draining { deadline_ms };
    0x50 START Start(start);
    0x51 DATA Data { slot, sequence, parts as Parts };
    0x52 FIN Fin { slot, next };
    0x53 MISSED Missed { producer, listener, below };
    0x60 REGISTER Register(register);
    0x61 REGISTERED Registered { fence, settings };
    0x62 REPORT Report(report);
    0x63 DRAIN Drain { fence, deadline_ms };
    0x64 STOP Stop { fence };
    0x65 FENCE_PRODUCER FenceProducer { fence, producer, below };
    0x66 HOST Host(host);
    0x70 KEEP_OPEN KeepOpen { queue as QUEUE, target as QUEUE };
    0x71 KEEP Keep { producer, first, messages as MESSAGES };
    0x72 KEPT Kept { producer, below };
}

/// `Type { field, field as FORM }`; `in "outer."` stands before the fields' names in errors.
macro_rules! structures {
    (in $outer:literal: $($type:ident { $($field:ident $(as $form:expr)?),* })*) => {$(
        impl Field for $type {
            fn put(&self, to: &mut Writer<'_>, _: &'static str) {
                $(form!($($form)?).put(to, concat!($outer, stringify!($field)), &self.$field);)*
            }

            fn read(from: &mut Reader, _: &'static str) -> Read<Self> {
                Ok(Self {
                    $($field: form!($($form)?).read(from, concat!($outer, stringify!($field)))?),*
                })
            }
        }
    )*};
    ($($structures:tt)*) => {
        structures! { in "": $($structures)* }
    };
}

structures! {
    Hello { version, role, name as Text(NAME_BYTES_MAX), key as ByteString(KEY_BYTES_MAX) }
    Welcome { version, heartbeat_ms }
    WireError { code, fatal, field as CutText, text as CutText }
    OpenProducer { queue as QUEUE, producer, expected_bytes_per_s, current }
    OpenListener { queue as QUEUE, listener, attached as RELAYS }
    RelayAddress { relay, address as ADDRESS }
    AttachListener { queue as QUEUE, listener, slow, prefixes as PREFIXES }
    Gap { slot, from, to, messages, cause }
    Start { slot, producer, epoch, first, previous }
    Register {
        relay, queue as QUEUE, request as Text(REQUEST_BYTES_MAX), address as ADDRESS, zmtp as ZMTP,
        capacity, fence
    }
    RelaySettings { acknowledge, slow, ring_bytes_max, report_ms, keep as KEEP }
    Host { memory_bytes, memory_bytes_max, network_in_bytes, network_out_bytes }
    Report {
        number, uptime_ms, messages_in, bytes_in, messages_out, bytes_out, dropped, spilled,
        left_behind, listeners, cpu_us, queued_bytes, latency_mean_us, latency_p99_us, drained, more,
        producers as PRODUCERS
    }
}

structures! { in "capacity.":
    Capacity {
        bytes_in_per_s, bytes_out_per_s, messages_in_per_s, messages_out_per_s, connections
    }
}

structures! { in "producers[].":
    ProducerReport { producer, epoch, next, messages, bytes, bytes_out, foreign }
}
