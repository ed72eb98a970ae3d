//! AMQP 0-9-1 without I/O: frames, methods, and the server's side of a connection, from the protocol
//! header to the last close-ok. It knows nothing of queues and exchanges, reads no clock and touches
//! no socket: bytes and time come in as arguments, events and bytes go out as data.
//!
//! Start with [`ServerConnection`], then [`Method`] and [`Output`]. A client's side has no state
//! machine here, but every piece it needs: [`FrameReader`], [`Method`], and [`Output`]'s writers.
//!
//! # Driving a connection
//! [`ServerConnection::receive`] takes what was read; [`ServerConnection::poll`] returns one [`Event`]
//! a call, and parses no further than that, so that the caller can stop half-way and read no more.
//! The middle of a large body may be read into [`ServerConnection::body_buffer`] instead, which spares a copy.
//! What is to be written gathers in [`ServerConnection::output`]. [`ServerConnection::deadline`] says
//! when to call [`ServerConnection::handle_timeout`]. Once [`ServerConnection::is_finished`], write
//! the output and close the socket.
//!
//! # Closing
//! A client that gets close-ok may rely on what the close undid: its exclusive queues are gone. So
//! [`Event::ChannelClosed`] and [`Event::Closed`] come first; the caller releases what was held and
//! then calls [`ServerConnection::channel_close_ok`] or [`ServerConnection::connection_close_ok`].
//! Both do nothing if no close-ok is owed, so that they can be called after every such event.
//! `close_channel` and `close` queue their method at once and are followed by the same events.

mod config;
mod connection;
mod encode;
mod event;
pub mod frame;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod method;
mod output;
mod reply_code;
#[cfg(feature = "fuzzing")]
mod sample;
mod sasl;
mod short_str;
mod wire;

pub use config::{ConnectionConfig, server_properties};
pub use connection::{AuthFailure, ServerConnection};
pub use event::{CloseCause, Event};
pub use frame::{Frame, FrameError, FrameKind, FrameReader};
pub use method::{Method, Sender};
pub use output::Output;
pub use reply_code::ReplyCode;
pub use sasl::Mechanism;
pub use short_str::{ShortStr, ShortStrError};
pub use wire::DecodeError;
