//! Class `exchange` (40), with RabbitMQ's exchange-to-exchange bindings.

use quelea_model::Table;

use super::shape::shapes;
use crate::short_str::ShortStr;

shapes! {
    /// Creates an exchange, or checks that one is there.
    Declare [u16] {
        /// Its name.
        exchange: ShortStr,
        /// `direct`, `fanout`, `topic`, `headers`.
        kind: ShortStr,
        /// Only checks that it exists.
        passive: bool,
        /// Survives a restart.
        durable: bool,
        /// Goes with its last binding.
        auto_delete: bool,
        /// Takes no publishes, only bindings.
        internal: bool,
        /// No answer is wanted.
        no_wait: bool,
        /// `alternate-exchange` and others.
        arguments: Table,
    }
    /// The exchange is there.
    DeclareOk {}
    /// Deletes an exchange.
    Delete [u16] {
        /// Its name.
        exchange: ShortStr,
        /// Only if nothing is bound to it.
        if_unused: bool,
        /// No answer is wanted.
        no_wait: bool,
    }
    /// The exchange is gone.
    DeleteOk {}
    /// Binds an exchange to an exchange.
    Bind [u16] {
        /// Messages go to this exchange.
        destination: ShortStr,
        /// Messages come from this exchange.
        source: ShortStr,
        /// The binding's key.
        routing_key: ShortStr,
        /// No answer is wanted.
        no_wait: bool,
        /// What a headers exchange matches.
        arguments: Table,
    }
    /// The binding is there.
    BindOk {}
    /// Removes a binding of two exchanges.
    Unbind [u16] {
        /// Messages went to this exchange.
        destination: ShortStr,
        /// Messages came from this exchange.
        source: ShortStr,
        /// The binding's key.
        routing_key: ShortStr,
        /// No answer is wanted.
        no_wait: bool,
        /// The binding's arguments.
        arguments: Table,
    }
    /// The binding is gone.
    UnbindOk {}
}
