//! Notices for the operators' log about messages that an entry itself was too slow for, or that a relay died with: at most once
//! a minute, as of any listener.

use quelea_elastic_core::relay::limits::SLOW_NOTICE_MS;
use quelea_elastic_proto::Time;

/// Counts between two reports.
#[derive(Debug, Default)]
pub(super) struct LostNotice {
    messages: u64,
    reported_at: Option<Time>,
}

impl LostNotice {
    /// Counts so many messages more as lost. Returns how many are to be reported now.
    pub(super) fn lost(&mut self, messages: u64, now: Time) -> Option<u64> {
        self.messages += messages;
        if self.reported_at.is_some_and(|at| now.since_ms(at) < SLOW_NOTICE_MS) {
            return None;
        }
        self.reported_at = Some(now);
        Some(std::mem::take(&mut self.messages))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_reported_once_a_minute_with_all_since_the_last_report() {
        let mut notice = LostNotice::default();
        let mut lost = |messages, ms: u64| notice.lost(messages, Time::from_micros(ms * 1_000));
        assert_eq!(lost(3, 5), Some(3));
        assert_eq!(lost(4, 6), None);
        assert_eq!(lost(5, SLOW_NOTICE_MS), None);
        assert_eq!(lost(6, 5 + SLOW_NOTICE_MS), Some(15));
    }
}
