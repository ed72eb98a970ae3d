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

/// The whole body, whose bytes are taken of `share` as they arrive. A body that comes in one piece is
/// not copied.
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
        if !share.take(piece.len()) {
            return Err(BodyError::NoRoom);
        }
        if first.is_empty() && gathered.is_empty() {
            first = piece;
            continue;
        }
        if gathered.is_empty() {
            // As it arrives, not as it was announced: a promise of a body costs nothing.
            gathered.reserve(BODY_BYTES_START.max(first.len() + piece.len()));
            gathered.extend_from_slice(&std::mem::take(&mut first));
        }
        if gathered.len() + piece.len() > BODY_BYTES_MAX {
            return Err(BodyError::TooLong);
        }
        gathered.extend_from_slice(&piece);
    }
    if gathered.is_empty() { Ok(first) } else { Ok(gathered.freeze()) }
}
