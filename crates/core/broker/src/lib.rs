//! The broker without I/O: virtual hosts, exchanges, queues, consumers, access.
//! It must never read a clock, open a socket or a file, or block: time comes in as an argument,
//! messages are promised by the store's tickets, and what is to be done goes out as [`Effect`]s.
//! Start with [`Broker`] in `broker.rs`; a message's way is `publish.rs`, `queue.rs`, `dispatch.rs`,
//! `acknowledge.rs`.

pub mod access;
mod access_keys;
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
mod grouping;
mod ids;
mod last_route;
mod memory;
mod move_tasks;
mod publish;
mod queue;
mod queue_attributes;
mod random;
mod read_ahead;
mod receipts;
mod receive;
mod recovery;
mod reply;
mod reply_to;
pub mod report;
mod request;
mod route_cache;
mod router;
mod send;
mod timers;
mod topology;
mod transaction;
mod unacked;
mod vhost;

pub use access_keys::{AccessKey, NewAccessKey};
pub use broker::Broker;
pub use config::BrokerConfig;
pub use dead_letter::REDRIVE_SOURCE_HEADER;
pub use effect::{CloseReason, Effect};
pub use error::{
    AdminError, BindingError, ChannelGone, ConsumeError, CreateQueueError, DeclareQueueError,
    ExchangeError, GetError, MoveError, NoSuchQueueId, OpenError, PublishError, QueueError,
    ReceiveError, RecoveryError, SendError, UnknownDeliveryTag,
};
pub use grouping::GROUP_HEADER;
pub use ids::{ChannelId, ConnectionId, ReceiveId};
pub use move_tasks::{MoveFailure, MoveTaskId, MoveTaskReport, MoveTaskState, NoMoveTaskId};
pub use queue::{Fifo, QueueAttributes, QueueSettings, Redrive};
pub use queue_attributes::{QueueBacklog, QueuePermits};
pub use receipts::ReceiptOutcome;
pub use receive::{Receipt, Receive, ReceivedMessage};
pub use reply::{Published, Purged, QueueDeclared, QueueDeleted};
pub use request::{
    ConnectionInfo, Consume, DeclareExchange, DeclareQueue, ExchangeBinding, Publish, QueueBinding,
};
pub use send::{Send, SentMessage};
