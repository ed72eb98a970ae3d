//! A queue's producers as arrays: rates, and the moving averages that the monitor keeps of them.

/// Where a producer without a relay is.
pub(super) const NOWHERE: u32 = u32::MAX;
/// Weight of a second in the fast and the slow average (directory/monitor.rs: 10 s and 200 s).
const FAST: f32 = 1.0 / 10.0;
const SLOW: f32 = 1.0 / 200.0;

/// After so many seconds both are as old as their time.
const KNOWN_S: u32 = (1.0 / SLOW) as u32;

/// What is left of an average's distance to a rate after so many seconds at it.
const TABLE: usize = 128;
static FAST_KEPT: [f32; TABLE] = powers(1.0 - FAST);
static SLOW_KEPT: [f32; TABLE] = powers(1.0 - SLOW);

const fn powers(base: f32) -> [f32; TABLE] {
    let mut powers = [1.0; TABLE];
    let mut at = 1;
    while at < TABLE {
        powers[at] = powers[at - 1] * base;
        at += 1;
    }
    powers
}

/// All arrays have one entry for each slot; a slot without a producer has rate 0.
#[derive(Default)]
pub(super) struct Producers {
    pub(super) alive: Vec<bool>,
    /// Counts the producers that a slot had, so that what was to happen to one does not to the next.
    pub(super) life: Vec<u32>,
    /// Rate without burst and day, as a share of a relay's limit.
    pub(super) base: Vec<f32>,
    pub(super) burst: Vec<f32>,
    /// Rate now.
    pub(super) rate: Vec<f32>,
    pub(super) fast: Vec<f32>,
    pub(super) slow: Vec<f32>,
    /// Second in which it came: before it nothing is measured.
    came_at: Vec<u32>,
    /// Second up to which its averages are.
    measured_at: Vec<u32>,
    /// The relay's slot.
    pub(super) at: Vec<u32>,
    /// The relay's slot where it goes, or [`NOWHERE`].
    pub(super) to: Vec<u32>,
    /// Second of the last move; `None` if it never moved.
    pub(super) moved_at: Vec<Option<u32>>,
    free: Vec<u32>,
    pub(super) count: u32,
}

impl Producers {
    /// Takes in a producer; returns its slot.
    pub(super) fn join(&mut self, now: u32, base: f32, factor: f32) -> usize {
        let slot = self.free.pop().map_or_else(|| self.open_slot(), |slot| slot as usize);
        self.count += 1;
        self.alive[slot] = true;
        self.life[slot] += 1;
        self.base[slot] = base;
        self.burst[slot] = 1.0;
        self.rate[slot] = base * factor;
        self.fast[slot] = 0.0;
        self.slow[slot] = 0.0;
        // The second in which it comes is measured.
        self.came_at[slot] = now.saturating_sub(1);
        self.measured_at[slot] = now.saturating_sub(1);
        self.at[slot] = NOWHERE;
        self.to[slot] = NOWHERE;
        self.moved_at[slot] = None;
        slot
    }

    fn open_slot(&mut self) -> usize {
        self.alive.push(false);
        self.life.push(0);
        for array in
            [&mut self.base, &mut self.burst, &mut self.rate, &mut self.fast, &mut self.slow]
        {
            array.push(0.0);
        }
        self.came_at.push(0);
        self.measured_at.push(0);
        self.at.push(NOWHERE);
        self.to.push(NOWHERE);
        self.moved_at.push(None);
        self.alive.len() - 1
    }

    pub(super) fn leave(&mut self, slot: usize) {
        self.alive[slot] = false;
        self.rate[slot] = 0.0;
        self.base[slot] = 0.0;
        self.fast[slot] = 0.0;
        self.slow[slot] = 0.0;
        self.at[slot] = NOWHERE;
        self.to[slot] = NOWHERE;
        self.free.push(slot as u32);
        self.count -= 1;
    }

    pub(super) fn is(&self, slot: u32, life: u32) -> bool {
        self.alive[slot as usize] && self.life[slot as usize] == life
    }

    /// Brings all averages up to a second.
    pub(super) fn measure(&mut self, until: u32) {
        for slot in 0..self.rate.len() {
            self.measure_one(slot, until);
        }
    }

    /// Brings one producer's averages up to a second, as the monitor blends them second by second: while
    /// less is known than an average's time, it is the mean of what is known. Its rate has been the same
    /// since the last time, so that all these seconds are one step.
    pub(super) fn measure_one(&mut self, slot: usize, until: u32) {
        let seconds = until.saturating_sub(self.measured_at[slot]);
        if seconds == 0 {
            return;
        }
        let known = self.measured_at[slot] - self.came_at[slot];
        self.measured_at[slot] = until;
        let rate = self.rate[slot];
        if known >= KNOWN_S && seconds < TABLE as u32 {
            // As it is for nearly all of them.
            let (fast, slow) = (&mut self.fast[slot], &mut self.slow[slot]);
            *fast = rate + (*fast - rate) * FAST_KEPT[seconds as usize];
            *slow = rate + (*slow - rate) * SLOW_KEPT[seconds as usize];
            return;
        }
        for (average, weight) in [(&mut self.fast[slot], FAST), (&mut self.slow[slot], SLOW)] {
            *average = rate + (*average - rate) * left_over(known, seconds, weight);
        }
    }
}

/// Returns what is left of an average's distance to a rate after that many seconds at it, when it
/// is the average of `known` seconds.
fn left_over(known: u32, seconds: u32, weight: f32) -> f32 {
    let as_mean = (1.0 / weight) as u32;
    let after = known + seconds;
    if after <= as_mean {
        return known as f32 / after as f32;
    }
    if known >= as_mean {
        return kept(weight, seconds);
    }
    known as f32 / as_mean as f32 * kept(weight, after - as_mean)
}

fn kept(weight: f32, seconds: u32) -> f32 {
    (1.0 - weight).powi(seconds as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn averages_of_many_seconds_are_those_of_each_second() {
        let mut at_once = Producers::default();
        let mut stepwise = Producers::default();
        for producers in [&mut at_once, &mut stepwise] {
            producers.join(1, 0.5, 1.0);
        }
        let mut now = 0;
        for (seconds, rate) in [(3, 0.5), (30, 0.1), (250, 0.9), (1, 0.2), (400, 0.4)] {
            at_once.rate[0] = rate;
            stepwise.rate[0] = rate;
            for second in now + 1..=now + seconds {
                stepwise.measure(second);
            }
            now += seconds;
            at_once.measure(now);
            for (one, other) in [(&at_once.fast, &stepwise.fast), (&at_once.slow, &stepwise.slow)] {
                assert!((one[0] - other[0]).abs() < 1e-4, "{one:?} {other:?} after {now} s");
            }
        }
        assert!((at_once.slow[0] - 0.4).abs() > 1e-3, "the slow average still lags");
    }
}
