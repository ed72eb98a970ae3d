//! CMQ without I/O: what a socket of the queue sends and takes, as a state machine. Bytes and time go
//! in as arguments, datagrams and deliveries come out as data; it must never touch a socket, a clock
//! or a thread. Start reading at [`endpoint`]; the bytes on the wire are in docs/formats/cmq.md.

mod buffer;
pub mod charge;
pub mod classic;
pub mod config;
mod delivery;
mod destination_id;
pub mod endpoint;
pub mod error;
mod event;
pub mod flight;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod inbox;
pub mod key;
pub mod limits;
mod mailbox_ref;
pub mod mode;
pub mod outbox;
pub mod repair;
pub mod seal;
pub mod stats;
mod transmit;
pub mod wire;

pub use config::{Config, DestinationOptions, MailboxOptions, WhenFull};
pub use endpoint::{Delivery, DestinationId, Endpoint, Event, PushError, Transmit};
pub use inbox::{Peer, PeerCounts, PeerPage};
pub use key::{Key, Mailbox};
pub use mode::{Mode, Repair};
pub use outbox::DestinationStats;
pub use quelea_model::Time;
pub use stats::Stats;
