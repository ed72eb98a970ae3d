//! The broker without I/O: virtual hosts, exchanges, queues, consumers, access.
//! It must never read a clock, open a socket or a file, or block: time comes in as an argument,
//! messages are promised by the store's tickets, and what is to be done goes out as [`Effect`]s.
//! Start with [`Broker`] in `broker.rs`; a message's way is `publish.rs`, `queue.rs`, `dispatch.rs`,
//! `acknowledge.rs`.

pub mod access;
mod acknowledge;
mod administration;
mod arena;
mod argument_bounds;
pub mod binding;
mod bindings;
mod broker;
mod channel;
mod checkpoint;
mod clients;
mod config;
mod connection;
mod consume;
mod consumer;
mod dead_letter;
mod death;
mod declare_queue;
mod delete_queue;
mod dispatch;
mod effect;
mod enqueue;
pub mod error;
pub mod exchange;
mod exchanges;
mod find_queue;
mod get;
mod ids;
mod last_route;
mod memory;
mod publish;
mod queue;
mod random;
mod read_ahead;
mod recovery;
mod reply;
mod reply_to;
pub mod report;
mod request;
mod route_cache;
mod router;
mod timers;
mod topology;
mod transaction;
mod unacked;
mod vhost;

pub use broker::Broker;
pub use config::BrokerConfig;
pub use effect::{CloseReason, Effect};
pub use error::{
    AdminError, BindingError, ChannelGone, ConsumeError, DeclareQueueError, ExchangeError,
    GetError, OpenError, PublishError, QueueError, RecoveryError, UnknownDeliveryTag,
};
pub use ids::{ChannelId, ConnectionId};
pub use reply::{Published, Purged, QueueDeclared, QueueDeleted};
pub use request::{
    ConnectionInfo, Consume, DeclareExchange, DeclareQueue, ExchangeBinding, Publish, QueueBinding,
};
