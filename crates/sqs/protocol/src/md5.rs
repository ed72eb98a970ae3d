//! The sums that SQS gives for a client to check what was sent and received.

use md5::{Digest, Md5};

use crate::MessageAttribute;

/// Returns the MD5 of a body, in hexadecimal.
#[must_use]
pub fn md5_of_body(body: &[u8]) -> String {
    hexadecimal(Md5::new_with_prefix(body))
}

/// Returns the MD5 of attributes, which are sorted by name; `None` if there are none. System
/// attributes have theirs by the same rule: each attribute's name, type and value with their
/// lengths before them, and before the value a byte that says in which member it came (SQS
/// developer guide, "Calculating the MD5 message digest for message attributes").
#[must_use]
pub fn md5_of_attributes<'a>(
    attributes: impl IntoIterator<Item = &'a MessageAttribute>,
) -> Option<String> {
    let mut sum = None;
    for MessageAttribute { name, data_type, value } in attributes {
        let sum = sum.get_or_insert_with(Md5::new);
        with_length(sum, name.as_bytes());
        with_length(sum, data_type.as_bytes());
        sum.update([if data_type.starts_with("Binary") { BINARY_VALUE } else { STRING_VALUE }]);
        with_length(sum, value);
    }
    sum.map(hexadecimal)
}

const STRING_VALUE: u8 = 1;
const BINARY_VALUE: u8 = 2;

fn with_length(sum: &mut Md5, bytes: &[u8]) {
    let length = u32::try_from(bytes.len()).expect("no message is as long as 4 GiB");
    sum.update(length.to_be_bytes());
    sum.update(bytes);
}

fn hexadecimal(sum: Md5) -> String {
    // Each message has its sum written out; `hex::encode` goes digit by digit.
    let mut text = vec![0; 32];
    hex::encode_to_slice(sum.finalize(), &mut text).expect("twice as many digits as bytes");
    String::from_utf8(text).expect("digits are ASCII")
}
