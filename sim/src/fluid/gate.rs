//! When the planner need not be asked. The planner itself takes microseconds to see that there is nothing
//! to do; a million relays for a day are some ten thousand million such plans. A gated run looks at its
//! arrays each five seconds instead and asks after something happened, each ten seconds while something
//! may be due, and each minute otherwise.

use quelea_elastic::plan::Policy;

/// Seconds between two looks. The product's directory plans each second: a gated run is up to so much
/// later than it.
pub(super) const LOOK_S: u32 = 5;
/// Bounds of the planner's own decisions (plan/tuning.rs), widened a little: the gate may be wrong only by
/// asking in vain.
const HOT: f32 = 0.99;
const OVER: f32 = 1.0;
const WARM: f32 = 0.89;
const COLD: f32 = 0.36;
const DEFICIT: f32 = 0.70 * 1.1 * 0.99;
const SURPLUS: f32 = 0.65 * 1.01;
/// Seconds after something happened in which it is asked at each look: one sees five reports since, and one
/// the effect.
const STIRRED_S: u32 = 2 * LOOK_S;
const DUE_S: u32 = 10;
/// A surplus must last for minutes.
const SURPLUS_S: u32 = 30;
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
    /// From the loads of relays that take producers, their sum, and the relays that boot.
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

    /// Whether there is something new for the planner since those.
    fn differ(self, seen: Self) -> bool {
        let worse = self.hot > seen.hot || self.over > seen.over;
        let flags = |signs: Self| (signs.uneven, signs.deficit, signs.surplus);
        worse || flags(self) != flags(seen)
    }

    /// Seconds after which it is asked again.
    fn due_s(self) -> u32 {
        if self.hot > 0 || self.over > 0 || self.uneven || self.deficit {
            DUE_S
        } else if self.surplus {
            SURPLUS_S
        } else {
            IDLE_S
        }
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
        if policy == Policy::Steady {
            if signs.differ(self.seen) {
                self.stirred_at = now;
            }
            self.seen = signs;
        }
        let since = now - self.asked_at;
        let due = match policy {
            Policy::Steady => since >= signs.due_s(),
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
