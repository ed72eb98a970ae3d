//! Rules of batches: how many entries, and which ids.

use crate::action::BatchResultErrorEntry;
use crate::error::Blame;
use crate::limits::{BATCH_ENTRIES_MAX, BATCH_ID_LENGTH_MAX};
use crate::names::is_word;
use crate::refusal;
use crate::{Error, ErrorKind};

/// Checks a batch's size and the ids of its entries; returns the ids. `entry` is the name of its
/// entries in the service model.
///
/// # Errors
/// EmptyBatchRequest, TooManyEntriesInBatchRequest, InvalidBatchEntryId, BatchEntryIdsNotDistinct.
pub(super) fn check_ids<'a>(
    ids: impl ExactSizeIterator<Item = Option<&'a str>>,
    entry: &str,
) -> Result<Vec<String>, Error> {
    let count = ids.len();
    if count == 0 {
        let message = format!("There should be at least one {entry} in the request.");
        return Err(refusal::error(ErrorKind::EmptyBatchRequest, message));
    }
    if count > BATCH_ENTRIES_MAX {
        let message = format!(
            "Maximum number of entries per request are {BATCH_ENTRIES_MAX}. You have sent {count}."
        );
        return Err(refusal::error(ErrorKind::TooManyEntriesInBatchRequest, message));
    }
    let mut checked: Vec<String> = Vec::with_capacity(count);
    for (position, id) in ids.enumerate() {
        let id = id.ok_or_else(|| refusal::missing(&format!("{entry}.{}.Id", position + 1)))?;
        if !(1..=BATCH_ID_LENGTH_MAX).contains(&id.len()) || !is_word(id) {
            return Err(refusal::error(
                ErrorKind::InvalidBatchEntryId,
                "A batch entry id can only contain alphanumeric characters, hyphens and \
                 underscores. It can be at most 80 letters long.",
            ));
        }
        if checked.iter().any(|known| known == id) {
            let message = format!("Id {id} repeated.");
            return Err(refusal::error(ErrorKind::BatchEntryIdsNotDistinct, message));
        }
        checked.push(id.to_owned());
    }
    Ok(checked)
}

/// Returns an entry's failure as it is reported.
pub(super) fn failed(id: String, error: Error) -> BatchResultErrorEntry {
    BatchResultErrorEntry {
        id,
        sender_fault: error.kind.fault() == Blame::Sender,
        code: error.kind.code().to_owned(),
        message: Some(error.message),
    }
}
