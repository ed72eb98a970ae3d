//! What a method may use while it is carried out.

use quelea_amqp_codec::ServerConnection;
use quelea_broker::Broker;
use quelea_model::{Time, Timestamp};

use crate::transaction::TransactionUse;

/// The broker, the wire, the connection's transactions and the time, for one event.
pub(crate) struct MethodContext<'a> {
    pub(crate) broker: &'a mut Broker,
    pub(crate) wire: &'a mut ServerConnection,
    pub(crate) transactions: &'a mut TransactionUse,
    pub(crate) now: Timestamp,
    /// When the input came that is carried out.
    pub(crate) input_at: Time,
    /// The broker's steps at which this turn's are used up.
    pub(crate) steps_end: u64,
}
