//! The inbox's answers as datagrams.

use bytes::BytesMut;

use super::{Endpoint, Transmit};
use crate::inbox::Answer;
use crate::time::Time;
use crate::wire::HEADER_BYTES;
use crate::wire::challenge::Challenge;
use crate::wire::status::STATUS_BYTES_MIN;

impl Endpoint {
    /// The next answer to a sender.
    pub(super) fn answer(&mut self, now: Time) -> Option<Transmit> {
        let answer = self.inbox.poll_answer(now)?;
        let mut bytes = BytesMut::with_capacity(HEADER_BYTES + STATUS_BYTES_MIN);
        let to = match answer {
            Answer::Status { to, header, status } => {
                bytes.extend_from_slice(&header.to_bytes());
                status.write(&mut bytes);
                to
            }
            Answer::Challenge { to, header, cookie } => {
                bytes.extend_from_slice(&header.to_bytes());
                Challenge::Cookie(cookie).write(&mut bytes);
                to
            }
            Answer::Refusal { to, header, why } => {
                bytes.extend_from_slice(&header.to_bytes());
                why.write(&mut bytes);
                to
            }
        };
        Some(Transmit { to, bytes: bytes.freeze(), segment_bytes: None, may_fragment: false })
    }
}
