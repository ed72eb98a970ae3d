//! What a message may be made of: the characters of its body, its attributes, its sizes, its ids.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use bytes::Bytes;

use crate::action::{MessageAttributeValue, MessageSystemAttributeValue};
use crate::limits::{ATTRIBUTE_NAME_BYTES_MAX, GROUP_ID_LENGTH_MAX, MESSAGE_ATTRIBUTES_MAX};
use crate::refusal;
use crate::{Error, ErrorKind, MessageAttribute};

/// Letters of European languages, which names of attributes may have.
const LETTERS_BEYOND_ASCII: RangeInclusive<char> = 'À'..='ſ';

/// The system attribute that clients may send.
pub(crate) const TRACE_HEADER: &str = "AWSTraceHeader";

/// Checks a body's characters. Its length is another matter.
///
/// # Errors
/// InvalidMessageContents.
pub(crate) fn check_body(body: &str) -> Result<(), Error> {
    match is_xml_text(body) {
        true => Ok(()),
        false => Err(refusal::error(ErrorKind::InvalidMessageContents, INVALID_CHARACTERS)),
    }
}

const INVALID_CHARACTERS: &str = "Invalid characters found. Valid unicode characters are #x9 | \
     #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF";

/// Returns whether a text holds only characters that XML 1.0 has: `#x9 | #xA | #xD | #x20–#xD7FF |
/// #xE000–#xFFFD | #x10000–#x10FFFF`.
pub(crate) fn is_xml_text(text: &str) -> bool {
    // Most bodies are plain ASCII, which the compiler looks at a block at a time. DEL is allowed.
    let is_plain = |byte: &u8| matches!(byte, 0x20..0x80 | b'\t' | b'\n' | b'\r');
    let is_plain_block = |block: &[u8]| block.iter().fold(true, |all, byte| all & is_plain(byte));
    text.as_bytes().chunks(64).all(is_plain_block) || text.chars().all(is_xml_character)
}

/// Returns whether XML 1.0 has this character. Surrogates are no `char`s.
pub(crate) const fn is_xml_character(character: char) -> bool {
    match character {
        '\t' | '\n' | '\r' => true,
        '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => false,
        _ => true,
    }
}

/// Checks the attributes of a message and puts them into the store's form.
///
/// # Errors
/// InvalidParameterValue.
pub(crate) fn check_attributes(
    given: &BTreeMap<String, MessageAttributeValue>,
) -> Result<Vec<MessageAttribute>, Error> {
    if given.len() > MESSAGE_ATTRIBUTES_MAX {
        return Err(refusal::invalid(format!(
            "Number of message attributes [{}] exceeds the allowed maximum [{MESSAGE_ATTRIBUTES_MAX}].",
            given.len()
        )));
    }
    given.iter().map(|(name, value)| check_attribute(name, value)).collect()
}

fn check_attribute(name: &str, given: &MessageAttributeValue) -> Result<MessageAttribute, Error> {
    check_attribute_name(name)?;
    if !given.string_list_values.is_empty() || !given.binary_list_values.is_empty() {
        return Err(refusal::error(
            ErrorKind::UnsupportedOperation,
            "Message attribute list values in SendMessage operation are not supported.",
        ));
    }
    let data_type = given.data_type.as_deref().unwrap_or_default();
    if data_type.is_empty() {
        return Err(refusal::invalid(format!(
            "The message (user) attribute '{name}' must contain a non-empty message attribute \
             value."
        )));
    }
    if data_type.len() >= ATTRIBUTE_NAME_BYTES_MAX {
        return Err(refusal::invalid(
            "Message (user) attribute type must be shorter than 256 bytes.",
        ));
    }
    let text_given = given.string_value.as_ref().is_some_and(|text| !text.is_empty());
    let bytes_given = given.binary_value.as_ref().is_some_and(|bytes| !bytes.is_empty());
    if text_given && bytes_given {
        return Err(refusal::invalid(format!(
            "Message (user) attribute '{name}' has multiple values."
        )));
    }
    let value = match data_type.split('.').next() {
        Some(kind @ "String") => text(name, kind, given)?,
        Some(kind @ "Number") => {
            let value = text(name, kind, given)?;
            if !is_number(&value) {
                return Err(refusal::invalid(format!(
                    "Can't cast the value of message (user) attribute '{name}' to a number."
                )));
            }
            value
        }
        Some("Binary") => {
            let value = given.binary_value.clone().filter(|value| !value.is_empty());
            value.ok_or_else(|| empty_value(name, "Binary"))?
        }
        _ => {
            return Err(refusal::invalid(format!(
                "The type of message (user) attribute '{name}' is invalid. You must use only the \
                 following supported type prefixes: Binary, Number, String."
            )));
        }
    };
    Ok(MessageAttribute { name: name.to_owned(), data_type: data_type.to_owned(), value })
}

