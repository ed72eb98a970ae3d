//! Why operations fail: one small struct per failure, one enum per operation. Their texts are what
//! RabbitMQ says, without the reply code's name in front; fronts map them to reply codes.

mod commit;
mod name_check;
mod removal;
mod routing;
mod sqs;

use std::fmt;

use quelea_model::{NameError, QueueId, QueueName, VhostName};
use thiserror::Error;

use crate::access::error::AccessError;
pub use commit::CommitError;
pub use name_check::{NameBeingChecked, NameUnknown, ReplicatedQueue};
pub use removal::{BeingDeleted, MakingRoom};
pub use routing::{
    BindingError, DefaultExchange, ExchangeError, RouteError, TopicLimit, UnknownExchangeType,
};
pub use sqs::{CreateQueueError, MoveError, ReceiveError, SendError};

/// AMQP `NOT_FOUND`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no queue '{queue}' in vhost '{vhost}'")]
pub struct NoSuchQueue {
    /// Where it was looked for.
    pub vhost: VhostName,
    /// The name asked for.
    pub queue: String,
}

/// AMQP `NOT_FOUND`: an empty queue name on a channel that has declared none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("no previously declared queue")]
pub struct NoQueueDeclared;

/// AMQP `NOT_FOUND`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no exchange '{exchange}' in vhost '{vhost}'")]
pub struct NoSuchExchange {
    /// Where it was looked for.
    pub vhost: VhostName,
    /// The name asked for.
    pub exchange: String,
}

/// What a permission is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceKind {
    /// A queue.
    Queue,
    /// An exchange.
    Exchange,
    /// A routing key of a topic exchange.
    Topic,
}

impl fmt::Display for ResourceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Queue => "queue",
            Self::Exchange => "exchange",
            Self::Topic => "topic",
        })
    }
}

/// AMQP `ACCESS_REFUSED`: the user's permissions do not allow it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{operation} access to {kind} '{name}' in vhost '{vhost}' refused for user '{user}'")]
pub struct AccessRefused {
    /// `configure`, `write` or `read`.
    pub operation: &'static str,
    /// What was to be used.
    pub kind: ResourceKind,
    /// Its name; for a topic: the routing key.
    pub name: String,
    /// In which vhost.
    pub vhost: VhostName,
    /// By whom.
    pub user: String,
}

/// AMQP `ACCESS_REFUSED`: names with this prefix are the broker's.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{kind} name '{name}' contains reserved prefix 'amq.*'")]
pub struct ReservedName {
    /// Queue or exchange.
    pub kind: ResourceKind,
    /// The name.
    pub name: String,
}

/// AMQP `RESOURCE_LOCKED`: the queue is exclusive to another connection.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "cannot obtain exclusive access to locked queue '{queue}' in vhost '{vhost}'. It could be \
     originally declared on another connection or the exclusive property value does not match that \
     of the original declaration."
)]
pub struct QueueLocked {
    /// Its vhost.
    pub vhost: VhostName,
    /// Its name.
    pub queue: QueueName,
}

/// AMQP `PRECONDITION_FAILED`: declared again, differently.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "inequivalent arg '{field}' for {kind} '{name}' in vhost '{vhost}': received {received} but \
     current is {current}"
)]
pub struct Inequivalent {
    /// Queue or exchange.
    pub kind: ResourceKind,
    /// Its vhost.
    pub vhost: VhostName,
    /// Its name.
    pub name: String,
    /// Which property or argument differs.
    pub field: String,
    /// What was asked for, as RabbitMQ prints it.
    pub received: String,
    /// What stands.
    pub current: String,
}

/// AMQP `PRECONDITION_FAILED`: an argument has a wrong type or value.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("invalid arg '{argument}' for {kind} '{name}' in vhost '{vhost}': {problem}")]
pub struct InvalidArgument {
    /// Queue, exchange.
    pub kind: ResourceKind,
    /// Its vhost.
    pub vhost: VhostName,
    /// Its name.
    pub name: String,
    /// Which argument.
    pub argument: String,
    /// What is wrong, with the value and the limit.
    pub problem: String,
}

/// AMQP `PRECONDITION_FAILED`: more arguments than a queue, an exchange, a binding or a consumer
/// may keep.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("arguments of {size} {unit}: the limit is {limit}")]
pub struct ArgumentsTooLarge {
    /// How many there are.
    pub size: usize,
    /// Of what: `bytes` (encoded), `entries` or `levels` (nested in each other).
    pub unit: &'static str,
    /// How many there may be.
    pub limit: usize,
}

/// AMQP `PRECONDITION_FAILED`: a name that is none.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("invalid name: {0}")]
pub struct InvalidName(pub String);

/// AMQP `PRECONDITION_FAILED`: there are enough of them.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("cannot create {what}: the limit of {limit} is reached")]
pub struct LimitReached {
    /// What there are too many of, and where.
    pub what: String,
    /// How many there may be.
    pub limit: usize,
}

