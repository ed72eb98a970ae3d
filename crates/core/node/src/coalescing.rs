//! Input coalescing: whether the core pauses before it looks for more input, as network cards hold back an interrupt
//! while packets keep coming.
//!
//! A client that writes each small message by itself costs a wake-up, a read and a turn for each, as long as the
//! broker is quick enough to meet them one by one. A core that is busy with that pauses, so that the next read finds
//! several. It goes on pausing only while that shows: reads grow, and no less comes than before. So clients that
//! wait for each answer are slowed for one window at each attempt, and those that send seldom not at all.

use std::time::{Duration, Instant};

use crate::backoff::Backoff;

/// How long a pause is meant to be. With the timer slack of Linux, 50 µs, it is about twice as long.
pub(crate) const PAUSE: Duration = Duration::from_micros(50);

/// How long is measured before pauses begin: a core that is at its limit only now and then keeps up by itself.
const READING_WINDOW: Duration = Duration::from_millis(100);

/// How long is measured before pauses go on.
const PAUSING_WINDOW: Duration = Duration::from_millis(10);

/// Larger reads hold enough small messages.
const SMALL_READ_BYTES: u64 = 1024;

/// With fewer reads a second a pause of the expected length would not find several in one.
const READS_PER_S_MIN: u64 = 10_000;

/// A core that waits for input more often has the time to read single writes as they come. With one writer at full speed
/// it waits some 2,000 times a second, since the two are about as quick; with one that leaves it idle for a tenth of the time
/// 4,000 times.
const WAITS_PER_S_MAX: u64 = 2_500;

/// After a turn with more input than this none of it waits for company.
const SMALL_TURN_BYTES: u64 = 8 * 1024;

/// Reads must be so many times as large as before.
const GROWTH_MIN: u64 = 3;

/// After so many windows it is measured again what comes without pauses.
const PAUSING_WINDOWS_MAX: u32 = 100;

/// What a window had.
#[derive(Clone, Copy, Debug)]
struct Sample {
    read_bytes: u64,
    reads_per_s: u64,
    bytes_per_s: u64,
    waits_per_s: u64,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// No pauses, nor an attempt before that time.
    Reading { until: Instant },
    /// With pauses, in so many windows until now, and what was without them.
    Pausing { windows: u32, before: Sample },
}

/// The measurement, and what follows from it.
#[derive(Debug)]
pub(crate) struct InputCoalescing {
    state: State,
    /// Since the start of the process.
    pauses: u64,
    window_began: Instant,
    /// Of the thread, when the window began, if that is known.
    waits: Option<u64>,
    reads: u64,
    bytes: u64,
    turn_bytes: u64,
    /// Of attempts that did not pay.
    backoff: Backoff,
}

impl InputCoalescing {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            state: State::Reading { until: now },
            pauses: 0,
            window_began: now,
            waits: None,
            reads: 0,
            bytes: 0,
            turn_bytes: 0,
            backoff: Backoff::new(),
        }
    }

    /// A read of a socket gave so many bytes.
    pub(crate) const fn count_read(&mut self, bytes: usize) {
        self.reads += 1;
        self.bytes += bytes as u64;
        self.turn_bytes += bytes as u64;
    }

    /// A turn has ended at `now`. `waits` gives how often the thread has waited: if nobody knows it never pauses. Returns
    /// whether to pause if there is no more to do.
    pub(crate) fn end_turn(&mut self, now: Instant, waits: impl FnOnce() -> Option<u64>) -> bool {
        let elapsed = now.saturating_duration_since(self.window_began);
        let window = match self.state {
            State::Reading { .. } => READING_WINDOW,
            State::Pausing { .. } => PAUSING_WINDOW,
        };
        if elapsed >= window {
            let waits = waits();
            self.decide(now, elapsed, waits);
            (self.window_began, self.waits) = (now, waits);
            (self.reads, self.bytes) = (0, 0);
        }
        let turn_bytes = std::mem::take(&mut self.turn_bytes);
        matches!(self.state, State::Pausing { .. }) && (1..SMALL_TURN_BYTES).contains(&turn_bytes)
    }

    /// The core pauses.
    pub(crate) const fn count_pause(&mut self) {
        self.pauses += 1;
    }

    pub(crate) const fn pauses(&self) -> u64 {
        self.pauses
    }

    fn decide(&mut self, now: Instant, elapsed: Duration, waits: Option<u64>) {
        let elapsed_us = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX).max(1);
        let per_s = |count: u64| count.saturating_mul(1_000_000) / elapsed_us;
        let waited =
            waits.zip(self.waits).map_or(u64::MAX, |(now, before)| now.saturating_sub(before));
        let sample = Sample {
            read_bytes: self.bytes / self.reads.max(1),
            reads_per_s: per_s(self.reads),
            bytes_per_s: per_s(self.bytes),
            waits_per_s: per_s(waited),
        };
        self.state = match self.state {
            State::Reading { until } if until <= now && sample.may_gain() => {
                State::Pausing { windows: 0, before: sample }
            }
            State::Reading { until } => State::Reading { until },
            State::Pausing { before, .. } if !sample.has_gained(before) => {
                State::Reading { until: now + self.backoff.next_wait() }
            }
            State::Pausing { windows: PAUSING_WINDOWS_MAX.., .. } => State::Reading { until: now },
            State::Pausing { windows, before } => {
                self.backoff.reset();
                State::Pausing { windows: windows + 1, before }
            }
        };
    }
}

