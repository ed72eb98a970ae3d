//! CMQ, a message queue without a broker (Fritsch and Walker, 2012): `new_rq`, `cw_push`, `cw_pop`.
//! The rules are in `quelea-cmq-proto`; this crate gives them a socket, threads and types, and knows
//! nothing of the wire. Start reading at [`endpoint`].

mod background;
mod call_frame;
mod clock;
pub mod cmq;
pub mod codec;
pub mod dest;
mod driver;
pub mod endpoint;
pub mod future;
pub mod gap_detector;
mod leadership;
pub mod message;
mod missing;
pub mod multicast;
mod net;
mod numbered;
mod outcome;
pub mod peer;
mod push;
pub mod queue;
pub mod replace;
pub mod replay;
mod replies;
pub mod request;
pub mod responder;
mod ring;
mod state;
pub mod stats;
mod sync;
mod until;
mod wait;
mod wait_future;
mod waiter;

pub use cmq::Cmq;
pub use codec::{Codec, Raw};
pub use dest::Dest;
pub use endpoint::Endpoint;
pub use future::{CallError, Lost, OnLoss, Pending};
pub use gap_detector::GapDetector;
pub use message::{Message, MessageRef, Receipt};
pub use outcome::Outcome;
pub use peer::Peer;
pub use queue::Queue;
pub use replace::Replace;
pub use replay::Replay;
pub use request::Caller;
pub use responder::Responder;
pub use stats::Stats;

pub use quelea_cmq_proto as proto;
pub use quelea_cmq_proto::{
    Config, DestinationOptions, DestinationStats, Event, Key, Mailbox, MailboxOptions, Mode,
    PeerCounts, PushError, Repair, WhenFull,
    config::{PreSharedKey, Wire},
    endpoint::{DestinationError, MailboxError},
};

/// The page's examples compile.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/cmq/library.md")]
mod page {}
