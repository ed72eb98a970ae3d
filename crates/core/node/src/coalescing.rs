//! Input coalescing: whether the core pauses before it looks for more input, as network cards hold back an interrupt
//! while packets keep coming.
//!
//! A client that writes each small message by itself costs a wake-up, a read and a turn for each, as long as the
//! broker is quick enough to meet them one by one. A core that is busy with that pauses, so that the next read finds
//! several. It goes on pausing only while that pays: reads grow, as much comes as before, and no client that sent often
//! falls far behind, as one that waits for each answer does. Else it tries again later, and ever more seldom. What is
//! served besides on the core's thread, such as SQS, waits for at most one pause.

use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use crate::backoff::Backoff;
use crate::thread_usage::ThreadUsage;

/// How long a pause is meant to be. With the timer slack of Linux, 50 µs, it is about twice as long.
pub(crate) const PAUSE: Duration = Duration::from_micros(50);

/// Where pauses take longer on the average (coarse timers, no free processor) there are none.
const PAUSE_MEAN_MAX: Duration = Duration::from_micros(500);

/// How long is measured before pauses begin: a core that is at its limit only now and then keeps up by itself.
const WATCHING_WINDOW: Duration = Duration::from_millis(100);

/// How long is measured before pauses go on.
const PAUSING_WINDOW: Duration = Duration::from_millis(10);

/// After so many windows the rate must be what it was before: one window's differs by chance.
const STEADY_WINDOWS: u32 = 5;

/// After so many windows it is measured again what comes without pauses.
const PAUSING_WINDOWS_MAX: u32 = 100;

/// Larger reads hold enough small messages.
const SMALL_READ_BYTES: u64 = 1024;

/// With fewer reads a second a pause of the expected length would not find several in one.
const READS_PER_S_MIN: u64 = 10_000;

/// A core that waits for input more often has the time to read single writes as they come. With one writer at full speed
/// it waits some 2,000 times a second, since the two are about as quick; with one that leaves it idle for a tenth of the
/// time 4,000 times.
const WAITS_PER_S_MAX: u64 = 2_500;

/// After a turn with more input than this there is no pause.
const SMALL_TURN_BYTES: u64 = 8 * 1024;

/// Reads must be so many times as large as before.
const GROWTH_MIN: u64 = 3;

/// A client with fewer reads a second is not slowed much by pauses.
const CLIENT_READS_PER_S_MIN: u64 = 1_000;

/// With more clients that send at the same time each has too little for its reads to grow.
const CLIENTS_MAX: usize = 1_000;

/// After so many windows it is known what a client sends.
const CLIENT_WINDOWS: u32 = 3;

/// No client may send less than one part in so many of what it sent before.
const CLIENT_LOSS_MAX: u64 = 3;

/// Input of a window, of one client or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Input {
    /// But for those of large bodies.
    reads: u64,
    read_bytes: u64,
    bytes: u64,
}

/// What a window had.
#[derive(Clone, Debug, Default)]
struct Sample {
    elapsed: Duration,
    all: Input,
    /// By connection, of those that sent anything; at most [`CLIENTS_MAX`].
    clients: FxHashMap<usize, Input>,
}

#[derive(Debug)]
enum State {
    /// No pauses, nor an attempt before that time.
    Watching {
        until: Instant,
    },
    Pausing(Pausing),
}

#[derive(Debug)]
struct Pausing {
    /// What was without pauses.
    before: Sample,
    windows: u32,
    /// Of all windows so far.
    sum: Sample,
}

/// The measurement, and what follows from it.
#[derive(Debug)]
pub(crate) struct InputCoalescing {
    state: State,
    window_began: Instant,
    /// When the window began, if the system says it.
    usage: Option<ThreadUsage>,
    all: Input,
    /// By connection.
    clients: Vec<Input>,
    /// Those of them with anything in them.
    active: Vec<usize>,
    turn_bytes: u64,
    /// Since the start of the process.
    pauses: u64,
    /// Pauses of the window, and how long they took together.
    window_pauses: u32,
    window_paused: Duration,
    /// Of attempts that did not pay.
    backoff: Backoff,
}