/// AMQP `PRECONDITION_FAILED`: delete with if-unused or if-empty.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("queue '{queue}' in vhost '{vhost}' {problem}")]
pub struct QueueInUse {
    /// Its vhost.
    pub vhost: VhostName,
    /// Its name.
    pub queue: QueueName,
    /// `in use` or `not empty`.
    pub problem: &'static str,
}

/// AMQP `ACCESS_REFUSED`: someone consumes exclusively, or wants to where others consume.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("queue '{queue}' in vhost '{vhost}' in exclusive use")]
pub struct ExclusivelyConsumed {
    /// Its vhost.
    pub vhost: VhostName,
    /// Its name.
    pub queue: QueueName,
}

/// The channel or connection is gone; the caller raced with its close. There is nobody to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the channel is closed")]
pub struct ChannelGone;

/// AMQP `PRECONDITION_FAILED`: an acknowledgement of what was not delivered, or twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("unknown delivery tag {tag}")]
pub struct UnknownDeliveryTag {
    /// The tag.
    pub tag: u64,
}

/// Why a connection is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OpenError {
    /// AMQP `NOT_ALLOWED`.
    #[error("vhost {vhost} not found")]
    NoSuchVhost {
        /// The name asked for.
        vhost: String,
    },
    /// AMQP `NOT_ALLOWED`.
    #[error("access to vhost '{vhost}' refused for user '{user}'")]
    Refused {
        /// The vhost.
        vhost: String,
        /// The user.
        user: String,
    },
    /// AMQP `NOT_ALLOWED`.
    #[error("user '{user}' can only connect via localhost")]
    NotLoopback {
        /// The user.
        user: String,
    },
    /// AMQP `NOT_ALLOWED`.
    #[error(
        "access to vhost '{vhost}' refused for user '{user}': connection limit ({limit}) is reached"
    )]
    TooMany {
        /// The vhost.
        vhost: String,
        /// The user.
        user: String,
        /// How many connections there may be.
        limit: usize,
    },
}

