//! CMQ, a message queue without a broker (Fritsch and Walker, 2012): `new_rq`, `cw_push`, `cw_pop`.
//! The rules are in `quelea-cmq-proto`; this crate gives them a socket, threads and types, and knows
//! nothing of the wire. Start reading at [`endpoint`].

mod background;
mod clock;
pub mod cmq;
pub mod codec;
pub mod dest;
mod driver;
pub mod endpoint;
pub mod message;
pub mod multicast;
mod net;
mod pending;
mod push;
pub mod queue;
mod ring;
mod sleep;
mod state;
pub mod stats;
mod wait;
mod waiting;

pub use cmq::Cmq;
pub use codec::{Codec, Raw};
pub use dest::Dest;
pub use endpoint::Endpoint;
pub use message::{Message, MessageRef, Receipt};
pub use queue::Queue;
pub use stats::Stats;

pub use quelea_cmq_proto as proto;
pub use quelea_cmq_proto::{
    Config, DestinationOptions, Event, Key, Mailbox, MailboxOptions, Mode, PushError, Repair,
    WhenFull,
    config::{PreSharedKey, Wire},
    endpoint::{DestinationError, MailboxError},
};
