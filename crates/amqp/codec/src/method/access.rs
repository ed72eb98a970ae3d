//! Class `access` (30): of AMQP 0-8, kept by RabbitMQ for old clients. Tickets mean nothing.

use super::shape::shapes;
use crate::short_str::ShortStr;

shapes! {
    /// Asks for a ticket.
    Request {
        /// Realm; ignored.
        realm: ShortStr,
        /// Ignored.
        exclusive: bool,
        /// Ignored.
        passive: bool,
        /// Ignored.
        active: bool,
        /// Ignored.
        write: bool,
        /// Ignored.
        read: bool,
    }
    /// Grants a ticket.
    RequestOk {
        /// Any number; RabbitMQ says 1.
        ticket: u16,
    }
}
