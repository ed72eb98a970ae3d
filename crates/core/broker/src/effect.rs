//! What the broker wants done: data, carried out by sessions and shells.

use std::sync::Arc;

use quelea_model::{Message, QueueName, VhostName};
use quelea_store::{LoadError, Ticket};

use crate::ids::{ChannelId, ConnectionId, ReceiveId};
use crate::reply::{BrowsedPage, ReceivedMessage};

/// One thing to do for a connection, or for all of them.
#[derive(Clone, Debug)]
pub enum Effect {
    /// basic.deliver.
    Deliver {
        /// The consumer's connection.
        connection: ConnectionId,
        /// Its channel.
        channel: ChannelId,
        /// The channel's number on the wire.
        channel_number: u16,
        /// Which consumer.
        consumer_tag: Arc<str>,
        /// What the client acknowledges; counts from 1 on each channel.
        delivery_tag: u64,
        /// Delivered before.
        redelivered: bool,
        /// The message.
        message: Arc<Message>,
    },
    /// basic.get-ok.
    Got {
        /// The connection that asked.
        connection: ConnectionId,
        /// Its channel.
        channel: ChannelId,
        /// The channel's number on the wire.
        channel_number: u16,
        /// What the client acknowledges; counts from 1 on each channel.
        delivery_tag: u64,
        /// Delivered before.
        redelivered: bool,
        /// Ready messages left in the queue.
        message_count: u32,
        /// The message.
        message: Arc<Message>,
    },
    /// basic.get-empty.
    GotEmpty {
        /// The connection that asked.
        connection: ConnectionId,
        /// Its channel.
        channel: ChannelId,
        /// The channel's number on the wire.
        channel_number: u16,
    },
    /// The answer to a [`crate::Broker::browse`].
    Browsed {
        /// The connection that asked.
        connection: ConnectionId,
        /// What there is.
        page: Box<BrowsedPage>,
    },
    /// The answer to a [`crate::Broker::receive`].
    Received {
        /// Which one.
        receive: ReceiveId,
        /// What there was; empty if nothing came in time, `None` if the queue is gone.
        messages: Option<Vec<ReceivedMessage>>,
        /// The answer leaves when the store has reached it.
        ticket: Ticket,
    },
    /// basic.cancel from the broker: the consumer's queue is gone.
    ConsumerCancelled {
        /// The consumer's connection.
        connection: ConnectionId,
        /// Its channel.
        channel: ChannelId,
        /// The channel's number on the wire.
        channel_number: u16,
        /// Which consumer.
        consumer_tag: Arc<str>,
    },
    /// connection.close from the broker.
    CloseConnection {
        /// Which connection.
        connection: ConnectionId,
        /// Why.
        reason: CloseReason,
    },
    /// connection.blocked, for every connection that publishes.
    PublishersBlocked {
        /// For people.
        reason: String,
    },
    /// The publisher of this connection that was held back may go on: [`crate::Broker::is_held`].
    PublisherResumed {
        /// Which connection.
        connection: ConnectionId,
    },
    /// connection.unblocked.
    PublishersUnblocked,
    /// Messages were set aside since the log does not give them back. For the log of the program.
    MessagesUnreadable {
        /// Their queue's virtual host.
        vhost: VhostName,
        /// Their queue.
        queue: QueueName,
        /// Which messages, where, and why.
        error: Box<LoadError>,
    },
    /// After a start with accepted damage: what was left out, or replaced, since it or something that it needs
    /// is lost. For the log of the program.
    DefinitionLost {
        /// What, and what it needed.
        problem: String,
    },
}

// Each delivery is one, and is moved a few times: what is rare is boxed, not carried by all.
const _: () = assert!(size_of::<Effect>() <= 80);

/// Why the broker closes a connection on its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// Somebody asked for it over the management API.
    Administrator {
        /// What they said.
        reason: String,
    },
    /// The connection's virtual host was deleted.
    VhostDeleted {
        /// Its name.
        vhost: String,
    },
    /// The connection's user was deleted.
    UserDeleted {
        /// Its name.
        user: String,
    },
}

impl CloseReason {
    /// Returns the text for the client.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Administrator { reason } => reason.clone(),
            Self::VhostDeleted { vhost } => format!("vhost '{vhost}' is deleted"),
            Self::UserDeleted { user } => format!("user '{user}' is deleted"),
        }
    }
}
