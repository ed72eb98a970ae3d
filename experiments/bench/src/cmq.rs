//! Measurements of CMQ, the datagram queue: both ends are ours, so unlike the rest of this crate it
//! uses the library itself. Start with [`role`], one end of a measurement, and [`pair`], both.

pub(crate) mod args;
pub(crate) mod error;
mod experiment;
mod memory;
mod number;
mod order;
mod pair;
mod profile;
mod push;
mod receiver;
mod role;
mod sender;
mod soak;
mod spread;

pub use args::{CmqArgs, CmqMemoryArgs, CmqMode, CmqPushArgs, CmqRole, CmqSoakArgs, WireArgs};
pub use error::CmqError;
pub(crate) use experiment::run as experiment;
pub(crate) use memory::run as memory;
pub(crate) use push::run as push;
pub(crate) use soak::run as soak;
