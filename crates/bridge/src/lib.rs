//! Elastic queues joined to the broker: kept messages, exchanges and queues.
