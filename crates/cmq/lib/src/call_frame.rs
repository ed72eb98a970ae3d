//! What stands before the bytes of a request and of an answer; docs/cmq/library.md has the same.

/// What stands before a request's or an answer's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// 1, the request's number (8 bytes, little-endian), the mailbox for the answer (8 bytes).
    Request { id: u64, reply_to: u64 },
    /// 2, the request's number.
    Answer { id: u64 },
}

impl Frame {
    pub(crate) const REQUEST_BYTES: usize = 17;
    pub(crate) const ANSWER_BYTES: usize = 9;

    pub(crate) fn write(self, bytes: &mut Vec<u8>) {
        match self {
            Self::Request { id, reply_to } => {
                bytes.push(1);
                bytes.extend_from_slice(&id.to_le_bytes());
                bytes.extend_from_slice(&reply_to.to_le_bytes());
            }
            Self::Answer { id } => {
                bytes.push(2);
                bytes.extend_from_slice(&id.to_le_bytes());
            }
        }
    }

    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        let (id, rest) = rest.split_first_chunk()?;
        let id = u64::from_le_bytes(*id);
        match kind {
            1 => {
                let reply_to = u64::from_le_bytes(*rest.first_chunk()?);
                Some(Self::Request { id, reply_to })
            }
            2 => Some(Self::Answer { id }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_read_as_they_were_written_and_shorter_ones_do_not_read() {
        for (frame, length) in [
            (Frame::Request { id: 7, reply_to: u64::MAX }, Frame::REQUEST_BYTES),
            (Frame::Answer { id: u64::MAX - 1 }, Frame::ANSWER_BYTES),
        ] {
            let mut bytes = Vec::new();
            frame.write(&mut bytes);
            assert_eq!(bytes.len(), length);
            assert_eq!(Frame::read(&bytes), Some(frame));
            for short in 0..length {
                assert_eq!(Frame::read(&bytes[..short]), None);
            }
        }
        assert_eq!(Frame::read(&[3; 20]), None);
    }
}
