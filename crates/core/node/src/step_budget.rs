//! How many counted steps a turn may have: as many as the core did in a millisecond lately. The broker
//! counts them and has no clock.

use std::time::Duration;

/// What one turn's counted work may take.
const TIME_PER_TURN: Duration = Duration::from_millis(1);

/// Turns with fewer steps say little of how long one takes.
const STEPS_MEASURED_MIN: u64 = 1_000;

/// Steps of a turn on a machine that is very slow, or does other things meanwhile. One routing key may
/// take half of them.
const STEPS_MIN: u64 = 10_000;
/// On one that is very fast, or counts what costs less than most.
const STEPS_MAX: u64 = 1_000_000;

/// A new measurement counts for one in so many: one that was interrupted should not decide.
const WEIGHT: u64 = 8;

/// The measured number of steps.
#[derive(Debug)]
pub(crate) struct StepBudget {
    steps: u64,
    /// Steps done until the last turn's end.
    done: u64,
}

impl StepBudget {
    /// Goes on from what the broker has without a measurement.
    pub(crate) const fn new(steps: u64) -> Self {
        Self { steps, done: 0 }
    }

    /// Measures a turn that has ended and took so long, with the input before it. `done`: the steps
    /// since the start. Returns how many the next turn may have.
    pub(crate) fn measure(&mut self, done: u64, elapsed: Duration) -> u64 {
        let steps = done - self.done;
        self.done = done;
        if steps >= STEPS_MEASURED_MIN {
            // What else the turn did counts too: the budget errs towards less.
            let elapsed_ns = elapsed.as_nanos().max(1);
            let in_time = u128::from(steps) * TIME_PER_TURN.as_nanos() / elapsed_ns;
            let in_time = u64::try_from(in_time).unwrap_or(STEPS_MAX).clamp(STEPS_MIN, STEPS_MAX);
            self.steps = (self.steps * (WEIGHT - 1) + in_time) / WEIGHT;
        }
        self.steps.clamp(STEPS_MIN, STEPS_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_has_as_many_steps_as_were_done_in_a_millisecond_lately() {
        let mut budget = StepBudget::new(50_000);
        let mut done = 0;
        let mut turns = |steps, took_us, count| {
            let mut last = 0;
            for _ in 0..count {
                done += steps;
                last = budget.measure(done, Duration::from_micros(took_us));
            }
            last
        };
        assert!((198_000..=200_000).contains(&turns(100_000, 500, 50)));
        // One turn that was interrupted changes little, and an idle one nothing.
        assert!(turns(100_000, 1_000_000, 1) > 170_000);
        let before = turns(0, 1, 1);
        assert_eq!(turns(999, 1_000_000, 100), before);
        assert_eq!(turns(100_000, 10_000_000, 100), STEPS_MIN);
        assert!(turns(100_000_000, 10, 100) > STEPS_MAX * 9 / 10);
    }
}
