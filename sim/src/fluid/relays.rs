//! A queue's relays as arrays.

use quelea_elastic::plan::{NEWCOMERS_BELOW, Policy, RelayState};

/// Samples of a relay that the planner is shown: it looks at no more.
pub(super) const SAMPLES: usize = 5;

/// Free, or where the relay is in its life.
pub(super) type Life = Option<RelayState>;

#[derive(Default)]
pub(super) struct Relays {
    pub(super) life: Vec<Life>,
    pub(super) id: Vec<u64>,
    /// Second of its start.
    pub(super) started_at: Vec<u32>,
    /// Second in which it began to serve; 0: with the run, or not yet.
    pub(super) up_at: Vec<u32>,
    /// Second of its last report; `None` if there was none.
    pub(super) reported_at: Vec<Option<u32>>,
    /// Dead, and not found out yet.
    pub(super) silent: Vec<bool>,
    /// Sum of its producers' rates, as a share of the limit; 0 where it does not serve.
    pub(super) load: Vec<f32>,
    pub(super) producers: Vec<u32>,
    /// Moves under way from or to it.
    pub(super) moves: Vec<u32>,
    /// Load in the last seconds, by second modulo [`SAMPLES`].
    samples: [Vec<f32>; SAMPLES],
    producers_then: [Vec<u32>; SAMPLES],
    /// Reports so far.
    reports: Vec<u32>,
    next_id: u64,
    pub(super) starting: u32,
    pub(super) up: u32,
    pub(super) draining: u32,
}

impl Relays {
    /// Asks for a relay; gives its slot.
    pub(super) fn start(&mut self, now: u32) -> usize {
        let free = self.life.iter().position(Option::is_none);
        let slot = free.unwrap_or_else(|| self.open_slot());
        self.next_id += 1;
        self.life[slot] = Some(RelayState::Starting);
        self.id[slot] = self.next_id;
        self.started_at[slot] = now;
        self.up_at[slot] = 0;
        self.reported_at[slot] = None;
        self.silent[slot] = false;
        self.load[slot] = 0.0;
        self.producers[slot] = 0;
        self.moves[slot] = 0;
        self.reports[slot] = 0;
        self.starting += 1;
        slot
    }

    fn open_slot(&mut self) -> usize {
        self.life.push(None);
        self.id.push(0);
        self.started_at.push(0);
        self.up_at.push(0);
        self.reported_at.push(None);
        self.silent.push(false);
        self.load.push(0.0);
        self.producers.push(0);
        self.moves.push(0);
        self.reports.push(0);
        for second in 0..SAMPLES {
            self.samples[second].push(0.0);
            self.producers_then[second].push(0);
        }
        self.life.len() - 1
    }

    /// Goes on to the next state of its life, or is no more.
    pub(super) fn become_(&mut self, slot: usize, next: Life) {
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
    }

    pub(super) fn find(&self, id: u64) -> Option<usize> {
        (0..self.life.len()).find(|slot| self.id[*slot] == id && self.life[*slot].is_some())
    }

    pub(super) fn serves(&self, slot: usize) -> bool {
        matches!(self.life[slot], Some(RelayState::Up | RelayState::Draining)) && !self.silent[slot]
    }

    /// Relays that cost something.
    pub(super) fn paid(&self) -> u32 {
        self.starting + self.up + self.draining
    }

    /// Where the directory sends a producer (directory/producer.rs, `choose_relay`). Under policy `steady`
    /// the oldest with room for newcomers; else, or if there is none, the least loaded, then with the
    /// fewest producers, then the oldest.
    pub(super) fn choose(&self, policy: Policy) -> Option<usize> {
        let up = || {
            (0..self.life.len())
                .filter(|slot| self.life[*slot] == Some(RelayState::Up) && !self.silent[*slot])
        };
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
        for slot in 0..self.life.len() {
            if self.serves(slot) {
                self.reported_at[slot] = Some(now);
                self.reports[slot] += seconds;
            }
        }
    }

    /// The last reports, oldest first: load, and producers. The first report has nothing to be compared
    /// with, so it makes no sample (directory/monitor.rs).
    pub(super) fn samples(&self, slot: usize) -> impl Iterator<Item = (f32, u32)> + '_ {
        let last = self.reported_at[slot].unwrap_or(0) as usize;
        let count = (self.reports[slot].saturating_sub(1) as usize).min(SAMPLES);
        (0..count).rev().map(move |back| {
            let second = (last + SAMPLES - back) % SAMPLES;
            (self.samples[second][slot], self.producers_then[second][slot])
        })
    }
}
