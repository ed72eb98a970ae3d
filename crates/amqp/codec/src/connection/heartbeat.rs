//! Heartbeats in both directions (AMQP 0-9-1 §4.2.7).

use quelea_model::Timestamp;

use crate::frame::FRAME_OVERHEAD;

/// When to send a heartbeat and when the client counts as gone. Off until it is started.
///
/// Twice an interval we look whether anything was written since the last look, and send a heartbeat
/// if not: so two of them never lie further apart than the interval. The first look sends one whatever
/// the handshake wrote, since there are clients that count from its end.
#[derive(Debug)]
pub(super) struct Heartbeat {
    interval_ms: u64,
    next_look: Timestamp,
    is_first_look: bool,
    /// Bytes that had been written at the last look.
    written: u64,
    last_received: Timestamp,
    /// The caller does not read, so that silence means nothing.
    paused: bool,
}

/// Silent intervals after which the client counts as gone (§4.2.7).
const SILENT_INTERVALS_MAX: u64 = 2;

impl Heartbeat {
    pub(super) const fn off() -> Self {
        Self {
            interval_ms: 0,
            next_look: Timestamp::ZERO,
            is_first_look: true,
            written: 0,
            last_received: Timestamp::ZERO,
            paused: false,
        }
    }

    /// Begins; an interval of 0 seconds is none.
    pub(super) const fn start(&mut self, interval_s: u16, now: Timestamp) {
        self.interval_ms = interval_s as u64 * 1_000;
        self.last_received = now;
        self.next_look = now.plus_ms(self.interval_ms / 2);
    }

    pub(super) const fn received(&mut self, now: Timestamp) {
        self.last_received = now;
    }

    pub(super) const fn pause(&mut self, paused: bool, now: Timestamp) {
        self.paused = paused;
        self.last_received = now;
    }

    pub(super) fn deadline(&self) -> Option<Timestamp> {
        if self.interval_ms == 0 {
            return None;
        }
        let silent = Some(self.silent_at()).filter(|_| !self.paused);
        Some(silent.map_or(self.next_look, |silent| silent.min(self.next_look)))
    }

    /// Returns whether the client has been silent for too long.
    pub(super) fn is_silent(&self, now: Timestamp) -> bool {
        self.interval_ms > 0 && !self.paused && now >= self.silent_at()
    }

    /// Returns whether to send a heartbeat, given the bytes written so far and whether others wait.
    /// To be called at the deadline.
    pub(super) fn is_due(&mut self, written: u64, others_wait: bool, now: Timestamp) -> bool {
        if self.interval_ms == 0 || now < self.next_look {
            return false;
        }
        self.next_look = now.plus_ms(self.interval_ms / 2);
        let is_first = std::mem::take(&mut self.is_first_look);
        let quiet = (is_first || written == self.written) && !others_wait;
        // Our own heartbeat is no reason to leave out the next.
        self.written = written + if quiet { FRAME_OVERHEAD as u64 } else { 0 };
        quiet
    }

    const fn silent_at(&self) -> Timestamp {
        self.last_received.plus_ms(SILENT_INTERVALS_MAX * self.interval_ms)
    }
}
