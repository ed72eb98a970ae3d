//! The one place where failures become AMQP reply codes. The broker's errors carry the facts and
//! RabbitMQ's texts; which code belongs to which is AMQP's business and stands here.
//!
//! Whether a code closes the channel (soft) or the connection (hard) is the code's own property
//! (`ReplyCode::is_hard`, AMQP 0-9-1 §1.2).

use std::fmt::Display;

use quelea_amqp_codec::ReplyCode::{
    self, AccessRefused, NotAllowed, NotFound, NotImplemented, PreconditionFailed, ResourceLocked,
};
use quelea_broker::error::{
    BindingError, CommitError, ConsumeError, DeclareQueueError, ExchangeError, GetError, OpenError,
    PublishError, QueueError, ResourceError, UnknownDeliveryTag,
};
use quelea_broker::exchange::RouteError;

use crate::transaction::TransactionFull;

/// Why a method closes its channel or its connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// For the client.
    Refused {
        /// The reply code.
        code: ReplyCode,
        /// The reply text, without the code's name in front.
        text: String,
    },
    /// It has to be carried out again when more of what is being deleted is gone, or a name's question is answered.
    AwaitsRemoval,
    /// The broker closed the channel or connection while the method was on its way: the client is
    /// notified of it already.
    Gone,
}

impl Failure {
    pub(crate) fn new(code: ReplyCode, text: impl Display) -> Self {
        Self::Refused { code, text: text.to_string() }
    }

    /// Returns a failure with code 540: something that RabbitMQ does not have either.
    pub(crate) fn not_implemented(what: impl Display) -> Self {
        Self::new(NotImplemented, what)
    }

    /// Returns a failure with code 406: the method does not fit the channel's state.
    pub(crate) fn precondition(text: impl Display) -> Self {
        Self::new(PreconditionFailed, text)
    }
}

/// An error that has a reply code; `None` if there is nobody left to answer.
trait HasReplyCode: Display {
    fn code(&self) -> Option<ReplyCode>;

    /// Returns whether the error is for the sake of something that is being deleted, or asked for.
    fn awaits_removal(&self) -> bool {
        false
    }
}

impl<E: HasReplyCode> From<E> for Failure {
    fn from(error: E) -> Self {
        if error.awaits_removal() {
            return Self::AwaitsRemoval;
        }
        error.code().map_or(Self::Gone, |code| Self::new(code, error))
    }
}

impl HasReplyCode for ResourceError {
    fn code(&self) -> Option<ReplyCode> {
        Some(match self {
            Self::ChannelGone(_) => return None,
            Self::NoSuchQueue(_) | Self::NoSuchExchange(_) | Self::NoQueueDeclared(_) => NotFound,
            Self::AccessRefused(_) => AccessRefused,
            Self::QueueLocked(_) => ResourceLocked,
        })
    }
}

impl HasReplyCode for DeclareQueueError {
    fn code(&self) -> Option<ReplyCode> {
        Some(match self {
            Self::ChannelGone(_) => return None,
            Self::Resource(error) => return error.code(),
            Self::ReservedName(_) => AccessRefused,
            Self::BeingDeleted(_) | Self::MakingRoom(_) | Self::NameBeingChecked(_) => {
                ResourceLocked
            }
            Self::InvalidName(_)
            | Self::ArgumentsTooLarge(_)
            | Self::Inequivalent(_)
            | Self::InvalidArgument(_)
            | Self::LimitReached(_)
            | Self::ReplicatedQueue(_)
            | Self::NameUnknown(_) => PreconditionFailed,
        })
    }

    fn awaits_removal(&self) -> bool {
        matches!(self, Self::BeingDeleted(_) | Self::MakingRoom(_) | Self::NameBeingChecked(_))
    }
}

impl HasReplyCode for QueueError {
    fn code(&self) -> Option<ReplyCode> {
        Some(match self {
            Self::ChannelGone(_) => return None,
            Self::Resource(error) => return error.code(),
            Self::QueueInUse(_) => PreconditionFailed,
        })
    }
}

