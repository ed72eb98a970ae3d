//! The end of an AMQP transaction: many operations, recovered as a whole or not at all.

use quelea_store::Ticket;

use super::Broker;
use crate::messaging::Messaging;

impl Broker {
    /// What is published and settled from here to [`Broker::end_atomic`] goes into the log as one.
    /// Call nothing but `publish`, `ack`, `nack` and `reject` in between.
    pub fn begin_atomic(&mut self) {
        let Messaging { queues, log, .. } = &mut self.messaging;
        // What was settled before is not part of it.
        queues.flush_acks(log);
        log.begin_transaction();
    }

    /// Ends what [`Broker::begin_atomic`] began; commit-ok leaves when the ticket is reached.
    pub fn end_atomic(&mut self) -> Ticket {
        let Messaging { queues, log, .. } = &mut self.messaging;
        queues.flush_acks(log);
        let durability = log.end_transaction();
        self.messaging.ticket(durability)
    }
}
