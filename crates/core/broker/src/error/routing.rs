//! Why exchanges and bindings are not what was asked for.

use quelea_model::limits::{
    BINDINGS_PER_VHOST_MAX, EXCHANGES_PER_VHOST_MAX, HEADERS_STEPS_MAX, TOPIC_HASHES_MAX,
    TOPIC_NODES_MAX, TOPIC_STEPS_MAX,
};
use quelea_model::{ExchangeName, VhostName};
use thiserror::Error;

use super::{
    AccessRefused, ArgumentsTooLarge, BeingDeleted, ChannelGone, Inequivalent, InvalidName,
    MakingRoom, NoSuchExchange, ReservedName, ResourceError,
};

/// AMQP `ACCESS_REFUSED`: the default exchange is neither declared, deleted nor bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("operation not permitted on the default exchange")]
pub struct DefaultExchange;

/// Why an exchange was not declared or deleted.
#[derive(Clone, Debug, PartialEq, Error)]
#[allow(
    missing_docs,
    reason = "variants without words of their own are the failure that they wrap"
)]
pub enum ExchangeError {
    #[error(transparent)]
    ChannelGone(#[from] ChannelGone),
    #[error(transparent)]
    ArgumentsTooLarge(#[from] ArgumentsTooLarge),
    #[error(transparent)]
    InvalidName(#[from] InvalidName),
    #[error(transparent)]
    AccessRefused(#[from] AccessRefused),
    /// Of a passive declare, or of a deletion, which RabbitMQ answers with delete-ok all the same.
    #[error(transparent)]
    NoSuchExchange(#[from] NoSuchExchange),
    /// AMQP `PRECONDITION_FAILED`.
    #[error(transparent)]
    UnknownType(#[from] UnknownExchangeType),
    #[error(transparent)]
    DefaultExchange(#[from] DefaultExchange),
    #[error(transparent)]
    ReservedName(#[from] ReservedName),
    #[error(transparent)]
    Inequivalent(#[from] Inequivalent),
    /// AMQP `PRECONDITION_FAILED`: an argument of the wrong type.
    #[error(
        "invalid type '{found}' for arg '{argument}' in exchange '{exchange}' in vhost '{vhost}'"
    )]
    ArgumentType {
        /// The exchange.
        exchange: ExchangeName,
        /// Its vhost.
        vhost: VhostName,
        /// The argument.
        argument: &'static str,
        /// The type that was found.
        found: &'static str,
    },
    /// AMQP `PRECONDITION_FAILED`: the vhost holds as many exchanges as it may.
    #[error(
        "cannot declare exchange '{exchange}' in vhost '{vhost}': \
         exchange limit of {EXCHANGES_PER_VHOST_MAX} is reached"
    )]
    TooMany {
        /// The exchange.
        exchange: ExchangeName,
        /// Its vhost.
        vhost: VhostName,
    },
    /// AMQP `ACCESS_REFUSED`: one of the broker's own is not deleted.
    #[error("deletion of system exchange '{exchange}' in vhost '{vhost}' not allowed")]
    System {
        /// The name.
        exchange: String,
        /// The vhost.
        vhost: VhostName,
    },
    /// AMQP `PRECONDITION_FAILED`: it has bindings and the client asked for if-unused.
    #[error("exchange '{exchange}' in vhost '{vhost}' in use")]
    InUse {
        /// The exchange.
        exchange: ExchangeName,
        /// Its vhost.
        vhost: VhostName,
    },
    /// Fronts that can wait try again when [`crate::Broker::names_freed`] has changed.
    #[error(transparent)]
    BeingDeleted(#[from] BeingDeleted),
    /// As [`ExchangeError::BeingDeleted`].
    #[error(transparent)]
    MakingRoom(#[from] MakingRoom),
}

/// Why something was not bound or unbound.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(
    missing_docs,
    reason = "variants without words of their own are the failure that they wrap"
)]
pub enum BindingError {
    #[error(transparent)]
    ChannelGone(#[from] ChannelGone),
    #[error(transparent)]
    Resource(#[from] ResourceError),
    #[error(transparent)]
    ArgumentsTooLarge(#[from] ArgumentsTooLarge),
    #[error(transparent)]
    DefaultExchange(#[from] DefaultExchange),
    /// Fronts that can wait try again when [`crate::Broker::names_freed`] has changed.
    #[error(transparent)]
    MakingRoom(#[from] MakingRoom),
    /// AMQP `PRECONDITION_FAILED`: a headers exchange's `x-match` is of another type than text.
    #[error("Invalid x-match field type {found}; expected longstr")]
    MatchType {
        /// The type that was found.
        found: &'static str,
    },
    /// AMQP `PRECONDITION_FAILED`: a headers exchange's `x-match` has an unknown value.
    #[error(
        "Invalid x-match field value <<\"{found}\">>; expected all, any, all-with-x, or any-with-x"
    )]
    MatchValue {
        /// The value that was found.
        found: String,
    },
    /// AMQP `PRECONDITION_FAILED`: the vhost holds as many bindings as it may.
    #[error("binding limit of {BINDINGS_PER_VHOST_MAX} in vhost '{vhost}' is reached")]
    TooMany {
        /// The vhost.
        vhost: VhostName,
    },
    /// AMQP `PRECONDITION_FAILED`: the topic exchange could not match keys in bounded time any more.
    #[error("{limit}: exchange '{exchange}' in vhost '{vhost}', pattern '{pattern}'")]
    Topic {
        /// The limit that is reached.
        limit: TopicLimit,
        /// The exchange.
        exchange: ExchangeName,
        /// Its vhost.
        vhost: VhostName,
        /// The binding's key.
        pattern: Box<str>,
    },
    /// AMQP `PRECONDITION_FAILED`: the headers exchange could not match headers in bounded time any more.
    #[error(
        "a headers exchange's bindings may take {HEADERS_STEPS_MAX} steps for any one message, \
         with this one they could take {needed}: exchange '{exchange}' in vhost '{vhost}'"
    )]
    HeadersSteps {
        /// How many it could take.
        needed: u64,
        /// The exchange.
        exchange: ExchangeName,
        /// Its vhost.
        vhost: VhostName,
    },
}

/// A limit of a topic exchange that a binding would go beyond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TopicLimit {
    /// The pattern has too many `#`.
    #[error("a topic pattern may have {TOPIC_HASHES_MAX} separate '#', this one has {found}")]
    Hashes {
        /// How many it has.
        found: usize,
    },
    /// Together with those that are there the pattern could make a key take too many steps.
    #[error(
        "a topic exchange's patterns may take {TOPIC_STEPS_MAX} steps for any one key, \
         with this one they could take {needed}"
    )]
    Steps {
        /// How many it could take.
        needed: u64,
    },
    /// The patterns would take too much memory.
    #[error("a topic exchange's patterns may have {TOPIC_NODES_MAX} different beginnings")]
    Nodes,
}

/// No exchange type has that name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown exchange type '{kind}'")]
pub struct UnknownExchangeType {
    /// The name that was asked for.
    pub kind: Box<str>,
}

/// Why a message could not even be tried on an exchange.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RouteError {
    /// There is none of that name (404 NOT_FOUND).
    #[error(transparent)]
    NoSuchExchange(#[from] NoSuchExchange),
    /// `CC` or `BCC` is not an array of texts (406 PRECONDITION_FAILED).
    #[error("invalid message: {{unacceptable_type_in_header,\"{header}\",{found}}}")]
    HeaderType {
        /// `CC` or `BCC`.
        header: &'static str,
        /// The type that was found.
        found: &'static str,
    },
    /// More keys than [`quelea_model::limits::CC_KEYS_MAX`] in `CC` and `BCC` (406 PRECONDITION_FAILED).
    #[error("invalid message: CC and BCC hold {count} keys, the limit is {max}")]
    TooManyKeys {
        /// How many were found.
        count: usize,
        /// How many may be.
        max: usize,
    },
    /// The bindings of topic and headers exchanges that it came to took more than
    /// [`quelea_model::limits::ROUTE_STEPS_MAX`] steps (406 PRECONDITION_FAILED).
    #[error(
        "invalid message: its keys and headers take more than {max} steps through the bindings of \
         topic and headers exchanges"
    )]
    TooManySteps {
        /// How many may be.
        max: u64,
    },
}
