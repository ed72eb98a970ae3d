//! What batch operations have in common.

use crate::shape::shapes;

shapes! {
    /// Why one entry of a batch was not done.
    BatchResultErrorEntry {
        /// The entry's id in the request.
        id: String = "Id",
        /// Whether the client is to blame.
        sender_fault: bool = "SenderFault",
        /// The error's code, as the Query protocol gives it.
        code: String = "Code",
        /// What is wrong.
        message: Option<String> = "Message",
    }
}
