//! AMQP sessions without I/O: a [`Session`] turns the events of one connection's wire into the
//! broker's operations, and the broker's effects and the store's progress into frames. It must
//! never read a clock, touch a socket, or know how a queue works; which reply code a failure of the
//! broker has stands in `errors.rs` alone. Start with [`Session`], then `methods.rs` and `publish.rs`.
//!
//! # Driving sessions
//! A turn of the shell, over all its sessions and their one broker:
//! 1. [`Session::receive`] what was read, if the session [`wants_input`](Session::wants_input) (the middle of a large
//!    body goes to [`Session::body_buffer`]);
//!    [`Session::process`] for those that said that more waits or that are
//!    [stalled](Session::is_stalled); [`Session::handle_timeout`] for those whose deadline came;
//!    [`Session::poll_auth`], whose verdict goes to [`Session::authenticated`].
//! 2. `Broker::run`, then `Broker::poll_effect` until there is none, each to [`Session::effect`].
//! 3. [`Session::flush_confirms`] with the store's progress, for every session of step 1, and
//!    [`Session::progress`] for all when the store has come further.
//! 4. Write [`Session::output`]; report it to [`Session::written`]. If [`Session::is_finished`] and nothing
//!    is left to write, close the socket. If the peer is gone: [`Session::disconnected`].
//!
//! Effects have to be carried out before `flush_confirms`: cancel-ok stays behind deliveries.

mod authentication;
mod basic_methods;
mod blocking;
mod body_buffer;
mod channel;
mod configuration;
mod confirm;
mod context;
mod deliveries;
mod effects;
mod errors;
mod exchange_methods;
mod login;
mod methods;
mod names;
mod notice;
mod publish;
mod queue_methods;
mod release;
mod reply;
mod session;
mod stalled;
mod transaction;
mod tx;

pub use configuration::{Peer, SessionConfig};
pub use confirm::ConfirmMeter;
pub use login::{AuthOutcome, AuthRequest};
pub use notice::Notice;
pub use release::PublisherState;
pub use session::{EVENTS_PER_CALL_MAX, Session};

/// The protocol's name in reports.
pub const PROTOCOL: &str = "AMQP 0-9-1";
