//! The broker without I/O: virtual hosts, exchanges, queues, consumers, access.
//! It must never read a clock, open a socket or a file, or block: time comes in as an argument,
//! messages are promised by the store's tickets, and what is to be done goes out as [`Effect`]s.
//! Start with [`Broker`] in `broker.rs`; a message's way is `publish.rs`, `queue.rs`, `dispatch.rs`,
//! `acknowledge.rs`.

pub mod access;
mod arena;
pub mod binding;
mod broker;
mod config;
mod effect;
pub mod error;
pub mod exchange;
mod ids;
mod reply;
pub mod report;
mod request;
mod route_cache;
mod router;
mod skeleton;
mod topology;

pub use broker::Broker;
pub use config::BrokerConfig;
pub use effect::{CloseReason, Effect};
pub use ids::{ChannelId, ConnectionId};
pub use reply::{Published, Purged, QueueDeclared, QueueDeleted};
pub use request::{
    ConnectionInfo, Consume, DeclareExchange, DeclareQueue, ExchangeBinding, Publish, QueueBinding,
};
