//! A queue's relays as arrays.

use quelea_elastic_core::plan::{NEWCOMERS_BELOW, Policy, RelayState};

/// Samples of a relay that the planner is shown: it looks at no more.
pub(super) const SAMPLES: usize = 5;

/// Free, or where the relay is in its life.
pub(super) type Incarnation = Option<RelayState>;

#[derive(Default)]
pub(super) struct Relays {
    pub(super) life: Vec<Incarnation>,
    pub(super) id: Vec<u64>,
    /// Second of its start.
    pub(super) started_at: Vec<u32>,
    /// Second in which it began to serve; 0: with the run, or not yet.
    pub(super) up_at: Vec<u32>,
    /// Second of its first report, `None` if there was none: it reports each second from then on.
    reports_since: Vec<Option<u32>>,
    /// Second of its last report if it is dead, and not found out yet.
    silent_after: Vec<Option<u32>>,
    /// How many are.
    pub(super) silent: u32,
    /// Second of the last reports of all others.
    reported_at: u32,
    /// Sum of its producers' rates, as a share of the limit; 0 where it does not serve.
    pub(super) load: Vec<f32>,
    pub(super) producers: Vec<u32>,
    /// Moves under way from or to it.
    pub(super) moves: Vec<u32>,
    /// Load in the last seconds, by second modulo [`SAMPLES`].
    samples: [Vec<f32>; SAMPLES],
    producers_then: [Vec<u32>; SAMPLES],
    next_id: u64,
    pub(super) starting: u32,
    pub(super) up: u32,
    pub(super) draining: u32,
}

impl Relays {
    /// Asks for a relay; returns its slot.
    pub(super) fn start(&mut self, now: u32) -> usize {
        let free = self.life.iter().position(Option::is_none);
        let slot = free.unwrap_or_else(|| self.open_slot());
        self.next_id += 1;
        self.life[slot] = Some(RelayState::Starting);
        self.id[slot] = self.next_id;
        self.started_at[slot] = now;
        self.up_at[slot] = 0;
        self.reports_since[slot] = None;
        self.silent_after[slot] = None;
        self.load[slot] = 0.0;
        self.producers[slot] = 0;
        self.moves[slot] = 0;
        self.starting += 1;
        slot
    }

    fn open_slot(&mut self) -> usize {
        self.life.push(None);
        self.id.push(0);
        self.started_at.push(0);
        self.up_at.push(0);
        self.reports_since.push(None);
        self.silent_after.push(None);
        self.load.push(0.0);
        self.producers.push(0);
        self.moves.push(0);
        for second in 0..SAMPLES {
            self.samples[second].push(0.0);
            self.producers_then[second].push(0);
        }
        self.life.len() - 1
    }

    /// Goes on to the next state of its life, or is no more.
    pub(super) fn become_(&mut self, slot: usize, next: Incarnation) {
        for (state, step) in [(self.life[slot], u32::MAX), (next, 1)] {
            let count = match state {
                Some(RelayState::Starting) => &mut self.starting,
                Some(RelayState::Up) => &mut self.up,
                Some(RelayState::Draining) => &mut self.draining,
                Some(RelayState::Dead) | None => continue,
            };
            *count = count.wrapping_add(step);
        }
        self.life[slot] = next;
        if next.is_none() && self.silent_after[slot].take().is_some() {
            self.silent -= 1;
        }
    }

    pub(super) fn find(&self, id: u64) -> Option<usize> {
        (0..self.life.len()).find(|slot| self.id[*slot] == id && self.life[*slot].is_some())
    }

    pub(super) fn serves(&self, slot: usize) -> bool {
        matches!(self.life[slot], Some(RelayState::Up | RelayState::Draining))
            && !self.is_silent(slot)
    }

    /// Begins to report, with the next report of all.
    pub(super) fn begin_to_report(&mut self, slot: usize) {
        self.reports_since[slot] = Some(self.reported_at + 1);
    }

    /// Dies without a word.
    pub(super) fn fall_silent(&mut self, slot: usize) {
        if self.serves(slot) {
            self.silent += 1;
            self.silent_after[slot] = Some(self.reported_at);
        }
    }

    pub(super) fn is_silent(&self, slot: usize) -> bool {
        self.silent_after[slot].is_some()
    }

    /// Returns the second of its last report, and how many there were.
    fn reports(&self, slot: usize) -> Option<(u32, u32)> {
        let first = self.reports_since[slot]?;
        let last = self.silent_after[slot].unwrap_or(self.reported_at);
        (last >= first).then(|| (last, last - first + 1))
    }

    /// Returns the second of its last report; `None` if there was none.
    pub(super) fn last_report(&self, slot: usize) -> Option<u32> {
        self.reports(slot).map(|(last, _)| last)
    }

    pub(super) fn takes(&self, slot: usize) -> bool {
        self.life[slot] == Some(RelayState::Up) && !self.is_silent(slot)
    }

    /// Returns whether its last two reports say a load above that.
    pub(super) fn was_above(&self, slot: usize, share: f32) -> bool {
        let Some((last, count)) = self.reports(slot) else { return false };
        let sample = |back: usize| self.samples[(last as usize + SAMPLES - back) % SAMPLES][slot];
        // The first report makes no sample.
        count > 2 && sample(0) > share && sample(1) > share
    }

    /// Returns how many relays cost something.
    pub(super) fn paid(&self) -> u32 {
        self.starting + self.up + self.draining
    }

    /// Returns where the directory sends a producer (directory/producer.rs, `choose_relay`). Under
    /// policy `steady` the oldest with room for newcomers; else, or if there is none, the least
    /// loaded, then with the fewest producers, then the oldest.
    pub(super) fn choose(&self, policy: Policy) -> Option<usize> {
        let up = || (0..self.life.len()).filter(|slot| self.takes(*slot));
        if policy == Policy::Steady {
            let roomy = up().filter(|slot| f64::from(self.load[*slot]) < NEWCOMERS_BELOW);
            if let Some(oldest) = roomy.min_by_key(|slot| self.id[*slot]) {
                return Some(oldest);
            }
        }
        up().min_by(|a, b| {
            let load = self.load[*a].total_cmp(&self.load[*b]);
            load.then(self.producers[*a].cmp(&self.producers[*b]))
                .then(self.id[*a].cmp(&self.id[*b]))
        })
    }

    /// Every relay that serves reports, in each of that many seconds, the last of which is now.
    pub(super) fn report(&mut self, now: u32, seconds: u32) {
        for back in 0..seconds.min(SAMPLES as u32) {
            let second = (now - back) as usize % SAMPLES;
            self.samples[second].copy_from_slice(&self.load);
            self.producers_then[second].copy_from_slice(&self.producers);
        }
        self.reported_at = now;
    }

    /// Returns the last reports, oldest first: load, and producers. The first report has nothing to
    /// be compared with, so it makes no sample (directory/monitor.rs).
    pub(super) fn samples(&self, slot: usize) -> impl Iterator<Item = (f32, u32)> + '_ {
        let (last, reports) = self.reports(slot).unwrap_or_default();
        let count = (reports.saturating_sub(1) as usize).min(SAMPLES);
        (0..count).rev().map(move |back| {
            let second = (last as usize + SAMPLES - back) % SAMPLES;
            (self.samples[second][slot], self.producers_then[second][slot])
        })
    }
}