/// Why the queue or the exchange that an operation names cannot be used by it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "each variant is the failure that it wraps")]
pub enum ResourceError {
    #[error(transparent)]
    ChannelGone(#[from] ChannelGone),
    #[error(transparent)]
    NoQueueDeclared(#[from] NoQueueDeclared),
    #[error(transparent)]
    AccessRefused(#[from] AccessRefused),
    #[error(transparent)]
    NoSuchQueue(#[from] NoSuchQueue),
    #[error(transparent)]
    NoSuchExchange(#[from] NoSuchExchange),
    #[error(transparent)]
    QueueLocked(#[from] QueueLocked),
}

/// Why a queue was not declared.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "each variant is the failure that it wraps")]
pub enum DeclareQueueError {
    #[error(transparent)]
    ChannelGone(#[from] ChannelGone),
    #[error(transparent)]
    Resource(#[from] ResourceError),
    #[error(transparent)]
    ArgumentsTooLarge(#[from] ArgumentsTooLarge),
    #[error(transparent)]
    InvalidName(#[from] InvalidName),
    #[error(transparent)]
    ReservedName(#[from] ReservedName),
    #[error(transparent)]
    Inequivalent(#[from] Inequivalent),
    #[error(transparent)]
    InvalidArgument(#[from] InvalidArgument),
    #[error(transparent)]
    LimitReached(#[from] LimitReached),
    /// Fronts that can wait try again when [`crate::Broker::names_freed`] has changed.
    #[error(transparent)]
    BeingDeleted(#[from] BeingDeleted),
    /// As [`DeclareQueueError::BeingDeleted`].
    #[error(transparent)]
    MakingRoom(#[from] MakingRoom),
    #[error(transparent)]
    ReplicatedQueue(#[from] ReplicatedQueue),
    #[error(transparent)]
    NameUnknown(#[from] NameUnknown),
    /// As [`DeclareQueueError::BeingDeleted`].
    #[error(transparent)]
    NameBeingChecked(#[from] NameBeingChecked),
}

/// Why a queue was not deleted, purged or looked at.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "each variant is the failure that it wraps")]
pub enum QueueError {
    #[error(transparent)]
    ChannelGone(#[from] ChannelGone),
    #[error(transparent)]
    Resource(#[from] ResourceError),
    #[error(transparent)]
    QueueInUse(#[from] QueueInUse),
}

/// Why a message was not taken.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(
    missing_docs,
    reason = "variants without words of their own are the failure that they wrap"
)]
pub enum PublishError {
    #[error(transparent)]
    ChannelGone(#[from] ChannelGone),
    #[error(transparent)]
    AccessRefused(#[from] AccessRefused),
    /// AMQP `ACCESS_REFUSED`.
    #[error("cannot publish to internal exchange '{exchange}' in vhost '{vhost}'")]
    InternalExchange {
        /// Its vhost.
        vhost: VhostName,
        /// Its name.
        exchange: String,
    },
    /// AMQP `PRECONDITION_FAILED`.
    #[error("user_id property set to '{user_id}' but authenticated user was '{user}'")]
    WrongUserId {
        /// The property.
        user_id: String,
        /// The connection's user.
        user: String,
    },
    /// AMQP `PRECONDITION_FAILED`.
    #[error("invalid expiration '{expiration}': {problem}")]
    InvalidExpiration {
        /// The property.
        expiration: String,
        /// Which rule it breaks.
        problem: &'static str,
    },
    /// AMQP `PRECONDITION_FAILED`.
    #[error("fast reply consumer does not exist")]
    NoReplyConsumer,
    /// `NoSuchExchange`: AMQP `NOT_FOUND`; the others, about `CC` and `BCC`: `PRECONDITION_FAILED`.
    #[error(transparent)]
    Route(#[from] RouteError),
    /// AMQP `PRECONDITION_FAILED`: properties that are none.
    #[error("invalid properties: {0}")]
    InvalidProperties(String),
}

/// Why nobody consumes.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(
    missing_docs,
    reason = "variants without words of their own are the failure that they wrap"
)]
pub enum ConsumeError {
    #[error(transparent)]
    ChannelGone(#[from] ChannelGone),
    #[error(transparent)]
    Resource(#[from] ResourceError),
    #[error(transparent)]
    ArgumentsTooLarge(#[from] ArgumentsTooLarge),
    #[error(transparent)]
    ExclusivelyConsumed(#[from] ExclusivelyConsumed),
    #[error(transparent)]
    InvalidArgument(#[from] InvalidArgument),
    #[error(transparent)]
    LimitReached(#[from] LimitReached),
    /// AMQP `NOT_ALLOWED` (a hard error).
    #[error("attempt to reuse consumer tag '{tag}'")]
    TagInUse {
        /// The tag.
        tag: String,
    },
    /// AMQP `PRECONDITION_FAILED`.
    #[error("reply consumer cannot acknowledge")]
    ReplyConsumerAcknowledges,
    /// AMQP `PRECONDITION_FAILED`.
    #[error("reply consumer already set")]
    ReplyConsumerSet,
}

/// Why nothing is got.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "each variant is the failure that it wraps")]
pub enum GetError {
    #[error(transparent)]
    ChannelGone(#[from] ChannelGone),
    #[error(transparent)]
    Resource(#[from] ResourceError),
    #[error(transparent)]
    ExclusivelyConsumed(#[from] ExclusivelyConsumed),
    #[error(transparent)]
    LimitReached(#[from] LimitReached),
}

/// The queue of that number is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("queue {} does not exist any more", queue.0)]
pub struct NoSuchQueueId {
    /// Its number.
    pub queue: QueueId,
}

/// Why users, virtual hosts or permissions were not changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(
    missing_docs,
    reason = "variants without words of their own are the failure that they wrap"
)]
pub enum AdminError {
    /// There is no such user.
    #[error("no user '{user}'")]
    NoSuchUser {
        /// The name.
        user: String,
    },
    /// There is no such virtual host.
    #[error("no vhost '{vhost}'")]
    NoSuchVhost {
        /// The name.
        vhost: String,
    },
    /// One of that name was deleted, and what was in it is not yet out of the log.
    #[error("vhost '{vhost}' is being deleted, try again later")]
    VhostBeingDeleted {
        /// The name.
        vhost: VhostName,
    },
    /// There is no such access key.
    #[error("no access key '{id}'")]
    NoSuchAccessKey {
        /// Its id.
        id: String,
    },
    /// Another store has them, and the log's are not in force.
    #[error("users, permissions and access keys are kept in Cassandra, and are changed there")]
    KeptElsewhere,
    /// There is an access key of that id.
    #[error("there is an access key '{id}' already")]
    AccessKeyExists {
        /// Its id.
        id: String,
    },
    /// The id or secret of an access key is too short, too long, or has other characters than it may.
    #[error("the {field} of an access key has {min} to {max} letters and digits{}", punctuation(.field))]
    AccessKeyText {
        /// `id` or `secret`.
        field: &'static str,
        /// The shortest.
        min: usize,
        /// The longest.
        max: usize,
    },
    #[error(transparent)]
    InvalidName(#[from] NameError),
    #[error(transparent)]
    Access(#[from] AccessError),
}

/// Returns what the text may hold besides, for the error: secrets may hold more characters than
/// ids.
fn punctuation(field: &str) -> &'static str {
    if field == "secret" { ", and other printable ASCII but blanks" } else { "" }
}

/// Why the stored state cannot be served.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RecoveryError {
    /// A stored item of the topology does not decode.
    #[error(transparent)]
    Damaged(#[from] crate::topology::error::TopologyError),
    /// A stored item does not fit to the others.
    #[error("stored topology: {0}")]
    Inconsistent(String),
}
