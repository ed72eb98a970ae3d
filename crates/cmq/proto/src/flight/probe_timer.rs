//! The timer for what is under way and about which nothing is heard.

use crate::Time;

/// When to ask. Sending does not move the deadline: an early one looks at the last activity and sets
/// itself anew, so that a datagram costs one store.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProbeTimer {
    deadline: Option<Time>,
    /// The last sending, question, or word that said something new.
    active_at: Time,
    /// Questions since the last word that said something new; the wait doubles with each.
    backoff: u8,
    /// The first question since the last word of any kind.
    unanswered_since: Option<Time>,
}

/// The longest wait between two questions.
const WAIT_US_MAX: u64 = 1_000_000;

/// More doublings change nothing: 1 µs · 2^20 is beyond [`WAIT_US_MAX`].
const BACKOFF_MAX: u8 = 20;

impl ProbeTimer {
    pub(super) fn deadline(&self) -> Option<Time> {
        self.deadline
    }

    /// A datagram left.
    pub(super) fn sent(&mut self, now: Time, wait_us: u64) {
        self.active_at = now;
        if self.deadline.is_none() {
            self.deadline = Some(self.due(wait_us));
        }
    }

    /// There is a reason to ask, at the latest `wait_us` after the last activity.
    pub(super) fn arm(&mut self, wait_us: u64) {
        let due = self.due(wait_us);
        self.deadline = Some(self.deadline.map_or(due, |deadline| deadline.min(due)));
    }

    /// There is nothing left to ask for.
    pub(super) fn disarm(&mut self) {
        self.deadline = None;
        self.backoff = 0;
    }

    /// A word came; `news` if it said what was not known.
    pub(super) fn answered(&mut self, news: bool, now: Time) {
        self.unanswered_since = None;
        if news {
            self.active_at = now;
            self.backoff = 0;
        }
    }

    /// Returns whether it is time to ask. If so, call `asked` once the probe left.
    pub(super) fn fires(&mut self, now: Time, wait_us: u64) -> bool {
        if self.deadline.is_none_or(|deadline| now < deadline) {
            return false;
        }
        let due = self.due(wait_us);
        if now < due {
            self.deadline = Some(due);
        }
        now >= due
    }

    /// A question left.
    pub(super) fn asked(&mut self, now: Time, wait_us: u64) {
        self.active_at = now;
        self.backoff = (self.backoff + 1).min(BACKOFF_MAX);
        self.unanswered_since.get_or_insert(now);
        self.deadline = Some(self.due(wait_us));
    }

    /// Returns how long to wait between questions now.
    pub(super) fn wait_us(&self, wait_us: u64) -> u64 {
        (wait_us << self.backoff).min(WAIT_US_MAX)
    }

    /// Returns how many questions were asked since something new was heard, none of which was
    /// answered at all.
    pub(super) fn unanswered(&self) -> u8 {
        if self.unanswered_since.is_some() { self.backoff } else { 0 }
    }

    /// Returns how long the peer has not answered.
    pub(super) fn unanswered_us(&self, now: Time) -> u64 {
        self.unanswered_since.map_or(0, |since| now.since_us(since))
    }

    fn due(&self, wait_us: u64) -> Time {
        self.active_at.plus_us(self.wait_us(wait_us))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask_when_due(timer: &mut ProbeTimer) -> Time {
        let due = timer.deadline().unwrap();
        assert!(!timer.fires(Time::from_micros(due.as_micros() - 1), 2_000));
        assert!(timer.fires(due, 2_000));
        timer.asked(due, 2_000);
        due
    }

    #[test]
    fn the_wait_doubles_up_to_a_second_until_something_is_heard() {
        let mut timer = ProbeTimer::default();
        timer.sent(Time::ZERO, 2_000);
        let mut waits = Vec::new();
        let mut now = Time::ZERO;
        for _ in 0..12 {
            let due = ask_when_due(&mut timer);
            waits.push(due.since_us(now));
            now = due;
        }
        assert_eq!(&waits[..4], &[2_000, 4_000, 8_000, 16_000]);
        assert_eq!(waits.last(), Some(&1_000_000));
        assert_eq!(timer.unanswered_us(now), now.since_us(Time::from_micros(2_000)));
        timer.answered(true, now);
        assert_eq!((timer.wait_us(2_000), timer.unanswered_us(now)), (2_000, 0));
    }

    #[test]
    fn sending_puts_it_off_without_moving_the_deadline() {
        let mut timer = ProbeTimer::default();
        timer.sent(Time::ZERO, 2_000);
        timer.sent(Time::from_micros(1_500), 2_000);
        assert_eq!(timer.deadline(), Some(Time::from_micros(2_000)));
        assert!(!timer.fires(Time::from_micros(2_000), 2_000));
        assert_eq!(timer.deadline(), Some(Time::from_micros(3_500)));
        assert!(timer.fires(Time::from_micros(3_500), 2_000));
    }

    #[test]
    fn an_answer_without_news_keeps_the_longer_wait() {
        let mut timer = ProbeTimer::default();
        timer.sent(Time::ZERO, 2_000);
        let asked = ask_when_due(&mut timer);
        timer.answered(false, asked.plus_us(100));
        assert_eq!(timer.wait_us(2_000), 4_000);
        assert_eq!(timer.unanswered_us(asked.plus_us(9_000)), 0);
    }
}
