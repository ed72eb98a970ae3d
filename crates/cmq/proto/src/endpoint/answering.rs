//! The inbox's answers as datagrams.

use core::net::SocketAddr;

use bytes::{BufMut, Bytes, BytesMut};

use super::{Endpoint, Transmit};
use crate::Time;
use crate::inbox::Answer;
use crate::seal::HANDSHAKE_BYTES;
use crate::wire::handshake::Handshake;
use crate::wire::status::STATUS_BYTES_MIN;
use crate::wire::{HEADER_BYTES, Header, flags};

/// CHALLENGEs that wait to be sent; who gets none asks again.
const CHALLENGES_MAX: usize = 256;

impl Endpoint {
    /// Takes the next answer to a sender.
    pub(super) fn answer(&mut self, now: Time) -> Option<Transmit> {
        if let Some(challenge) = self.challenges.pop_front() {
            return Some(challenge);
        }
        loop {
            let mut bytes;
            let (to, header) = match self.inbox.poll_answer(now)? {
                Answer::Status { to, header, status } => {
                    bytes = begin(&header, STATUS_BYTES_MIN);
                    status.write(&mut bytes);
                    (to, header)
                }
                Answer::Challenge { to, header, cookie } => {
                    bytes = begin(&header, cookie.len());
                    Handshake::Cookie(cookie).write(&mut bytes);
                    (to, header)
                }
                Answer::Refusal { to, header, why } => {
                    bytes = begin(&header, 1);
                    why.write(&mut bytes);
                    (to, header)
                }
            };
            if self.seal_answer(to, header, &mut bytes) {
                return Some(small(to, bytes.freeze()));
            }
        }
    }

    /// Seals an answer if its flow is sealed; returns false if the flow's keys are forgotten
    /// meanwhile.
    fn seal_answer(&mut self, to: SocketAddr, header: Header, bytes: &mut BytesMut) -> bool {
        if !header.has(flags::SEALED) {
            return true;
        }
        bytes.put_bytes(0, crate::seal::TAG_BYTES);
        let seal = self.receptions.seal(to, &header);
        seal.is_some_and(|seal| seal.seal(header, bytes).is_ok())
    }

    /// A CHALLENGE with a salt is to be sent.
    pub(super) fn challenge(&mut self, to: SocketAddr, challenge: &[u8; HANDSHAKE_BYTES]) {
        if self.challenges.len() < CHALLENGES_MAX {
            self.challenges.push_back(small(to, Bytes::copy_from_slice(challenge)));
        }
    }
}

fn begin(header: &Header, body_bytes: usize) -> BytesMut {
    let mut bytes = BytesMut::with_capacity(HEADER_BYTES + body_bytes);
    bytes.extend_from_slice(&header.to_bytes());
    bytes
}

const fn small(to: SocketAddr, bytes: Bytes) -> Transmit {
    Transmit { to, bytes, segment_bytes: None, may_fragment: false }
}
