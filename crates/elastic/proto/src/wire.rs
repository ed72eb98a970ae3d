//! The frames on the wire: headers, kinds, how each is written and read.

mod buffer;
mod decode;
mod encode;
mod header;
mod kind;
mod reader;
mod writer;

pub use buffer::FrameBuffer;
pub use encode::{data_header, encode_data};
pub use header::{DataHeader, FrameHeader};
pub use kind::Kind;