fn check_attribute_name(name: &str) -> Result<(), Error> {
    if name.is_empty() {
        return Err(refusal::invalid(
            "The request must contain non-empty message (user) attribute names.",
        ));
    }
    if name.len() >= ATTRIBUTE_NAME_BYTES_MAX {
        return Err(refusal::invalid(
            "Message (user) attribute name must be shorter than 256 bytes.",
        ));
    }
    // The text names fewer letters than SQS takes.
    let is_letter = |c: char| c.is_ascii_alphanumeric() || LETTERS_BEYOND_ASCII.contains(&c);
    if !name.chars().all(|c| is_letter(c) || "_-.".contains(c)) {
        return Err(refusal::invalid(format!(
            "The message attribute name '{name}' is invalid. Attribute name can contain A-Z, a-z, \
             0-9, underscore (_), hyphen (-), and period (.) characters."
        )));
    }
    let lower = name.to_ascii_lowercase();
    if lower.starts_with("aws.") || lower.starts_with("amazon.") {
        return Err(refusal::invalid(
            "You can't use message attribute names beginning with 'AWS.' or 'Amazon.'. These \
             strings are reserved for internal use.",
        ));
    }
    if name.starts_with('.') || name.ends_with('.') || name.contains("..") {
        return Err(refusal::invalid(format!(
            "The message attribute name '{name}' is invalid. Attribute name must not start or end \
             with a period, or have successive periods."
        )));
    }
    Ok(())
}

/// Returns the value of an attribute whose type is text.
fn text(name: &str, kind: &str, given: &MessageAttributeValue) -> Result<Bytes, Error> {
    let value = given.string_value.as_deref().filter(|value| !value.is_empty());
    let value = value.ok_or_else(|| empty_value(name, kind))?;
    if !is_xml_text(value) {
        return Err(refusal::invalid(INVALID_CHARACTERS));
    }
    Ok(Bytes::copy_from_slice(value.as_bytes()))
}

fn empty_value(name: &str, kind: &str) -> Error {
    refusal::invalid(format!(
        "Message (user) attribute '{name}' must contain a non-empty value of type '{kind}'."
    ))
}

/// Returns whether it is a decimal number with an optional sign, fraction and exponent. SQS keeps
/// it as text.
fn is_number(value: &[u8]) -> bool {
    let text = std::str::from_utf8(value).unwrap_or_default();
    let decimal = |byte: u8| byte.is_ascii_digit() || b"+-.eE".contains(&byte);
    text.bytes().all(decimal) && text.parse::<f64>().is_ok()
}

