//! The broker's front for CMQ: what peers push to a mailbox is published to an exchange, and what a
//! queue holds is pushed to a peer. It must never acknowledge a datagram to its sender before the
//! store has its messages as the queues' durability says, nor a message to its queue before the peer
//! has it. Start reading at [`front`]; [`intake`] and [`forward`] are the two ways.

mod api;
mod counters;
mod forward;
mod forward_state;
mod front;
mod intake;
mod peer;
mod publish;
mod route;
mod settings;

pub use api::routes;
pub use counters::{Cause, DatagramCounters};
pub use front::{DatagramFront, DatagramStartError};
pub use peer::{Peer, PeerError, local_address};
pub use route::{KeyTemplate, KeyTemplateError, Mailboxes, MailboxesError, Route};
pub use settings::{DatagramSettings, ForwardSettings};
