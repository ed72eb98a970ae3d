//! Class `channel` (20).

use bytes::Bytes;

use super::shape::shapes;
use crate::short_str::ShortStr;

shapes! {
    /// Opens the channel whose number the frame carries.
    Open {} [ShortStr]
    /// The channel is open.
    OpenOk {} [Bytes]
    /// Stops or resumes deliveries.
    Flow {
        /// Whether deliveries may flow.
        active: bool,
    }
    /// Says what flows now.
    FlowOk {
        /// Whether deliveries flow.
        active: bool,
    }
    /// Ends the channel.
    Close {
        /// A [`ReplyCode`](crate::ReplyCode)'s number.
        reply_code: u16,
        /// For people.
        reply_text: ShortStr,
        /// Class of the method that failed, or 0.
        class_id: u16,
        /// Number of the method that failed, or 0.
        method_id: u16,
    }
    /// The channel's number is free again.
    CloseOk {}
}
