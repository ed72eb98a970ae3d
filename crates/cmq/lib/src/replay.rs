//! Replay (paper, "Replace vs Replay"): the sender keeps its last messages, and sends those again that
//! the receiver ([`crate::gap_detector::GapDetector`]) reports missing. Others are not held up meanwhile.
//! Where every message must come, a reliable mode does the same below the application's eyes; this is
//! for those who want to decide.

use std::collections::VecDeque;
use std::time::Duration;

use quelea_cmq_proto::{PushError, Time};

use crate::dest::Dest;
use crate::numbered::{Frame, read_report};
use crate::queue::Queue;

/// Pushes messages that it can push again.
#[derive(Debug)]
pub struct Replay {
    dest: Dest,
    reports: Queue,
    /// The last messages as they were pushed; the newest has the number `next - 1`.
    kept: VecDeque<Vec<u8>>,
    kept_max: usize,
    next: u64,
    gone: u64,
}

impl Replay {
    /// Pushes to `dest`, and hears of losses through `reports`, a queue of the same endpoint. Keeps
    /// the last `kept_max` messages.
    #[must_use]
    pub const fn new(dest: Dest, reports: Queue, kept_max: usize) -> Self {
        Self { dest, reports, kept: VecDeque::new(), kept_max, next: 0, gone: 0 }
    }

    fn report_to(&self) -> u64 {
        self.reports.mailbox().map_or(0, |mailbox| mailbox.0)
    }

    /// Pushes a message; returns its number.
    ///
    /// # Errors
    /// [`PushError`], as [`Dest::push`].
    pub fn push(&mut self, message: &[u8]) -> Result<u64, PushError> {
        let number = self.next;
        let frame = Frame::Message { report_to: self.report_to(), number };
        let mut bytes = Vec::with_capacity(frame.bytes() + message.len());
        frame.write(&mut bytes);
        bytes.extend_from_slice(message);
        self.dest.push(&bytes)?;
        self.kept.push_back(bytes);
        if self.kept.len() > self.kept_max {
            self.kept.pop_front();
        }
        self.next += 1;
        Ok(number)
    }

    /// Announces to the receiver how far it has pushed, so that the last messages are missed too, and sends
    /// again what is reported missing, for so long; returns how many messages that were. Call it now
    /// and then, and after the last push until it returns 0.
    ///
    /// # Errors
    /// [`PushError`], as [`Dest::push_timeout`].
    pub fn attend(&mut self, within: Duration) -> Result<usize, PushError> {
        let mut bytes = Vec::new();
        Frame::Mark { report_to: self.report_to(), next: self.next }.write(&mut bytes);
        let clock = self.dest.endpoint().driver().clock;
        let deadline = clock.after(within);
        self.dest.push_until(&bytes, deadline)?;
        let mut replayed = 0;
        loop {
            let left = Duration::from_micros(deadline.since_us(clock.now()));
            let Some(report) = self.reports.pop_timeout(left) else { return Ok(replayed) };
            for number in read_report(&report.bytes) {
                replayed += usize::from(self.replay(number, deadline)?);
            }
        }
    }

    fn replay(&mut self, number: u64, deadline: Time) -> Result<bool, PushError> {
        let first = self.next - self.kept.len() as u64;
        let place = number.checked_sub(first).and_then(|place| usize::try_from(place).ok());
        if let Some(message) = place.and_then(|place| self.kept.get(place)) {
            self.dest.push_until(message, deadline)?;
            return Ok(true);
        }
        self.gone += 1;
        let mut bytes = Vec::new();
        Frame::Gone { report_to: self.report_to(), number }.write(&mut bytes);
        self.dest.push_until(&bytes, deadline)?;
        Ok(false)
    }

    /// Returns the number of reports of messages that it does not keep any more.
    #[must_use]
    pub const fn gone(&self) -> u64 {
        self.gone
    }

    /// Returns the destination that it pushes to.
    #[must_use]
    pub const fn dest(&self) -> &Dest {
        &self.dest
    }
}
