//! The frames on the wire: how each is laid out, headers, and how they are written and read.

mod buffer;
mod decode;
mod encode;
mod form;
mod frame_error;
mod header;
mod layout;
mod reader;
mod writer;

pub use buffer::FrameBuffer;
pub use encode::{data_header, encode_data};
pub use frame_error::{FrameError, FrameName};
pub use header::{DataHeader, FrameHeader};
pub use layout::Kind;
