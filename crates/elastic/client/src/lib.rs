//! A client of elastic queues: connect to any directory, publish and listen by a queue's name. Where the
//! relays are, that they come, go and die, is seen to by the sessions of `quelea-elastic-proto`; here
//! are their sockets. One task serves one producer or listener; who publishes or takes messages hands
//! them over in batches, so that neither costs a wake-up.
//! It must never decide where a message goes, in which order messages come or what is missing: that is those sessions'.
//! Start with [`Client`] in `client.rs`, then `driver.rs`, a turn of the task.
//!
//! ```no_run
//! # async fn run() -> Result<(), quelea_elastic_client::Error> {
//! use quelea_elastic_client::{Client, Event, Options};
//!
//! let client = Client::connect(["127.0.0.1:5670"], Options::default())?;
//! let mut listener = client.listener("prices", ["eur."]).await?;
//! let producer = client.producer("prices").await?;
//! producer.publish("eur.usd", "1.0841").await?;
//! if let Event::Message(message) = listener.next().await? {
//!     assert_eq!(message.body(), b"1.0841");
//! }
//! # Ok(()) }
//! ```

mod client;
mod connection;
mod directory;
mod driver;
mod error;
mod listener;
mod options;
mod producer;
mod shared;
mod site;

pub use client::Client;
pub use error::Error;
pub use listener::{Event, Listener, ListenerControl};
pub use options::Options;
pub use producer::Producer;
pub use quelea_elastic_proto::frame::{ErrorCode, GapCause, NoticeCode, SlowPolicy, WireError};
pub use quelea_elastic_proto::session::{
    GapNotice, ListenerStats, Message, ProducerStats, PublishError, SessionEvent, SubscribeError,
};
pub use quelea_elastic_proto::{ClientId, MessageSeq, Named, RelayId, UnknownName};

/// The page's examples compile.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/elastic/clients.md")]
mod page {}