impl HasReplyCode for ExchangeError {
    fn code(&self) -> Option<ReplyCode> {
        Some(match self {
            Self::ChannelGone(_) => return None,
            Self::NoSuchExchange(_) => NotFound,
            Self::AccessRefused(_)
            | Self::DefaultExchange(_)
            | Self::ReservedName(_)
            | Self::System { .. } => AccessRefused,
            Self::BeingDeleted(_) | Self::MakingRoom(_) => ResourceLocked,
            Self::InvalidName(_)
            | Self::ArgumentsTooLarge(_)
            | Self::ArgumentType { .. }
            | Self::Inequivalent(_)
            | Self::InUse { .. }
            // RabbitMQ 3 closes the connection (503), 4 the channel.
            | Self::UnknownType(_)
            | Self::TooMany { .. } => PreconditionFailed,
        })
    }

    fn awaits_removal(&self) -> bool {
        matches!(self, Self::BeingDeleted(_) | Self::MakingRoom(_))
    }
}

impl HasReplyCode for BindingError {
    fn code(&self) -> Option<ReplyCode> {
        Some(match self {
            Self::ChannelGone(_) => return None,
            Self::Resource(error) => return error.code(),
            Self::DefaultExchange(_) => AccessRefused,
            Self::MakingRoom(_) => ResourceLocked,
            Self::ArgumentsTooLarge(_)
            | Self::MatchType { .. }
            | Self::MatchValue { .. }
            | Self::TooMany { .. }
            | Self::Topic { .. }
            | Self::HeadersSteps { .. } => PreconditionFailed,
        })
    }

    fn awaits_removal(&self) -> bool {
        matches!(self, Self::MakingRoom(_))
    }
}

impl HasReplyCode for PublishError {
    fn code(&self) -> Option<ReplyCode> {
        Some(match self {
            Self::ChannelGone(_) => return None,
            Self::AccessRefused(_) | Self::InternalExchange { .. } => AccessRefused,
            Self::WrongUserId { .. }
            | Self::InvalidExpiration { .. }
            | Self::NoReplyConsumer
            | Self::InvalidProperties(_) => PreconditionFailed,
            Self::Route(error) => match error {
                RouteError::NoSuchExchange(_) => NotFound,
                RouteError::HeaderType { .. }
                | RouteError::TooManyKeys { .. }
                | RouteError::TooManySteps { .. } => PreconditionFailed,
            },
        })
    }
}

/// Always 406, as from RabbitMQ: what is wrong with a publish by itself was said when it came.
impl HasReplyCode for CommitError {
    fn code(&self) -> Option<ReplyCode> {
        Some(match self {
            Self::Publish(PublishError::ChannelGone(_)) => return None,
            Self::Publish(_) | Self::QueueFull { .. } | Self::TooManyTargets { .. } => {
                PreconditionFailed
            }
        })
    }
}

impl HasReplyCode for ConsumeError {
    fn code(&self) -> Option<ReplyCode> {
        Some(match self {
            Self::ChannelGone(_) => return None,
            Self::Resource(error) => return error.code(),
            Self::ExclusivelyConsumed(_) => AccessRefused,
            Self::InvalidArgument(_)
            | Self::ArgumentsTooLarge(_)
            | Self::ReplyConsumerAcknowledges
            | Self::ReplyConsumerSet => PreconditionFailed,
            Self::TagInUse { .. } | Self::LimitReached(_) => NotAllowed,
        })
    }
}

impl HasReplyCode for GetError {
    fn code(&self) -> Option<ReplyCode> {
        Some(match self {
            Self::ChannelGone(_) => return None,
            Self::Resource(error) => return error.code(),
            Self::ExclusivelyConsumed(_) => AccessRefused,
            Self::LimitReached(_) => PreconditionFailed,
        })
    }
}

impl HasReplyCode for UnknownDeliveryTag {
    fn code(&self) -> Option<ReplyCode> {
        Some(PreconditionFailed)
    }
}

impl HasReplyCode for TransactionFull {
    fn code(&self) -> Option<ReplyCode> {
        Some(PreconditionFailed)
    }
}

/// Returns the answer to a connection.open that is refused: always 530.
pub(crate) fn open_refused(error: &OpenError) -> (ReplyCode, String) {
    (NotAllowed, error.to_string())
}
