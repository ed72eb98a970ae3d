//! The queues of the broker in this process as the SQS service wants them: the trait
//! [`Queues`](quelea_sqs_protocol::Queues) in calls of the core. It keeps nothing that a request needs but
//! what it can look up again, and must never speak HTTP: `front.rs` puts the server of `sqs/server` over it.
//! Start with `queues.rs`; `message.rs` turns SQS's messages into AMQP's and back.

pub mod attributes;
mod broker_calls;
mod front;
mod identity;
mod identity_cache;
mod limits;
mod listing;
mod message;
mod moves;
mod queue_cache;
mod queues;
mod receipt;
mod receive;
mod settings;
mod undelivered;

pub use front::{EmbeddedStore, FrontError, serve};
pub use identity::EmbeddedIdentity;
pub use queues::EmbeddedQueues;
pub use settings::EmbeddedSettings;
