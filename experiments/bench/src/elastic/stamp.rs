//! The first bytes of each body: who sent it, which one it is, and when.

/// Bytes of a stamp; a body has at least so many.
pub(crate) const STAMP_BYTES: usize = 32;

/// What a body says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// The run: bodies of another one are refused.
    pub run: u64,
    /// The producer's number.
    pub producer: u64,
    /// Counts its messages from 0.
    pub sequence: u64,
    /// When it was meant to be sent, by the machine's monotonic clock.
    pub sent_ns: u64,
}

impl Stamp {
    /// Writes it over the first bytes of `body`.
    pub(crate) fn put(self, body: &mut [u8]) {
        let fields = [self.run, self.producer, self.sequence, self.sent_ns];
        for (place, field) in body.chunks_exact_mut(8).zip(fields) {
            place.copy_from_slice(&field.to_le_bytes());
        }
    }

    /// Reads it; `None` if the body is shorter than a stamp.
    pub(crate) fn read(body: &[u8]) -> Option<Self> {
        let bytes: &[u8; STAMP_BYTES] = body.first_chunk()?;
        let field = |at: usize| {
            let mut field = [0; 8];
            field.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(field)
        };
        Some(Self { run: field(0), producer: field(8), sequence: field(16), sent_ns: field(24) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_reads_back_and_leaves_the_rest_alone() {
        let stamp = Stamp { run: 1, producer: 2, sequence: u64::MAX, sent_ns: 4 };
        let mut body = vec![7; STAMP_BYTES + 3];
        stamp.put(&mut body);
        assert_eq!(Stamp::read(&body), Some(stamp));
        assert_eq!(body[STAMP_BYTES..], [7, 7, 7]);
        assert_eq!(Stamp::read(&body[..STAMP_BYTES - 1]), None);
    }
}
