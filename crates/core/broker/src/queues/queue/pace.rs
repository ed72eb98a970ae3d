//! How fast a crowded queue is consumed from, and who publishes into it: by this
//! `messaging/flow_control.rs` slows publishers down.

use quelea_model::Timestamp;

/// What a consumer takes each second at least, if it does nothing else: a message in 2 ms. Work of its
/// own, a query or a file, takes longer.
const TAKEN_PER_S_MIN: u64 = 500;

/// The same in bytes of bodies that are too large for so many messages: about as fast as they can be read from a socket.
const TAKEN_BYTES_PER_S_MIN: u64 = 256 * 1024 * 1024;

/// How long bytes are counted for one rate: a single body of many must not make it.
const BYTES_MS: u64 = 100;

/// How many windows make the rate: a pause in which a client collects its garbage is not the end.
const WINDOWS: u64 = 4;

/// What publishers may of what was taken, in eighths: the backlog shrinks, unless it is a message or less for each of them.
const SHARE_EIGHTHS: u64 = 7;

#[derive(Debug)]
pub(crate) struct Pace {
    measured_at: Timestamp,
    /// The queue's deliveries until then.
    delivered: u64,
    /// Messages that its consumers take each second; `None` before the first window's end.
    taken_per_s: Option<u64>,
    /// Bytes of bodies that were taken since `bytes_since`.
    pub(crate) taken_bytes: u64,
    bytes_since: Timestamp,
    /// Whether they were many the last time that they were measured.
    takes_many_bytes: bool,
    /// Whether publishers are slowed down.
    pub(crate) is_slowing: bool,
    /// Connections that wait because of it.
    pub(crate) held: u64,
    /// Those that waited in the last window.
    sharers: u64,
}

impl Pace {
    pub(crate) const fn new(delivered: u64, now: Timestamp) -> Self {
        Self {
            measured_at: now,
            delivered,
            taken_per_s: None,
            taken_bytes: 0,
            bytes_since: now,
            takes_many_bytes: false,
            is_slowing: false,
            held: 0,
            sharers: 0,
        }
    }

    /// A window has ended, with so many deliveries in all, to so many consumers.
    pub(crate) fn measure(&mut self, delivered: u64, consumers: usize, now: Timestamp) {
        let elapsed_ms = now.since_ms(self.measured_at).max(1);
        let measured_per_s = (delivered - self.delivered) * 1_000 / elapsed_ms;
        let known_per_s = self.taken_per_s.unwrap_or(measured_per_s);
        let taken_per_s = (known_per_s * (WINDOWS - 1) + measured_per_s) / WINDOWS;
        self.taken_per_s = Some(taken_per_s);
        self.measure_bytes(consumers, now);
        let takes_many = taken_per_s >= TAKEN_PER_S_MIN * consumers as u64;
        self.is_slowing = takes_many || self.takes_many_bytes;
        (self.measured_at, self.delivered) = (now, delivered);
        self.sharers = std::mem::take(&mut self.held);
    }

    fn measure_bytes(&mut self, consumers: usize, now: Timestamp) {
        let elapsed_ms = now.since_ms(self.bytes_since);
        if elapsed_ms < BYTES_MS {
            return;
        }
        let bytes_per_s = self.taken_bytes.saturating_mul(1_000) / elapsed_ms;
        self.takes_many_bytes = bytes_per_s >= TAKEN_BYTES_PER_S_MIN * consumers as u64;
        (self.taken_bytes, self.bytes_since) = (0, now);
    }

    /// Returns what each of those who waited may publish in the next window.
    pub(crate) fn share(&self, window_ms: u64) -> u32 {
        let taken_eighths = self.taken_per_s.unwrap_or(0) * window_ms * SHARE_EIGHTHS;
        let sharers_eighths = 8 * 1_000 * self.sharers.max(1);
        // To the nearest: of large bodies it is a few.
        let share = (taken_eighths + sharers_eighths / 2) / sharers_eighths;
        u32::try_from(share).unwrap_or(u32::MAX).max(1)
    }
}
