//! The memory of everything that waits for something missing.

/// Bytes that may wait, over all flows. What is next in its flow may take all of it; what is ahead
/// leaves room for a message of the greatest length, so that what is next can always come in, and
/// nothing waits for ever.
#[derive(Debug)]
pub(super) struct Budget {
    bytes_max: usize,
    reserve: usize,
    used: usize,
    unproven: usize,
    recovery: usize,
}

/// The part of the memory that unproven flows may take together, as a divisor: a forger must not
/// keep it from all others.
const UNPROVEN_PART: usize = 8;

/// The part that may be kept to recover with: it only saves repetitions, what waits is worth more.
const MENDING_PART: usize = 4;

impl Budget {
    /// Creates a budget. At least two messages of the greatest length fit, whatever `bytes_max`
    /// says.
    pub(super) fn new(bytes_max: usize, message_bytes_max: usize) -> Self {
        let reserve = message_bytes_max + message_bytes_max / 8;
        Self { bytes_max: bytes_max.max(2 * reserve), reserve, used: 0, unproven: 0, recovery: 0 }
    }

    /// Takes `bytes` if there is room.
    pub(super) fn take(&mut self, bytes: usize, next: bool, proven: bool) -> bool {
        let kept = if next { 0 } else { self.reserve };
        if self.used + bytes + kept > self.bytes_max {
            return false;
        }
        if !proven {
            if self.unproven + bytes > self.bytes_max / UNPROVEN_PART {
                return false;
            }
            self.unproven += bytes;
        }
        self.used += bytes;
        true
    }

    /// Takes `bytes` to recover with instead of `before`; false if there is no room, and none is kept.
    pub(super) fn take_to_mend(&mut self, before: usize, bytes: usize, proven: bool) -> bool {
        self.give_back_decoder(before, proven);
        let takes = self.recovery + bytes <= self.bytes_max / MENDING_PART
            && self.take(bytes, false, proven);
        self.recovery += if takes { bytes } else { 0 };
        takes
    }

    pub(super) fn give_back_decoder(&mut self, bytes: usize, proven: bool) {
        self.recovery = self.recovery.saturating_sub(bytes);
        self.give_back(bytes, proven);
    }

    /// What a flow took while unproven is a proven flow's from now on.
    pub(super) fn prove(&mut self, bytes: usize) {
        self.unproven = self.unproven.saturating_sub(bytes);
    }

    pub(super) fn give_back(&mut self, bytes: usize, proven: bool) {
        debug_assert!(bytes <= self.used, "{bytes} of {}", self.used);
        self.used = self.used.saturating_sub(bytes);
        if !proven {
            self.prove(bytes);
        }
    }

    pub(super) const fn used(&self) -> usize {
        self.used
    }

    /// Returns what may still be taken by what is ahead.
    pub(super) const fn free(&self) -> usize {
        self.bytes_max.saturating_sub(self.used + self.reserve)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ahead_leaves_room_for_what_is_next() {
        let mut budget = Budget::new(1_000, 80);
        assert!(budget.take(910, false, true));
        assert!(!budget.take(1, false, true));
        assert_eq!(budget.free(), 0);
        assert!(budget.take(90, true, true));
        assert!(!budget.take(1, true, true));
        budget.give_back(1_000, true);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn what_is_kept_to_recover_with_is_a_part() {
        let mut budget = Budget::new(1_000, 80);
        assert!(budget.take_to_mend(0, 250, true));
        assert!(!budget.take_to_mend(0, 1, true));
        assert!(budget.take_to_mend(250, 200, true));
        assert_eq!(budget.used(), 200);
        assert!(!budget.take_to_mend(200, 251, true));
        assert_eq!(budget.used(), 0, "none is kept then");
    }

    #[test]
    fn unproven_flows_share_a_part_until_they_are_proven() {
        let mut budget = Budget::new(1_000, 80);
        assert!(budget.take(125, true, false));
        assert!(!budget.take(1, true, false));
        budget.prove(125);
        assert!(budget.take(125, true, false));
        budget.give_back(125, false);
        assert!(budget.take(125, true, false));
    }
}
