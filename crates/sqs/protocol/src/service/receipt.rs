//! Receipt handles: the store's name of a delivery, in letters that go through URLs.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::limits::HANDLE_LENGTH_MAX;
use crate::refusal;
use crate::{Delivery, Error, ReceiptOutcome};

/// Encodes a delivery as a handle.
pub(super) fn encode(delivery: &Delivery) -> String {
    URL_SAFE_NO_PAD.encode(delivery)
}

/// Decodes a handle. Returns its delivery.
///
/// # Errors
/// MissingParameter, ReceiptHandleIsInvalid.
pub(super) fn decode(handle: Option<&str>) -> Result<Delivery, Error> {
    let handle = handle.filter(|handle| !handle.is_empty());
    let handle = handle.ok_or_else(|| refusal::missing("ReceiptHandle"))?;
    if handle.len() > HANDLE_LENGTH_MAX {
        return Err(refusal::invalid_receipt_handle(handle));
    }
    URL_SAFE_NO_PAD.decode(handle).map_err(|_| refusal::invalid_receipt_handle(handle))
}

/// Returns what an outcome means to the client.
///
/// # Errors
/// ReceiptHandleIsInvalid, MessageNotInflight, InvalidParameterValue.
pub(super) fn result(outcome: ReceiptOutcome, delivery: &Delivery) -> Result<(), Error> {
    let of_handle = |reason| refusal::invalid_value(encode(delivery), "ReceiptHandle", reason);
    match outcome {
        ReceiptOutcome::Done => Ok(()),
        ReceiptOutcome::Invalid => Err(refusal::invalid_receipt_handle(&encode(delivery))),
        ReceiptOutcome::NotInFlight => Err(refusal::not_in_flight()),
        ReceiptOutcome::NoSuchMessage => Err(of_handle(
            "Message does not exist or is not available for visibility timeout change.",
        )),
        ReceiptOutcome::Expired => Err(of_handle("The receipt handle has expired.")),
        ReceiptOutcome::TooLong => Err(refusal::invalid(
            "Total VisibilityTimeout for the message is beyond the limit [43200 seconds]",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_lead_back_to_their_deliveries() {
        for delivery in [vec![0], vec![255; 40], (0..=255).collect()] {
            let handle = encode(&delivery);
            assert!(handle.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_'));
            assert_eq!(decode(Some(&handle)).unwrap(), delivery);
        }
    }

    #[test]
    fn what_is_no_handle_is_refused() {
        let long = "A".repeat(HANDLE_LENGTH_MAX + 4);
        for bad in ["not a handle", "garbage!", "A", &long] {
            let error = decode(Some(bad)).unwrap_err();
            assert_eq!(error, refusal::invalid_receipt_handle(bad), "{bad}");
        }
        for missing in [None, Some("")] {
            let error = decode(missing).unwrap_err();
            assert_eq!(error.message, "The request must contain the parameter ReceiptHandle.");
        }
    }
}
