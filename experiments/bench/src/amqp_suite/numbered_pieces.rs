//! What the baseline sends and checks: a stream of pieces, each with its number in front, of which the receiver knows every
//! byte. So what is lost, doubled, changed or in another order on its way shows, as it does with messages.

use std::io::{self, Write};

use crate::inbox::Delivery;
use crate::ledger::{Audit, Ledger};
use crate::template::body;

/// Bytes of a piece, and of a write: system calls of 1 MiB cost the least a byte, with copies as with splice(2).
pub(super) const PIECE_BYTES: usize = 1024 * 1024;
const NUMBER_BYTES: usize = size_of::<u64>();
const _: () = assert!(PIECE_BYTES.is_multiple_of(NUMBER_BYTES));

/// Returns the bytes of a stream that carries `messages` of `size`: each piece has room for its
/// number.
pub(super) const fn stream_bytes(size: usize, messages: u64) -> u64 {
    (size as u64).saturating_mul(messages).next_multiple_of(NUMBER_BYTES as u64)
}

/// The sender's piece.
pub(super) struct PieceWriter {
    piece: Vec<u8>,
}

/// The receiver's place in a stream of which it knows the length.
pub(super) struct PieceAudit {
    expected: Vec<u8>,
    number: [u8; NUMBER_BYTES],
    /// Bytes of the piece that have arrived.
    at: usize,
    is_damaged: bool,
    left_bytes: u64,
    audit: Audit,
}

impl PieceWriter {
    pub(super) fn new() -> Self {
        Self { piece: body(PIECE_BYTES) }
    }

    /// Writes a stream of so many bytes; `sent` hears after each piece how many went out. Returns what went out.
    pub(super) fn write(
        &mut self,
        out: &mut impl Write,
        bytes: u64,
        mut sent: impl FnMut(u64) -> io::Result<()>,
    ) -> io::Result<Ledger> {
        let (mut ledger, mut left) = (Ledger::default(), bytes);
        while left > 0 {
            let number = ledger.count + 1;
            self.piece[..NUMBER_BYTES].copy_from_slice(&number.to_be_bytes());
            let count = left.min(PIECE_BYTES as u64);
            out.write_all(&self.piece[..count as usize])?;
            ledger.add(number);
            left -= count;
            sent(bytes - left)?;
        }
        Ok(ledger)
    }
}

impl PieceAudit {
    pub(super) fn new() -> Self {
        Self {
            expected: body(PIECE_BYTES),
            number: [0; NUMBER_BYTES],
            at: 0,
            is_damaged: false,
            left_bytes: 0,
            audit: Audit::default(),
        }
    }

    /// A stream of so many bytes begins.
    pub(super) fn begin(&mut self, bytes: u64) {
        (self.at, self.is_damaged, self.left_bytes) = (0, false, bytes);
        self.audit = Audit::default();
    }

    pub(super) const fn left_bytes(&self) -> u64 {
        self.left_bytes
    }

    /// Takes what has arrived. What is beyond the stream's end is counted as a piece of its own.
    pub(super) fn take(&mut self, mut bytes: &[u8]) {
        while self.left_bytes > 0 && !bytes.is_empty() {
            let piece_bytes = (self.at as u64 + self.left_bytes).min(PIECE_BYTES as u64) as usize;
            let (part, rest) = bytes.split_at(bytes.len().min(piece_bytes - self.at));
            self.compare(part);
            self.left_bytes -= part.len() as u64;
            if self.at == piece_bytes {
                self.end_piece();
            }
            bytes = rest;
        }
        self.audit.ledger.count += u64::from(!bytes.is_empty());
    }

    fn compare(&mut self, part: &[u8]) {
        let of_number = part.len().min(NUMBER_BYTES.saturating_sub(self.at));
        let (number, rest) = part.split_at(of_number);
        if of_number > 0 {
            self.number[self.at..self.at + of_number].copy_from_slice(number);
        }
        let from = self.at + of_number;
        self.is_damaged |= rest != &self.expected[from..from + rest.len()];
        self.at += part.len();
    }

    fn end_piece(&mut self) {
        let stamp = u64::from_be_bytes(self.number);
        let (size, is_damaged) = (self.at as u64, std::mem::take(&mut self.is_damaged));
        self.audit.add(&Delivery { tag: stamp, stamp, size, is_damaged });
        self.at = 0;
    }

    pub(super) const fn audit(&self) -> Audit {
        self.audit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: u64 = 3 * PIECE_BYTES as u64 + 16;

    fn stream() -> (Vec<u8>, Ledger) {
        let mut out = Vec::new();
        let ledger = PieceWriter::new().write(&mut out, BYTES, |_| Ok(())).unwrap();
        (out, ledger)
    }

    fn complaint(stream: &[u8], step: usize) -> Option<String> {
        let mut audit = PieceAudit::new();
        audit.begin(BYTES);
        stream.chunks(step).for_each(|part| audit.take(part));
        audit.audit().complaint(&self::stream().1, "pieces")
    }

    #[test]
    fn a_stream_that_arrives_as_it_was_sent_is_accepted_however_it_is_cut() {
        let (sent, ledger) = stream();
        assert_eq!((sent.len() as u64, ledger.count), (BYTES, 4));
        for step in [5, 4096, PIECE_BYTES - 3, PIECE_BYTES, sent.len()] {
            assert_eq!(complaint(&sent, step), None, "step {step}");
        }
    }

    #[test]
    fn each_kind_of_difference_in_a_stream_is_named() {
        let (sent, _) = stream();
        let piece = |number: usize| &sent[number * PIECE_BYTES..(number + 1) * PIECE_BYTES];
        let tail = &sent[3 * PIECE_BYTES..];
        let mut damaged = sent.clone();
        damaged[PIECE_BYTES + 100] ^= 1;
        for (stream, expected) in [
            (damaged, "1 of 4 pieces arrived with another body"),
            ([piece(0), piece(2), piece(1), tail].concat(), "1 of 4 pieces arrived out of order"),
            ([piece(0), piece(1), piece(1), tail].concat(), "1 of 4 pieces arrived out of order"),
            (sent[..3 * PIECE_BYTES].to_vec(), "1 of 4 pieces are lost"),
            ([&sent[..], &[1]].concat(), "5 pieces arrived of 4"),
            ([&sent[..9], &sent[10..], &[1]].concat(), "4 of 4 pieces arrived with another body"),
        ] {
            assert_eq!(complaint(&stream, 9_999).as_deref(), Some(expected));
        }
    }

    #[test]
    fn a_stream_has_room_for_its_number() {
        assert_eq!([(1, 1), (1, 50), (16, 3)].map(|(s, m)| stream_bytes(s, m)), [8, 56, 48]);
    }
}
