//! What a session cannot carry out yet, and why.

use quelea_amqp_codec::Event;
use quelea_amqp_codec::method::Method;
use quelea_broker::{Broker, ChannelId, ConnectionId};

use crate::errors::Failure;

/// What a session goes on with when it may.
pub(crate) enum Stalled {
    /// An event that cannot be carried out now.
    Event(Event),
    /// A method that failed on a channel which owes answers to those before it. The close comes behind them.
    Failure { channel: u16, failure: Failure, ids: (u16, u16) },
    /// A method as the session's parked one, on another channel than that one.
    Parked(Parked),
    /// What comes behind a method that returns very many deliveries, which takes a while.
    Returning(ChannelId),
    /// channel.close-ok: what the channel had is on its way back to its queues.
    ChannelCloseOk { number: u16, channel: ChannelId },
    /// connection.close-ok: what its channels had is.
    ConnectionCloseOk(ConnectionId),
}

impl Stalled {
    /// Returns whether it cannot go on before something has happened in the broker.
    pub(crate) fn waits_for(&self, broker: &Broker) -> bool {
        match self {
            Self::Parked(parked) => parked.names_freed == broker.names_freed(),
            Self::Returning(channel) | Self::ChannelCloseOk { channel, .. } => {
                broker.is_returning(*channel)
            }
            Self::ConnectionCloseOk(connection) => broker.is_returning_of(*connection),
            Self::Event(_) | Self::Failure { .. } => false,
        }
    }
}

/// A method to be carried out again when [`quelea_broker::Broker::names_freed`] is another.
pub(crate) struct Parked {
    pub(crate) channel: u16,
    pub(crate) method: Method,
    pub(crate) names_freed: u64,
}

impl Parked {
    /// Returns whether a method may fail for the sake of something that is being deleted, or asked
    /// for.
    pub(crate) fn may_be(broker: &Broker, method: &Method) -> bool {
        (broker.is_removing() || broker.checks_names())
            && matches!(
                method,
                Method::QueueDeclare(_)
                    | Method::QueueBind(_)
                    | Method::ExchangeDeclare(_)
                    | Method::ExchangeBind(_)
            )
    }
}
