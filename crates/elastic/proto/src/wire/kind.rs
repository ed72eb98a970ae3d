//! The frames' numbers.

use crate::Frame;
use crate::limits::{
    CONTROL_BYTES_MAX, DATA_HEADER_BYTES, FRAME_HEADER_BYTES, KEEP_BYTES_MAX, MESSAGE_BYTES_MAX,
};

macro_rules! kinds {
    ($($name:ident = $number:literal $text:literal,)*) => {
        /// What a frame is. The numbers are on the wire.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        #[allow(missing_docs, reason = "each is described at crate::Frame")]
        pub enum Kind {
            $($name = $number,)*
        }

        impl Kind {
            /// All of them, in the order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The kind with this number, if there is one.
            #[must_use]
            pub const fn of_number(number: u8) -> Option<Self> {
                Some(match number {
                    $($number => Self::$name,)*
                    _ => return None,
                })
            }

            /// As the documentation calls it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

kinds! {
    Hello = 0x01 "HELLO",
    Welcome = 0x02 "WELCOME",
    Error = 0x03 "ERROR",
    Ping = 0x04 "PING",
    Pong = 0x05 "PONG",
    Bye = 0x06 "BYE",
    OpenProducer = 0x10 "OPEN_PRODUCER",
    OpenListener = 0x11 "OPEN_LISTENER",
    Producing = 0x12 "PRODUCING",
    ProduceFailed = 0x13 "PRODUCE_FAILED",
    Listening = 0x14 "LISTENING",
    RelayLost = 0x15 "RELAY_LOST",
    Close = 0x16 "CLOSE",
    ProduceAt = 0x20 "PRODUCE_AT",
    ListenAt = 0x21 "LISTEN_AT",
    Redirect = 0x22 "REDIRECT",
    Notice = 0x23 "NOTICE",
    Directories = 0x24 "DIRECTORIES",
    AttachProducer = 0x30 "ATTACH_PRODUCER",
    AttachListener = 0x31 "ATTACH_LISTENER",
    Subscribe = 0x32 "SUBSCRIBE",
    Unsubscribe = 0x33 "UNSUBSCRIBE",
    Received = 0x34 "RECEIVED",
    Attached = 0x40 "ATTACHED",
    Credit = 0x41 "CREDIT",
    Ack = 0x42 "ACK",
    Gap = 0x43 "GAP",
    Draining = 0x44 "DRAINING",
    Start = 0x50 "START",
    Data = 0x51 "DATA",
    Fin = 0x52 "FIN",
    Missed = 0x53 "MISSED",
    Register = 0x60 "REGISTER",
    Registered = 0x61 "REGISTERED",
    Report = 0x62 "REPORT",
    Drain = 0x63 "DRAIN",
    Stop = 0x64 "STOP",
    FenceProducer = 0x65 "FENCE_PRODUCER",
    KeepOpen = 0x70 "KEEP_OPEN",
    Keep = 0x71 "KEEP",
    Kept = 0x72 "KEPT",
}

impl Kind {
    /// The greatest body of this kind, in bytes.
    #[must_use]
    pub const fn body_bytes_max(self) -> usize {
        match self {
            Self::Data => DATA_HEADER_BYTES - FRAME_HEADER_BYTES + MESSAGE_BYTES_MAX,
            Self::Keep => KEEP_BYTES_MAX,
            _ => CONTROL_BYTES_MAX,
        }
    }
}

impl Frame {
    /// What it is.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Hello(_) => Kind::Hello,
            Self::Welcome(_) => Kind::Welcome,
            Self::Error(_) => Kind::Error,
            Self::Ping(_) => Kind::Ping,
            Self::Pong(_) => Kind::Pong,
            Self::Bye(_) => Kind::Bye,
            Self::OpenProducer(_) => Kind::OpenProducer,
            Self::OpenListener(_) => Kind::OpenListener,
            Self::Producing { .. } => Kind::Producing,
            Self::ProduceFailed { .. } => Kind::ProduceFailed,
            Self::Listening { .. } => Kind::Listening,
            Self::RelayLost { .. } => Kind::RelayLost,
            Self::Close { .. } => Kind::Close,
            Self::ProduceAt { .. } => Kind::ProduceAt,
            Self::ListenAt { .. } => Kind::ListenAt,
            Self::Redirect { .. } => Kind::Redirect,
            Self::Notice { .. } => Kind::Notice,
            Self::Directories(_) => Kind::Directories,
            Self::AttachProducer { .. } => Kind::AttachProducer,
            Self::AttachListener(_) => Kind::AttachListener,
            Self::Subscribe(_) => Kind::Subscribe,
            Self::Unsubscribe(_) => Kind::Unsubscribe,
            Self::Received(_) => Kind::Received,
            Self::Attached { .. } => Kind::Attached,
            Self::Credit { .. } => Kind::Credit,
            Self::Ack { .. } => Kind::Ack,
            Self::Gap(_) => Kind::Gap,
            Self::Draining { .. } => Kind::Draining,
            Self::Start(_) => Kind::Start,
            Self::Data { .. } => Kind::Data,
            Self::Fin { .. } => Kind::Fin,
            Self::Missed { .. } => Kind::Missed,
            Self::Register(_) => Kind::Register,
            Self::Registered { .. } => Kind::Registered,
            Self::Report(_) => Kind::Report,
            Self::Drain { .. } => Kind::Drain,
            Self::Stop { .. } => Kind::Stop,
            Self::FenceProducer { .. } => Kind::FenceProducer,
            Self::KeepOpen { .. } => Kind::KeepOpen,
            Self::Keep { .. } => Kind::Keep,
            Self::Kept { .. } => Kind::Kept,
        }
    }
}
