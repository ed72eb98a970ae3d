//! When the planner need not be asked. The planner itself takes microseconds to see that there is nothing
//! to do; a million relays for a day are some ten thousand million such plans. A gated run looks at its
//! arrays each five seconds instead. It asks when it sees what the planner acts on, and again ever more
//! seldom while that stays as it is and is left alone.

use quelea_elastic_core::plan::{self, Policy};

use super::relays::Relays;

/// Seconds between two looks. The product's directory plans each second: a gated run is at least up to so
/// much later than it.
pub(super) const CHECK_EVERY_S: u32 = 5;
/// Bounds of the planner's own decisions, some widened a little. It asks in vain at times, and late where
/// the planner's averages show more than what is there now.
const HOT: f32 = plan::HOT as f32;
const WARM: f32 = plan::WARM as f32 - 0.01;
const COLD: f32 = plan::COLD as f32 + 0.01;
const DEFICIT: f32 = (plan::TARGET * plan::DEFICIT) as f32 * 0.99;
/// Below it the planner's averages, which are slow to fall, may see a deficit.
const TIGHT: f32 = DEFICIT * 0.93;
const SURPLUS: f32 = (plan::TARGET - plan::SURPLUS) as f32 * 1.01;
/// What hurts is asked about again after so long, and then after twice as long each time: the averages
/// rise, room is found, a burst lasts.
const AGAIN_MAX_S: u32 = 6 * CHECK_EVERY_S;
/// What must last for minutes before the planner acts on it is shown to it that often.
const LASTING_S: u32 = 30;
const SURPLUS_S: u32 = 90;
const IDLE_S: u32 = 300;
/// Policy `paper`: its rules look at whole minutes, and at what happened since.
const PAPER_S: u32 = 60;
const PAPER_STIRRED_S: u32 = 2 * CHECK_EVERY_S;

/// Asks after one about something hot, or after an action: the first shows the planner that it is over, the
/// second that the loads are down. Else a relay stays one that has been hot for long.
const RESTLESS_ASKS: u8 = 2;

/// Returns a number without a pattern for each relay, so that sums of them tell sets apart.
const fn mixed(relay: u64) -> u64 {
    let mixed = relay.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

/// What of a queue decides whether the planner could find something to do.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Signs {
    /// Relays that are hot by their reports.
    hot: u32,
    /// Which, as a sum over them.
    hot_ones: u64,
    /// Relays that drain.
    draining: u32,
    deficit: bool,
    tight: bool,
    /// Relays that boot: some never come.
    starting: bool,
    uneven: bool,
    surplus: bool,
}

impl Signs {
    pub(super) fn read(relays: &Relays) -> Self {
        let (mut warm, mut cold, mut need) = (0_u32, 0_u32, 0.0);
        let mut signs =
            Self { draining: relays.draining, starting: relays.starting > 0, ..Self::default() };
        for (slot, load) in relays.load.iter().enumerate() {
            need += load;
            if relays.takes(slot) {
                warm += u32::from(*load > WARM);
                cold += u32::from(*load < COLD);
                if *load > HOT && relays.was_above(slot, HOT) {
                    signs.hot += 1;
                    signs.hot_ones = signs.hot_ones.wrapping_add(mixed(relays.id[slot]));
                }
            }
        }
        let up = relays.up;
        signs.uneven = warm > 0 && cold > 0;
        signs.deficit = need > DEFICIT * (up + relays.starting) as f32;
        signs.tight = need > TIGHT * (up + relays.starting) as f32;
        signs.surplus = up > 1 && need < SURPLUS * (up - 1) as f32;
        signs
    }

    /// Returns whether there is something new that hurts. One hot relay less is no news.
    fn hurt_more(self, seen: Self) -> bool {
        let others = self.hot > 0 && self.hot == seen.hot && self.hot_ones != seen.hot_ones;
        self.hot > seen.hot || others || (self.deficit && !seen.deficit)
    }

    const fn hurt(self) -> bool {
        self.hot > 0 || self.deficit
    }

    /// Returns the seconds after which it is asked again for what does not hurt.
    const fn due_s(self, asked: Self) -> u32 {
        if self.draining > 0 {
            CHECK_EVERY_S
        } else if self.uneven || self.tight || self.surplus != asked.surplus {
            LASTING_S
        } else if self.surplus || self.starting {
            SURPLUS_S
        } else {
            IDLE_S
        }
    }
}

#[derive(Default)]
pub(super) struct Gate {
    /// At the last look.
    seen: Signs,
    /// When it was asked last.
    asked: Signs,
    asked_at: u32,
    /// Seconds from the last time to the next one for what hurts.
    again_s: u32,
    stirred_at: u32,
    /// It acted, or relays came or went.
    acted: bool,
    /// Asks that follow within [`LASTING_S`] each, whatever is to be seen.
    restless: u8,
}

impl Gate {
    /// Something happened to the queue's relays, or the planner acts.
    pub(super) fn stir(&mut self, now: u32) {
        self.stirred_at = now;
        self.acted = true;
    }

    /// Decides whether the planner is asked in this second.
    pub(super) fn opens(&mut self, now: u32, relays: &Relays, policy: Policy) -> bool {
        match policy {
            Policy::Steady => self.opens_for(now, Signs::read(relays)),
            Policy::Paper => {
                now.is_multiple_of(PAPER_S) || now - self.stirred_at <= PAPER_STIRRED_S
            }
        }
    }

    fn opens_for(&mut self, now: u32, signs: Signs) -> bool {
        if signs.hurt_more(self.seen) || (signs.hurt() && std::mem::take(&mut self.acted)) {
            self.again_s = 0;
        }
        self.seen = signs;
        let since = now - self.asked_at;
        let hurts = signs.hurt() && since >= self.again_s;
        let due_s = signs.due_s(self.asked);
        let due_s = if self.restless > 0 { due_s.min(LASTING_S) } else { due_s };
        if !hurts && since < due_s {
            return false;
        }
        self.restless = if signs.hot > 0 || std::mem::take(&mut self.acted) {
            RESTLESS_ASKS
        } else {
            self.restless.saturating_sub(1)
        };
        self.again_s = (self.again_s * 2).clamp(CHECK_EVERY_S, AGAIN_MAX_S);
        (self.asked, self.asked_at) = (signs, now);
        true
    }
}
