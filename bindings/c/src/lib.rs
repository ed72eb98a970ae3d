//! CMQ for C: the library behind `include/quelea_cmq.h`, which cbindgen writes from these files. It
//! turns the library's types into pointers, numbers and codes, and must never let a panic out. Start
//! reading at [`endpoint`]; the manual is docs/cmq/c.md.

mod address;
mod code;
mod dest;
mod endpoint;
mod event;
mod message;
mod options;
mod queue;
mod wait;

pub use address::*;
pub use code::*;
pub use dest::*;
pub use endpoint::*;
pub use event::*;
pub use message::*;
pub use options::*;
pub use queue::*;
