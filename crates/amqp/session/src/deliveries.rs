//! Which of the bytes that wait to be written are deliveries.

use std::collections::VecDeque;

/// Ranges of the output, in bytes since the connection began, that hold deliveries not yet written.
///
/// The broker bounds deliveries by itself, and a client may have to finish a write before it reads
/// any; so input must stop for unread replies only. Ranges are joined where they touch: a stream of
/// deliveries is one range, and there are never more of them than replies in between.
#[derive(Debug, Default)]
pub(crate) struct Deliveries {
    ranges: VecDeque<(u64, u64)>,
    bytes: u64,
}

impl Deliveries {
    /// The output grew from one position to another by a delivery.
    pub(crate) fn add(&mut self, from: u64, to: u64) {
        self.bytes += to - from;
        match self.ranges.back_mut() {
            Some(last) if last.1 == from => last.1 = to,
            _ => self.ranges.push_back((from, to)),
        }
    }

    /// All up to this position was written.
    pub(crate) fn written(&mut self, position: u64) {
        while let Some(first) = self.ranges.front_mut() {
            let gone = first.1.min(position).saturating_sub(first.0);
            self.bytes -= gone;
            first.0 += gone;
            if first.0 < first.1 {
                return;
            }
            self.ranges.pop_front();
        }
        // An idle connection holds no buffer.
        self.ranges = VecDeque::new();
    }

    /// Returns the bytes of deliveries that wait.
    pub(crate) const fn waiting_bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deliveries_are_told_from_the_replies_between_them() {
        let mut deliveries = Deliveries::default();
        deliveries.add(0, 100);
        deliveries.add(100, 150);
        deliveries.add(170, 200);
        assert_eq!((deliveries.waiting_bytes(), deliveries.ranges.len()), (180, 2));
        deliveries.written(120);
        assert_eq!(deliveries.waiting_bytes(), 60);
        deliveries.written(160);
        assert_eq!(deliveries.waiting_bytes(), 30);
        deliveries.written(200);
        assert_eq!((deliveries.waiting_bytes(), deliveries.ranges.len()), (0, 0));
    }
}
