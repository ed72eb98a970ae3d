//! Elastic queues joined to the broker: the keeper stores an elastic queue's messages in a durable queue
//! before their producer hears of it, feeds carry an exchange's messages into an elastic queue, deliveries
//! an elastic queue's messages to an exchange or a queue (which an SQS client may receive from).
//! It must never acknowledge a message to where it came from before the other side has it.
//! Start reading at [`front`]; [`keeper`] is the first of the three ways.

mod counters;
mod declare;
mod delivery;
mod fault;
mod feed;
mod front;
mod keeper;
mod message;
mod publish;
mod settings;
mod stop;

pub use counters::BridgeCounters;
pub use front::{BridgeFront, BridgeStartError};
pub use settings::{BridgeSettings, DeliverySettings, FeedSettings};