impl InputCoalescing {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            state: State::Watching { until: now },
            window_began: now,
            usage: None,
            all: Input::default(),
            clients: Vec::new(),
            active: Vec::new(),
            turn_bytes: 0,
            pauses: 0,
            window_pauses: 0,
            window_paused: Duration::ZERO,
            backoff: Backoff::new(),
        }
    }

    /// A read of a connection's socket gave so many bytes.
    pub(crate) fn count_read(&mut self, connection: usize, bytes: usize) {
        let bytes = bytes as u64;
        self.count(connection, Input { reads: 1, read_bytes: bytes, bytes });
    }

    /// A read gave so many bytes of a large body.
    pub(crate) fn count_body(&mut self, connection: usize, bytes: usize) {
        self.count(connection, Input { reads: 0, read_bytes: 0, bytes: bytes as u64 });
    }

    fn count(&mut self, connection: usize, input: Input) {
        if self.clients.len() <= connection {
            self.clients.resize(connection + 1, Input::default());
        }
        let client = &mut self.clients[connection];
        if *client == Input::default() {
            self.active.push(connection);
        }
        client.add(input);
        self.all.add(input);
        self.turn_bytes += input.bytes;
    }

    /// The core has paused for so long.
    pub(crate) fn count_pause(&mut self, duration: Duration) {
        self.pauses += 1;
        self.window_pauses += 1;
        self.window_paused += duration;
    }

    /// Returns how many pauses there were since the start of the process.
    pub(crate) const fn pauses(&self) -> u64 {
        self.pauses
    }

    /// Ends a turn at `now`. `usage` gives what the thread has used: without that it never pauses.
    /// Returns whether to pause if there is no more to do.
    pub(crate) fn end_turn(
        &mut self,
        now: Instant,
        usage: impl FnOnce() -> Option<ThreadUsage>,
    ) -> bool {
        let elapsed = now.saturating_duration_since(self.window_began);
        let window = match self.state {
            State::Watching { .. } => WATCHING_WINDOW,
            State::Pausing { .. } => PAUSING_WINDOW,
        };
        if elapsed >= window {
            self.end_window(now, elapsed, usage());
        }
        let turn_bytes = std::mem::take(&mut self.turn_bytes);
        matches!(self.state, State::Pausing(_)) && (1..SMALL_TURN_BYTES).contains(&turn_bytes)
    }

    fn end_window(&mut self, now: Instant, elapsed: Duration, usage: Option<ThreadUsage>) {
        let all = std::mem::take(&mut self.all);
        let mut sample = Sample { elapsed, all, clients: FxHashMap::default() };
        let is_wanted = self.active.len() <= CLIENTS_MAX && sample.is_wanted_in(&self.state);
        for connection in self.active.drain(..) {
            let client = std::mem::take(&mut self.clients[connection]);
            if is_wanted {
                sample.clients.insert(connection, client);
            }
        }
        let at_limit = usage
            .zip(self.usage)
            .is_some_and(|(now, before)| now.is_at_limit_since(before, elapsed));
        let is_long = self.window_paused > PAUSE_MEAN_MAX * self.window_pauses;
        self.decide(now, sample, at_limit && is_wanted, is_long);
        (self.window_began, self.usage) = (now, usage);
        (self.window_pauses, self.window_paused) = (0, Duration::ZERO);
    }

    fn decide(&mut self, now: Instant, sample: Sample, at_limit: bool, pauses_are_long: bool) {
        match &mut self.state {
            State::Watching { until } => {
                if *until <= now && at_limit {
                    let sum = Sample::default();
                    self.state = State::Pausing(Pausing { before: sample, windows: 0, sum });
                }
            }
            State::Pausing(pausing) => {
                let pays = pausing.pays(sample) && !pauses_are_long;
                if pays && pausing.windows >= STEADY_WINDOWS {
                    self.backoff.reset();
                }
                if !pays {
                    self.state = State::Watching { until: now + self.backoff.next_wait() };
                } else if pausing.windows > PAUSING_WINDOWS_MAX {
                    self.state = State::Watching { until: now };
                }
            }
        }
    }
}

impl ThreadUsage {
    fn is_at_limit_since(self, before: Self, elapsed: Duration) -> bool {
        let waits = self.waits.saturating_sub(before.waits);
        let worked = self.cpu_time.saturating_sub(before.cpu_time);
        per_s(waits, elapsed) <= WAITS_PER_S_MAX && worked >= elapsed / 4 * 3
    }
}

impl Input {
    const fn add(&mut self, other: Self) {
        self.reads += other.reads;
        self.read_bytes += other.read_bytes;
        self.bytes += other.bytes;
    }

    const fn mean_read_bytes(self) -> u64 {
        // Without any it is 0.
        self.read_bytes / (self.reads + (self.reads == 0) as u64)
    }
}

impl Sample {
    /// Returns whether a pause may be worth an attempt, or goes on.
    fn is_wanted_in(&self, state: &State) -> bool {
        matches!(state, State::Pausing(_)) || self.is_of_small_reads()
    }

    const fn is_of_small_reads(&self) -> bool {
        per_s(self.all.reads, self.elapsed) >= READS_PER_S_MIN
            && self.all.mean_read_bytes() <= SMALL_READ_BYTES
    }

    const fn bytes_per_s(&self) -> u64 {
        per_s(self.all.bytes, self.elapsed)
    }

    /// Returns whether one of those clients that sent often sends far less now.
    fn has_slowed_any_of(&self, before: &Self) -> bool {
        before
            .clients
            .iter()
            .filter(|(_, client)| per_s(client.reads, before.elapsed) >= CLIENT_READS_PER_S_MIN)
            .any(|(connection, client)| {
                let bytes = self.clients.get(connection).map_or(0, |client| client.bytes);
                per_s(bytes, self.elapsed) * CLIENT_LOSS_MAX < per_s(client.bytes, before.elapsed)
            })
    }

    fn add(&mut self, other: Self) {
        self.elapsed += other.elapsed;
        self.all.add(other.all);
        for (connection, input) in other.clients {
            self.clients.entry(connection).or_default().add(input);
        }
    }
}

impl Pausing {
    /// Takes a window. Returns whether it is better so than before.
    fn pays(&mut self, sample: Sample) -> bool {
        let before = &self.before;
        let is_enough =
            |now: &Sample, of_20: u64| now.bytes_per_s() >= before.bytes_per_s() / 20 * of_20;
        let has_grown = sample.all.mean_read_bytes() >= before.all.mean_read_bytes() * GROWTH_MIN;
        let pays = has_grown && is_enough(&sample, 15);
        self.windows += 1;
        self.sum.add(sample);
        pays && (self.windows < STEADY_WINDOWS || is_enough(&self.sum, 19))
            && (self.windows < CLIENT_WINDOWS || !self.sum.has_slowed_any_of(before))
    }
}

const fn per_s(count: u64, elapsed: Duration) -> u64 {
    let elapsed_us = elapsed.as_micros() as u64;
    count.saturating_mul(1_000_000) / (elapsed_us + (elapsed_us == 0) as u64)
}

#[cfg(test)]
mod tests;
