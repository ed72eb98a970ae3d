//! The end of an AMQP transaction: many operations, recovered as a whole or not at all.

use quelea_store::{Durability, Ticket};

use crate::Broker;

impl Broker {
    /// What is published and settled from here to [`Broker::end_atomic`] goes into the log as one.
    /// Call nothing but `publish`, `ack`, `nack` and `reject` in between.
    pub fn begin_atomic(&mut self) {
        // What was settled before is not part of it.
        self.flush_settled();
        self.atomic = Some(Durability::None);
        self.store.begin_atomic();
    }

    /// Ends what [`Broker::begin_atomic`] began; commit-ok leaves when the ticket is reached.
    pub fn end_atomic(&mut self) -> Ticket {
        self.flush_settled();
        self.store.end_atomic();
        let durability = self.atomic.take().unwrap_or(Durability::None);
        self.ticket(durability)
    }
}