impl Sample {
    /// Whether pauses are worth an attempt.
    const fn may_gain(self) -> bool {
        self.waits_per_s <= WAITS_PER_S_MAX
            && self.reads_per_s >= READS_PER_S_MIN
            && self.read_bytes <= SMALL_READ_BYTES
    }

    /// Whether reads have grown, and no less came but for what one window differs from the next.
    const fn has_gained(self, before: Self) -> bool {
        self.read_bytes >= before.read_bytes * GROWTH_MIN
            && self.bytes_per_s >= before.bytes_per_s / 4 * 3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A core in virtual time. A client sends a message of 60 bytes whenever `gap_us` have passed and fewer than
    /// `window` are unanswered; a read and a turn take 4 µs together, a tenth of a microsecond a message more, and a pause 100.
    struct Load {
        gap_us: f64,
        window: u64,
        clients: u64,
    }

    impl Load {
        /// Plays it for so long. Returns the messages a second, and the pauses a second of the last half.
        fn play(&self, ms: u64, coalescing: &mut InputCoalescing, start: Instant) -> (f64, f64) {
            let (mut now_us, mut waits, end_us) = (0.0, 0, ms as f64 * 1e3);
            let mut has_waited = false;
            let mut next_us = vec![0.0_f64; self.clients as usize];
            let (mut messages, mut pauses) = (0, 0);
            while now_us < end_us {
                let began_us = now_us;
                for next in &mut next_us {
                    let due = ((now_us - *next) / self.gap_us).max(-1.0) as i64 + 1;
                    let found = (due.max(0) as u64).min(self.window);
                    if found > 0 {
                        coalescing.count_read(found as usize * 60);
                        now_us += 4.0 + 0.1 * found as f64;
                        *next = match found == self.window {
                            // Answered now, and the next takes its time.
                            true => now_us + self.gap_us,
                            false => *next + found as f64 * self.gap_us,
                        };
                        if now_us > end_us / 2.0 {
                            messages += found;
                        }
                    }
                }
                if now_us > began_us {
                    has_waited = false;
                    let now = start + Duration::from_nanos((now_us * 1e3) as u64);
                    if coalescing.end_turn(now, || Some(waits)) {
                        now_us += 100.0;
                        pauses += u64::from(now_us > end_us / 2.0);
                    }
                } else {
                    waits += u64::from(!std::mem::replace(&mut has_waited, true));
                    now_us += 0.2;
                }
            }
            let half_s = end_us / 2e6;
            (messages as f64 / half_s, pauses as f64 / half_s)
        }
    }

    const UNLIMITED: u64 = 100_000;

    fn play(load: &Load) -> (f64, f64) {
        let start = Instant::now();
        load.play(4_000, &mut InputCoalescing::new(start), start)
    }

    #[test]
    fn a_client_that_sends_on_and_on_is_read_in_batches() {
        let (_, pauses) = play(&Load { gap_us: 2.0, window: UNLIMITED, clients: 1 });
        assert!(pauses > 5_000.0, "{pauses}");
    }

    #[test]
    fn a_core_that_has_time_does_not_pause() {
        for gap_us in [20.0, 100.0] {
            let (_, pauses) = play(&Load { gap_us, window: UNLIMITED, clients: 1 });
            assert_eq!(pauses, 0.0, "{gap_us}");
        }
    }

    #[test]
    fn clients_that_wait_for_each_answer_lose_next_to_nothing() {
        let load = Load { gap_us: 2.0, window: 1, clients: 30 };
        let (rate, pauses) = play(&load);
        // Each attempt costs a window, and they become rare.
        assert!(pauses < 100.0, "{pauses}");
        assert!(rate > 200_000.0, "{rate}");
    }

    #[test]
    fn a_small_window_is_not_slowed() {
        let (rate, _) = play(&Load { gap_us: 1.0, window: 8, clients: 1 });
        assert!(rate > 500_000.0, "{rate}");
    }

    #[test]
    fn pauses_end_with_the_load() {
        let start = Instant::now();
        let mut coalescing = InputCoalescing::new(start);
        let fast = Load { gap_us: 2.0, window: UNLIMITED, clients: 1 };
        assert!(fast.play(1_000, &mut coalescing, start).1 > 0.0);
        let slow = Load { gap_us: 20.0, window: UNLIMITED, clients: 1 };
        let later = start + Duration::from_secs(1);
        assert_eq!(slow.play(1_000, &mut coalescing, later).1, 0.0);
    }
}
