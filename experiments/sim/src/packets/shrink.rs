//! A smaller plan that fails too: faults and commands left out one by one, then made shorter.

use crate::packets::plan::Plan;
use crate::packets::run::play;

/// Runs that may be spent on it.
const RUNS_MAX: u32 = 400;

/// Returns a plan that fails, with no fault or command that could be left out.
#[must_use]
pub fn shrink(plan: &Plan) -> Plan {
    let mut best = plan.clone();
    let mut runs = 0;
    let mut fails = |plan: &Plan| {
        runs += 1;
        runs <= RUNS_MAX && play(plan, false).wrong.is_some()
    };
    loop {
        let before = (best.faults.clone(), best.commands.clone());
        for index in (0..best.commands.len()).rev() {
            let mut smaller = best.clone();
            smaller.commands.remove(index);
            if fails(&smaller) {
                best = smaller;
            }
        }
        for index in (0..best.faults.len()).rev() {
            let mut smaller = best.clone();
            smaller.faults.remove(index);
            if fails(&smaller) {
                best = smaller;
            }
        }
        for index in 0..best.faults.len() {
            let mut smaller = best.clone();
            let Some(ms) = smaller.faults[index].kind.ms_mut() else { continue };
            *ms /= 2;
            if *ms > 0 && fails(&smaller) {
                best = smaller;
            }
        }
        if before == (best.faults.clone(), best.commands.clone()) {
            return best;
        }
    }
}
