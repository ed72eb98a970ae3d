//! What every part of Quelea shares: messages, their wire-shaped properties, field tables, names,
//! identifiers, sizes, time and limits.
//! This crate must never do I/O, read a clock or know a protocol beyond the shape of AMQP's tables
//! and properties, which is how Quelea stores them.
//! Start with [`Message`], then [`properties`] and [`table`]; the limits that users can feel
//! are in [`limits`].

pub mod byte_size;
pub mod ids;
mod latency;
pub mod limits;
mod message;
mod names;
mod network;
pub mod properties;
mod resident;
pub mod table;
mod text;
mod time;

pub use ids::{QueueId, Seq};
pub use latency::{LATENCY_BOUNDS_US, LatencyHistogram, SharedLatencyHistogram};
pub use message::Message;
pub use names::{ExchangeName, NameError, QueueName, VhostName};
pub use network::network_of;
pub use properties::{Properties, PropertyView, without_bcc};
pub use resident::{Resident, SharedBodies};
pub use table::{Table, TableError, Value};
pub use text::same_text;
pub use time::{Time, Timestamp};
