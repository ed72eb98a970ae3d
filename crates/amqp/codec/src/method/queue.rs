//! Class `queue` (50).

use quelea_model::Table;

use super::shape::shapes;
use crate::short_str::ShortStr;

shapes! {
    /// Creates a queue, or checks that one is there.
    Declare [u16] {
        /// Its name; the server makes one up for the empty name.
        queue: ShortStr,
        /// Only checks that it exists.
        passive: bool,
        /// Survives a restart.
        durable: bool,
        /// Belongs to this connection and goes with it.
        exclusive: bool,
        /// Goes with its last consumer.
        auto_delete: bool,
        /// No answer is wanted.
        no_wait: bool,
        /// `x-…` arguments.
        arguments: Table,
    }
    /// The queue is there.
    DeclareOk {
        /// Its name.
        queue: ShortStr,
        /// Ready messages.
        message_count: u32,
        /// Consumers.
        consumer_count: u32,
    }
    /// Binds a queue to an exchange.
    Bind [u16] {
        /// The queue; empty is the channel's last declared one.
        queue: ShortStr,
        /// The exchange.
        exchange: ShortStr,
        /// The binding's key.
        routing_key: ShortStr,
        /// No answer is wanted.
        no_wait: bool,
        /// What a headers exchange matches.
        arguments: Table,
    }
    /// The binding is there.
    BindOk {}
    /// Removes a queue's ready messages.
    Purge [u16] {
        /// The queue; empty is the channel's last declared one.
        queue: ShortStr,
        /// No answer is wanted.
        no_wait: bool,
    }
    /// The messages are gone.
    PurgeOk {
        /// How many.
        message_count: u32,
    }
    /// Deletes a queue.
    Delete [u16] {
        /// The queue; empty is the channel's last declared one.
        queue: ShortStr,
        /// Only if it has no consumers.
        if_unused: bool,
        /// Only if it has no messages.
        if_empty: bool,
        /// No answer is wanted.
        no_wait: bool,
    }
    /// The queue is gone.
    DeleteOk {
        /// Ready messages that went with it.
        message_count: u32,
    }
    /// Removes a binding.
    Unbind [u16] {
        /// The queue; empty is the channel's last declared one.
        queue: ShortStr,
        /// The exchange.
        exchange: ShortStr,
        /// The binding's key.
        routing_key: ShortStr,
        /// The binding's arguments.
        arguments: Table,
    }
    /// The binding is gone.
    UnbindOk {}
}