/// Checks the system attributes of a message; returns the trace header, the only one there is.
///
/// # Errors
/// InvalidParameterValue.
pub(crate) fn check_system_attributes(
    given: &BTreeMap<String, MessageSystemAttributeValue>,
) -> Result<Option<String>, Error> {
    let mut header = None;
    for (name, value) in given {
        if name != TRACE_HEADER {
            let message = format!("Message system attribute name '{name}' is invalid.");
            return Err(refusal::invalid(message));
        }
        if value.data_type.as_deref() != Some("String") {
            return Err(refusal::invalid(format!(
                "The type of message (system) attribute '{name}' is invalid. You must use only the \
                 following supported type prefixes: String."
            )));
        }
        let text = value.string_value.as_deref().filter(|text| !text.is_empty());
        let text = text.ok_or_else(|| {
            refusal::invalid(format!(
                "Message (system) attribute '{name}' must contain a non-empty value of type \
                 'String'."
            ))
        })?;
        if !is_xml_text(text) {
            return Err(refusal::invalid(INVALID_CHARACTERS));
        }
        header = Some(text.to_owned());
    }
    Ok(header)
}

/// Returns the bytes that count against a message's limit: the body and each attribute's name, type
/// and value. The trace header does not count.
pub(crate) fn message_bytes(body: &str, attributes: &[MessageAttribute]) -> u64 {
    let attribute = |attribute: &MessageAttribute| {
        attribute.name.len() + attribute.data_type.len() + attribute.value.len()
    };
    (body.len() + attributes.iter().map(attribute).sum::<usize>()) as u64
}

