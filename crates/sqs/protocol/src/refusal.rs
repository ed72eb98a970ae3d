//! What SQS says when it refuses, in its own words. Every text of a rule stands here or is
//! made here, so that it can be compared with that of SQS in one place.

use crate::{Error, ErrorKind, Fault};

/// Returns an error of that kind.
pub(crate) fn error(kind: ErrorKind, message: impl Into<String>) -> Error {
    Error::new(kind, message)
}

/// Returns the error for a request that lacks something it must have.
pub(crate) fn missing(parameter: &str) -> Error {
    let message = format!("The request must contain the parameter {parameter}.");
    error(ErrorKind::MissingParameter, message)
}

/// Returns the error for a parameter that is not as it has to be, in words that fit no pattern.
pub(crate) fn invalid(message: impl Into<String>) -> Error {
    error(ErrorKind::InvalidParameterValue, message)
}

/// Returns the error for a parameter whose value is not allowed.
pub(crate) fn invalid_value(value: impl std::fmt::Display, parameter: &str, reason: &str) -> Error {
    invalid(format!("Value {value} for parameter {parameter} is invalid. Reason: {reason}"))
}

/// Returns the error for a parameter that only queues of the other type know.
pub(crate) fn not_of_this_queue_type(value: impl std::fmt::Display, parameter: &str) -> Error {
    let reason = "The request include parameter that is not valid for this queue type.";
    invalid_value(value, parameter, reason)
}

/// Returns the error for an attribute that queues do not have, or do not have here.
pub(crate) fn unknown_attribute(name: &str) -> Error {
    error(ErrorKind::InvalidAttributeName, format!("Unknown Attribute {name}."))
}

/// Returns the error for an attribute whose value is not allowed. The reason may be empty.
pub(crate) fn invalid_attribute(name: &str, reason: &str) -> Error {
    let mut message = format!("Invalid value for the parameter {name}.");
    if !reason.is_empty() {
        message.push_str(" Reason: ");
        message.push_str(reason);
    }
    error(ErrorKind::InvalidAttributeValue, message)
}

/// Returns the error for a queue that is not there.
pub(crate) fn no_such_queue() -> Error {
    error(ErrorKind::QueueDoesNotExist, "The specified queue does not exist.")
}

/// Returns the error for a handle that is no handle, or one of another queue. Alone and in a batch
/// the text names it.
pub(crate) fn invalid_receipt_handle(handle: &str) -> Error {
    let message = format!("The input receipt handle \"{handle}\" is not a valid receipt handle.");
    error(ErrorKind::ReceiptHandleIsInvalid, message)
}

/// Returns what the store could not do, as SQS would say it.
pub(crate) fn fault(fault: Fault) -> Error {
    match fault {
        Fault::NoSuchQueue => no_such_queue(),
        Fault::OverLimit { .. } => error(ErrorKind::OverLimit, fault.to_string()),
        Fault::PurgeInProgress => error(ErrorKind::PurgeQueueInProgress, fault.to_string()),
        Fault::NotFound(message) => error(ErrorKind::ResourceNotFoundException, message),
        Fault::Unsupported(message) => error(ErrorKind::UnsupportedOperation, message),
        Fault::Invalid(message) => invalid(message),
        Fault::Conflict => error(ErrorKind::ServiceUnavailable, fault.to_string()),
        Fault::Unavailable(message) => error(ErrorKind::ServiceUnavailable, message),
    }
}

/// Returns the error for a message that is there, but that nobody has received.
pub(crate) fn not_in_flight() -> Error {
    error(ErrorKind::MessageNotInflight, "The specified message isn't in flight.")
}
