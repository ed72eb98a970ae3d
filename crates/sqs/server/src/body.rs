//! Reads a request's body, and stops as soon as it is too long.

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};

use crate::body_budget::Share;
use crate::limits::{BODY_BYTES_MAX, BODY_BYTES_START};

/// Why there is no body.
#[derive(Debug)]
pub(crate) enum BodyError {
    /// It is longer than any request may be.
    TooLong,
    /// All requests together are longer than the server holds.
    NoRoom,
    /// The client went away, or broke the transfer encoding.
    Broken,
}

/// Reads the whole body, whose memory is taken of `share` as it arrives. A body that comes in one
/// piece is not copied.
pub(crate) async fn read(mut body: Incoming, share: &mut Share) -> Result<Bytes, BodyError> {
    let announced = body.size_hint();
    // Refused before a client that waits for `100 Continue` is asked to go on.
    if announced.lower() > BODY_BYTES_MAX as u64 {
        return Err(BodyError::TooLong);
    }
    let mut first = Bytes::new();
    let mut gathered = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(piece) = frame.map_err(|_| BodyError::Broken)?.into_data() else { continue };
        let length = first.len() + gathered.len() + piece.len();
        if length > BODY_BYTES_MAX {
            return Err(BodyError::TooLong);
        }
        let is_whole = announced.exact() == Some(length as u64);
        if length == piece.len() {
            if !share.grow_to(length, is_whole) {
                return Err(BodyError::NoRoom);
            }
            first = piece;
            continue;
        }
        if length > gathered.capacity() {
            // As it arrives, not as it was announced: a promise of a body costs nothing. What is set aside counts, not
            // what is in it.
            let most = announced.upper().map_or(BODY_BYTES_MAX, |most| most as usize);
            let ahead = (2 * gathered.capacity()).max(BODY_BYTES_START);
            let capacity = ahead.min(most).clamp(length, BODY_BYTES_MAX);
            if !share.grow_to(capacity, is_whole) {
                return Err(BodyError::NoRoom);
            }
            let mut grown = BytesMut::with_capacity(capacity);
            grown.extend_from_slice(if gathered.is_empty() { &first } else { &gathered });
            (first, gathered) = (Bytes::new(), grown);
        }
        gathered.extend_from_slice(&piece);
    }
    if gathered.is_empty() { Ok(first) } else { Ok(gathered.freeze()) }
}