/// Checks the id of a group, a deduplication or a receive's attempt: ASCII without control
/// characters and spaces, up to 128.
///
/// # Errors
/// InvalidParameterValue.
pub(crate) fn check_id(id: &str, parameter: &str) -> Result<(), Error> {
    let allowed =
        (1..=GROUP_ID_LENGTH_MAX).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_graphic());
    if allowed {
        return Ok(());
    }
    let reason = format!(
        "{parameter} can only include alphanumeric and punctuation characters. 1 to 128 in length."
    );
    Err(refusal::invalid_value(id, parameter, &reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(data_type: &str, text: &str) -> MessageAttributeValue {
        MessageAttributeValue {
            data_type: Some(data_type.to_owned()),
            string_value: Some(text.to_owned()),
            ..MessageAttributeValue::default()
        }
    }

    fn refused(name: &str, value: MessageAttributeValue) -> String {
        let given = BTreeMap::from([(name.to_owned(), value)]);
        check_attributes(&given).unwrap_err().message
    }

    #[test]
    fn a_body_holds_exactly_the_characters_of_xml() {
        for code in 0..=0x10_FFFF_u32 {
            let Some(character) = char::from_u32(code) else { continue };
            let allowed = matches!(
                code,
                0x9 | 0xA | 0xD | 0x20..=0xD7FF | 0xE000..=0xFFFD | 0x10000..=0x10_FFFF
            );
            assert_eq!(is_xml_character(character), allowed, "#x{code:X}");
        }
        assert!(check_body("tab\tline\r\n\u{7f}ü€😀").is_ok());
        for bad in ["\0", "a\u{b}", "\u{1b}[0m", "ü\u{ffff}"] {
            let error = check_body(bad).unwrap_err();
            assert_eq!(error.kind, ErrorKind::InvalidMessageContents);
        }
    }

    #[test]
    fn attributes_of_every_type_are_taken_with_their_labels() {
        let binary = MessageAttributeValue {
            data_type: Some("Binary.png".to_owned()),
            binary_value: Some(Bytes::from_static(&[0, 255])),
            ..MessageAttributeValue::default()
        };
        let given = BTreeMap::from([
            ("b".to_owned(), binary),
            ("n.1".to_owned(), value("Number.bigint", "-12345678901234567890.5e3")),
            ("s_x-y".to_owned(), value("String", "ü")),
        ]);
        let checked = check_attributes(&given).unwrap();
        let types: Vec<_> = checked.iter().map(|one| one.data_type.as_str()).collect();
        assert_eq!(types, ["Binary.png", "Number.bigint", "String"]);
        assert_eq!(message_bytes("body", &checked), 4 + 13 + 41 + 13);
    }

    #[test]
    fn values_have_to_be_there_and_of_their_type() {
        assert_eq!(
            refused("ErrorDetails", value("String", "")),
            "Message (user) attribute 'ErrorDetails' must contain a non-empty value of type \
             'String'."
        );
        for bad in ["world", "NaN", "inf", "1 ", "0x1", "--1", "1,5"] {
            assert_eq!(
                refused("Hello", value("Number", bad)),
                "Can't cast the value of message (user) attribute 'Hello' to a number.",
                "{bad}"
            );
        }
        assert!(refused("x", MessageAttributeValue::default()).contains("non-empty"));
        assert!(refused("x", value("Binary", "text")).contains("of type 'Binary'"));
        assert!(refused("x", value("StringX", "text")).contains("type prefixes"));
        assert!(refused("x", value("String", "\u{1}")).starts_with("Invalid characters"));
        for data_type in ["String", "Number", "Binary"] {
            let both = MessageAttributeValue {
                binary_value: Some(Bytes::from_static(b"1")),
                ..value(data_type, "1")
            };
            assert_eq!(refused("x", both), "Message (user) attribute 'x' has multiple values.");
        }
        let long = format!("String.{}", "a".repeat(249));
        assert!(refused("x", value(&long, "v")).contains("shorter than 256 bytes"));
    }

    #[test]
    fn names_of_attributes_have_their_rules() {
        for (name, part) in [
            ("", "non-empty"),
            ("AWS.x", "reserved"),
            ("amazon.x", "reserved"),
            (".x", "period"),
            ("x.", "period"),
            ("x..y", "period"),
            ("a b", "'a b' is invalid"),
            ("ab\u{bf}", "is invalid"),
            ("ab\u{180}", "is invalid"),
            ("日本", "'日本' is invalid"),
            (&"a".repeat(256), "shorter than 256 bytes"),
        ] {
            assert!(refused(name, value("String", "v")).contains(part), "{name}");
        }
        for name in ["öther", "Łódź", "ſ", "À-1_x.y"] {
            let given = BTreeMap::from([(name.to_owned(), value("String", "v"))]);
            assert_eq!(check_attributes(&given).unwrap()[0].name, name);
        }
        let longest = BTreeMap::from([("a".repeat(255), value("String", "v"))]);
        assert_eq!(check_attributes(&longest).unwrap()[0].name.len(), 255);
        let eleven = (0..11).map(|n| (n.to_string(), value("String", "v"))).collect();
        assert_eq!(
            check_attributes(&eleven).unwrap_err().message,
            "Number of message attributes [11] exceeds the allowed maximum [10]."
        );
    }

    #[test]
    fn the_trace_header_is_the_only_system_attribute() {
        let given = |name: &str, data_type: &str, text: &str| {
            let value = MessageSystemAttributeValue {
                data_type: Some(data_type.to_owned()),
                string_value: Some(text.to_owned()),
                ..MessageSystemAttributeValue::default()
            };
            check_system_attributes(&BTreeMap::from([(name.to_owned(), value)]))
        };
        assert_eq!(given(TRACE_HEADER, "String", "Root=1").unwrap().as_deref(), Some("Root=1"));
        let error = given("Hello", "String", "World").unwrap_err();
        assert_eq!(error.message, "Message system attribute name 'Hello' is invalid.");
        assert!(given(TRACE_HEADER, "Binary", "x").is_err());
        assert!(given(TRACE_HEADER, "String", "").is_err());
    }

    #[test]
    fn ids_are_up_to_128_visible_characters() {
        assert!(check_id(&"~!".repeat(64), "MessageGroupId").is_ok());
        for bad in ["", "a b", "ü", "a\n", &"x".repeat(129)] {
            let error = check_id(bad, "MessageGroupId").unwrap_err();
            assert_eq!(
                error.message,
                format!(
                    "Value {bad} for parameter MessageGroupId is invalid. Reason: MessageGroupId \
                     can only include alphanumeric and punctuation characters. 1 to 128 in length."
                )
            );
        }
    }
}
