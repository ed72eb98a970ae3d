//! When the planner need not be asked. The planner itself takes microseconds to see that there is nothing
//! to do; a million relays for a day are some hundred million such plans. The gate looks at the arrays
//! instead and asks each second after something happened, each ten while something may be due, and each
//! minute otherwise.

use quelea_elastic::plan::Policy;

/// Bounds of the planner's own decisions (plan/tuning.rs), widened a little: the gate may be wrong only by
/// asking in vain.
const HOT: f32 = 0.79;
const OVER: f32 = 1.0;
const WARM: f32 = 0.69;
const COLD: f32 = 0.31;
const DEFICIT: f32 = 0.60 * 1.1 * 0.99;
const SURPLUS: f32 = 0.50 * 1.01;
/// Seconds after something happened in which it is asked each second: five reports, and one to see the
/// effect in.
const STIRRED_S: u32 = 6;
const DUE_S: u32 = 10;
const IDLE_S: u32 = 60;

/// What of a queue decides whether the planner could find something to do.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Signs {
    hot: u32,
    over: u32,
    uneven: bool,
    deficit: bool,
    surplus: bool,
}

impl Signs {
    /// From the loads of relays that take producers, what all producers need, and the relays that boot.
    pub(super) fn read(loads: impl Iterator<Item = f32>, need: f32, starting: u32) -> Self {
        let (mut up, mut warm, mut cold) = (0_u32, 0_u32, 0_u32);
        let mut signs = Self::default();
        for load in loads {
            up += 1;
            signs.hot += u32::from(load > HOT);
            signs.over += u32::from(load > OVER);
            warm += u32::from(load > WARM);
            cold += u32::from(load < COLD);
        }
        signs.uneven = warm > 0 && cold > 0;
        signs.deficit = need > DEFICIT * (up + starting) as f32;
        signs.surplus = up > 1 && need < SURPLUS * (up - 1) as f32;
        signs
    }

    fn is_quiet(self) -> bool {
        self == Self::default()
    }
}

#[derive(Default)]
pub(super) struct Gate {
    seen: Signs,
    stirred_at: u32,
    asked_at: u32,
}

impl Gate {
    /// Something happened to the queue.
    pub(super) fn stir(&mut self, now: u32) {
        self.stirred_at = now;
    }

    /// Whether the planner is asked in this second.
    pub(super) fn opens(&mut self, now: u32, signs: Signs, policy: Policy) -> bool {
        if signs != self.seen && policy == Policy::Steady {
            self.seen = signs;
            self.stirred_at = now;
        }
        let since = now - self.asked_at;
        let due = match policy {
            Policy::Steady => since >= if signs.is_quiet() { IDLE_S } else { DUE_S },
            // Its rules look at whole minutes.
            Policy::Paper => now.is_multiple_of(IDLE_S),
        };
        let opens = due || now - self.stirred_at <= STIRRED_S;
        if opens {
            self.asked_at = now;
        }
        opens
    }
}
