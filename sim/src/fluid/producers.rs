//! A queue's producers as arrays: rates, and the moving averages that the monitor keeps of them.

/// Where a producer without a relay is.
pub(super) const NOWHERE: u32 = u32::MAX;
/// Weight of a second in the fast and the slow average (directory/monitor.rs: 10 s and 200 s).
const FAST: f32 = 1.0 / 10.0;
const SLOW: f32 = 1.0 / 200.0;

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
    /// Seconds measured.
    age: Vec<f32>,
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
    /// Takes in a producer; gives its slot.
    pub(super) fn join(&mut self, base: f32, factor: f32) -> usize {
        let slot = self.free.pop().map_or_else(|| self.open_slot(), |slot| slot as usize);
        self.count += 1;
        self.alive[slot] = true;
        self.life[slot] += 1;
        self.base[slot] = base;
        self.burst[slot] = 1.0;
        self.rate[slot] = base * factor;
        self.fast[slot] = 0.0;
        self.slow[slot] = 0.0;
        self.age[slot] = 0.0;
        self.at[slot] = NOWHERE;
        self.to[slot] = NOWHERE;
        self.moved_at[slot] = None;
        slot
    }

    fn open_slot(&mut self) -> usize {
        self.alive.push(false);
        self.life.push(0);
        for array in [
            &mut self.base,
            &mut self.burst,
            &mut self.rate,
            &mut self.fast,
            &mut self.slow,
            &mut self.age,
        ] {
            array.push(0.0);
        }
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

    /// One second more in the averages, as the monitor blends them: while less is known than an average's
    /// time, it is the mean of what is known.
    pub(super) fn measure(&mut self) {
        let arrays = self.fast.iter_mut().zip(&mut self.slow).zip(&mut self.age).zip(&self.rate);
        for (((fast, slow), age), rate) in arrays {
            *age += 1.0;
            let first = 1.0 / *age;
            *fast += (rate - *fast) * first.max(FAST);
            *slow += (rate - *slow) * first.max(SLOW);
        }
    }

    /// What all are estimated to need: the higher of both averages. Eight sums at a time, which the
    /// compiler makes vectors of.
    pub(super) fn need(&self) -> f32 {
        const LANES: usize = 8;
        let mut sums = [0.0_f32; LANES];
        let (fast, fast_rest) = self.fast.as_chunks::<LANES>();
        let (slow, slow_rest) = self.slow.as_chunks::<LANES>();
        for (fast, slow) in fast.iter().zip(slow) {
            for lane in 0..LANES {
                sums[lane] += fast[lane].max(slow[lane]);
            }
        }
        let rest = fast_rest.iter().zip(slow_rest).map(|(fast, slow)| fast.max(*slow));
        sums.iter().sum::<f32>() + rest.sum::<f32>()
    }
}
