//! The elastic queue's native protocol: its frames, and the sessions of a producer and a listener as
//! state machines (order, gaps, duplicates, relocation, resending); where to look for a directory.
//! This crate must never do I/O or read a clock; bytes, time and randomness come in as arguments.
//! Start with [`frame::Frame`]; every limit is in [`limits`].

pub mod error;
mod fault;
pub mod frame;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod ids;
pub mod limits;
mod named;
pub mod parts;
mod search;
pub mod session;
pub mod wire;

pub use error::FrameError;
pub use frame::Frame;
pub use ids::{ClientId, Epoch, Fence, MessageSeq, RelayId, Slot};
pub use named::{Named, UnknownName};
pub use quelea_model::Time;
pub use search::{DirectorySearch, SEARCH_PAUSE_MS_MAX};
pub use wire::FrameBuffer;
