//! Replace (paper, "Replace vs Replay"): the sender keeps nothing. When the receiver
//! ([`crate::gap_detector::GapDetector`]) reports a message missing, the application says what is worth sending
//! instead: the same data, newer data, or nothing. That goes out as every new message does.

use std::collections::BTreeSet;
use std::time::Duration;

use quelea_cmq_proto::{PushError, Time};

use crate::dest::Dest;
use crate::numbered::{Frame, read_report};
use crate::queue::Queue;

/// Pushes messages that the application can replace.
#[derive(Debug)]
pub struct Replace {
    dest: Dest,
    reports: Queue,
    next: u64,
    /// Replaced lately: asked for again, it need not be replaced again, because its replacement is
    /// missed by its own number.
    replaced: BTreeSet<u64>,
}

/// Replaced messages that are remembered: as many as a receiver misses at most.
const REPLACED_MAX: usize = 4_096;

impl Replace {
    /// Pushes to `dest`, and hears of losses through `reports`, a queue of the same endpoint.
    #[must_use]
    pub const fn new(dest: Dest, reports: Queue) -> Self {
        Self { dest, reports, next: 0, replaced: BTreeSet::new() }
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
        self.dest.push(&framed(Frame::Message { report_to: self.report_to(), number }, message))?;
        self.next += 1;
        Ok(number)
    }

    /// Announces to the receiver how far it has pushed, so that the last messages are missed too, and asks
    /// `instead` for a message in place of each that is reported missing, for so long; returns how
    /// many were replaced. Call it now and then, and after the last push until it returns 0.
    ///
    /// # Errors
    /// [`PushError`], as [`Dest::push_timeout`].
    pub fn attend(
        &mut self,
        within: Duration,
        mut instead: impl FnMut(u64) -> Option<Vec<u8>>,
    ) -> Result<usize, PushError> {
        let report_to = self.report_to();
        let clock = self.dest.endpoint().driver().clock;
        let deadline = clock.after(within);
        let mark = Frame::Mark { report_to, next: self.next };
        self.dest.push_until(&framed(mark, &[]), deadline)?;
        let mut replaced = 0;
        loop {
            let left = Duration::from_micros(deadline.since_us(clock.now()));
            let Some(report) = self.reports.pop_timeout(left) else { return Ok(replaced) };
            for lost in read_report(&report.bytes) {
                replaced += usize::from(self.replace(lost, &mut instead, deadline)?);
            }
        }
    }

    fn replace(
        &mut self,
        lost: u64,
        instead: &mut impl FnMut(u64) -> Option<Vec<u8>>,
        deadline: Time,
    ) -> Result<bool, PushError> {
        let report_to = self.report_to();
        let push = |frame, message: &[u8]| self.dest.push_until(&framed(frame, message), deadline);
        if lost >= self.next {
            // Nobody misses what was not pushed: not a report of ours.
            return Ok(false);
        }
        if self.replaced.contains(&lost) {
            push(Frame::Replaced { report_to, number: lost }, &[])?;
            return Ok(false);
        }
        let Some(message) = instead(lost) else {
            push(Frame::Gone { report_to, number: lost }, &[])?;
            return Ok(false);
        };
        let frame = Frame::Replacement { report_to, number: self.next, replaces: lost };
        push(frame, &message)?;
        self.next += 1;
        self.replaced.insert(lost);
        if self.replaced.len() > REPLACED_MAX {
            self.replaced.pop_first();
        }
        Ok(true)
    }

    /// Returns the destination that it pushes to.
    #[must_use]
    pub const fn dest(&self) -> &Dest {
        &self.dest
    }
}

fn framed(frame: Frame, message: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(frame.bytes() + message.len());
    frame.write(&mut bytes);
    bytes.extend_from_slice(message);
    bytes
}
