//! The broker without I/O: virtual hosts, exchanges, queues, consumers, access.
//! It must never read a clock, open a socket or a file, or block: time comes in as an argument,
//! messages are promised by the store's tickets, and what is to be done goes out as [`Effect`]s.
//! Start with [`Broker`] in `broker.rs`, a façade over parts that do not know it: `access.rs` (who
//! may do what), `routing.rs` (where messages go) and `messaging.rs` (`queues.rs`, `clients.rs`,
//! `log.rs`). A message's way is `broker/publish.rs`, `messaging/enqueue.rs`,
//! `messaging/dispatch.rs`, `messaging/settle.rs`.

pub mod access;
mod argument_bounds;
mod broker;
mod checkpoint;
mod clients;
mod config;
mod effect;
pub mod error;
mod ids;
mod log;
mod messaging;
mod name_checks;
mod queues;
mod random;
mod removals;
mod reply;
pub mod report;
mod request;
mod routing;
mod sqs;
mod topology;
mod topology_changes;
mod work;

pub use access::access_key::{AccessKey, NewAccessKey};
pub use broker::{
    Broker, ChannelSample, ExchangeSample, ListKey, Listable, ListedName, PublishRoute,
    QueueSample, SampleStart, SampledKeys,
};
pub use config::BrokerConfig;
pub use effect::{CloseReason, Effect};
pub use error::{
    AdminError, BindingError, ChannelGone, CommitError, ConsumeError, CreateQueueError,
    DeclareQueueError, ExchangeError, GetError, MoveError, NoSuchQueueId, OpenError, PublishError,
    QueueError, ReceiveError, RecoveryError, SendError, UnknownDeliveryTag,
};
pub use ids::{ChannelId, ConnectionId, ExchangeId, ReceiveId, VhostId};
pub use messaging::{REDRIVE_RECEIVES_HEADER, REDRIVE_SOURCE_HEADER};
pub use name_checks::{NameQuestion, NameVerdict};
pub use queues::queue::attributes::{Fifo, QueueAttributes, QueueSettings, Redrive};
pub use queues::queue::groups::GROUP_HEADER;
pub use reply::{
    BrowsedMessage, BrowsedPage, Published, Purged, QueueBacklog, QueueDeclared, QueueDeleted,
    QueueNames, QueuePermits, Receipt, ReceiptOutcome, ReceivedMessage, SentMessage,
};
pub use request::{
    Browse, BrowsePlace, ConnectionInfo, Consume, DeclareExchange, DeclareQueue, ExchangeBinding,
    Publish, QueueBinding, Receive, Send,
};
pub use routing::{binding, exchange};
pub use sqs::move_tasks::report::{
    MoveFailure, MoveProgress, MoveTaskId, MoveTaskReport, MoveTaskState, NoMoveTaskId,
};
pub use topology::queue_names::queue_names;
pub use topology_changes::{ChangedBinding, TopologyAction, TopologyChange};
