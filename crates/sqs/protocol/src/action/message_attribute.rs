//! The value of a message attribute, as it is sent and received.

use bytes::Bytes;

use crate::shape::shapes;

shapes! {
    /// The typed value of one message attribute.
    MessageAttributeValue {
        /// The value, if its type is String or Number.
        string_value: Option<String> = "StringValue",
        /// The value, if its type is Binary.
        binary_value: Option<Bytes> = "BinaryValue",
        /// Reserved by SQS, which refuses it.
        string_list_values: Vec<String> = "StringListValues" / "StringListValue",
        /// Reserved by SQS, which refuses it.
        binary_list_values: Vec<Bytes> = "BinaryListValues" / "BinaryListValue",
        /// `String`, `Number` or `Binary`, perhaps with a custom label (`Number.int`).
        data_type: Option<String> = "DataType",
    }

    /// The typed value of a system attribute of a message that is sent.
    MessageSystemAttributeValue {
        /// The value, if its type is String or Number.
        string_value: Option<String> = "StringValue",
        /// The value, if its type is Binary.
        binary_value: Option<Bytes> = "BinaryValue",
        /// Reserved by SQS, which refuses it.
        string_list_values: Vec<String> = "StringListValues" / "StringListValue",
        /// Reserved by SQS, which refuses it.
        binary_list_values: Vec<Bytes> = "BinaryListValues" / "BinaryListValue",
        /// `String`, `Number` or `Binary`.
        data_type: Option<String> = "DataType",
    }
}
