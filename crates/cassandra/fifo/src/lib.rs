//! A replicated FIFO queue, as the front-end that owns it has it in memory: order in groups, deduplication, what is in
//! flight, and what has to be written or read next. It must never do I/O or read a clock, and never confirm what was not
//! acknowledged while its lease was valid. Start with `owner.rs`; how one owner follows another is in `take_over.rs`.

mod attempts;
mod call;
mod clock;
mod deduplications;
mod effect;
mod groups;
mod lease;
pub mod limits;
mod message;
mod moving;
mod owner;
mod peeked_row;
mod receipt;
mod receptions;
mod segments;
mod take_over;
mod window;

pub use call::CallId;
pub use clock::Now;
pub use effect::{Batch, Effect, Renewal};
pub use lease::{Observation, Watch};
pub use message::{
    Arrival, Content, Noted, Row, RowKey, SegmentKey, deduplication_key, moved_key, sent_at_ms,
};
pub use moving::{MoveCall, MovedOut};
pub use owner::{Owner, ReceiveCall, SendCall, Settings};
pub use peeked_row::{PeekedRow, PeekedRows, Unowned};
pub use receipt::Receipt;
pub use segments::SegmentRange;
pub use take_over::{OwnerRow, SegmentRow, TakeOver, listed_from, tail_of, take_over};
