//! What a message carries beside its body.

use bytes::Bytes;

/// A message attribute with its data type, such as `Number.int`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageAttribute {
    /// Its name.
    pub name: String,
    /// Its type, custom label included.
    pub data_type: String,
    /// UTF-8 for the types String and Number, anything for Binary.
    pub value: Bytes,
}
