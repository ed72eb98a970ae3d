//! Messages with numbers, and reports of those that are missing: what [`crate::replay`] and
//! [`crate::replace`] put before an application's bytes. All numbers are little-endian.

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// 1, the mailbox for reports (8 bytes), the number (8). The application's bytes follow.
    Message { report_to: u64, number: u64 },
    /// 2, the same, and the number (8) of the lost one that this one replaces.
    Replacement { report_to: u64, number: u64, replaces: u64 },
    /// 3, the mailbox for reports, the number that comes next: all below were pushed.
    Mark { report_to: u64, next: u64 },
    /// 4, the mailbox for reports, the number of one that will not come: do not wait.
    Gone { report_to: u64, number: u64 },
    /// 5, the same for one whose replacement is on its way, or was reported missing itself.
    Replaced { report_to: u64, number: u64 },
}

impl Frame {
    pub(crate) const fn bytes(self) -> usize {
        match self {
            Self::Replacement { .. } => 25,
            _ => 17,
        }
    }

    pub(crate) fn write(self, bytes: &mut Vec<u8>) {
        let (kind, report_to, number) = match self {
            Self::Message { report_to, number } => (1, report_to, number),
            Self::Replacement { report_to, number, .. } => (2, report_to, number),
            Self::Mark { report_to, next } => (3, report_to, next),
            Self::Gone { report_to, number } => (4, report_to, number),
            Self::Replaced { report_to, number } => (5, report_to, number),
        };
        bytes.push(kind);
        bytes.extend_from_slice(&report_to.to_le_bytes());
        bytes.extend_from_slice(&number.to_le_bytes());
        if let Self::Replacement { replaces, .. } = self {
            bytes.extend_from_slice(&replaces.to_le_bytes());
        }
    }

    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        let (report_to, rest) = read_u64(rest)?;
        let (number, rest) = read_u64(rest)?;
        match kind {
            1 => Some(Self::Message { report_to, number }),
            2 => {
                let (replaces, _) = read_u64(rest)?;
                Some(Self::Replacement { report_to, number, replaces })
            }
            3 => Some(Self::Mark { report_to, next: number }),
            4 => Some(Self::Gone { report_to, number }),
            5 => Some(Self::Replaced { report_to, number }),
            _ => None,
        }
    }
}

fn read_u64(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u64::from_le_bytes(*number), rest))
}

/// Writes a report: the numbers that are missing, 8 bytes each.
pub(crate) fn write_report(missing: &[u64]) -> Vec<u8> {
    missing.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// Reads the numbers of a report; what is left over is not one.
pub(crate) fn read_report(report: &[u8]) -> impl Iterator<Item = u64> + '_ {
    report.chunks_exact(8).filter_map(|number| read_u64(number).map(|(number, _)| number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_and_reports_round_trip_and_short_frames_are_refused() {
        for frame in [
            Frame::Message { report_to: 1, number: u64::MAX },
            Frame::Replacement { report_to: u64::MAX, number: 2, replaces: 3 },
            Frame::Mark { report_to: 4, next: 5 },
            Frame::Gone { report_to: 6, number: 7 },
            Frame::Replaced { report_to: 8, number: 9 },
        ] {
            let mut bytes = Vec::new();
            frame.write(&mut bytes);
            assert_eq!(bytes.len(), frame.bytes());
            assert_eq!(Frame::read(&bytes), Some(frame));
            for short in 0..bytes.len() {
                assert_eq!(Frame::read(&bytes[..short]), None);
            }
        }
        let report = write_report(&[1, u64::MAX]);
        assert_eq!(read_report(&report).collect::<Vec<_>>(), [1, u64::MAX]);
    }
}
