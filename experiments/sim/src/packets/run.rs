//! Playing a plan to its end, and what came of it.

use quelea_testkit::stream_network::Incarnation;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::packets::event::{Event, Signal};
use crate::packets::participant::Participant;
use crate::packets::plan::Plan;
use crate::packets::simulation::Simulation;

/// Milliseconds of quiet after the faults in which all has to come to rest: the provider sees a machine
/// that is gone without a word after 40 s, and tries that failed are up to a minute apart.
const REST_MS_MAX: u64 = 200_000;
/// Between two looks whether it has.
const CHECK_EVERY_MS: u64 = 250;
/// Then each producer publishes so many messages, which take at most so long.
const LAST_MESSAGES: u32 = 6;
const LAST_MS: u64 = 3_000;

/// What came of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// What was wrong first; `None`: nothing was.
    pub wrong: Option<String>,
    /// A sum over all that happened: the same for the same plan.
    pub trace: u64,
    /// Signals that machines took.
    pub steps: u64,
    /// Messages that were published.
    pub messages: u64,
    /// Messages that programs took.
    pub deliveries: u64,
    /// Messages that were announced to programs as missing.
    pub missing: u64,
    /// Milliseconds from the last fault until all was at rest.
    pub rest_ms: u64,
    /// From publishing to taking: the median, the 99th percentile, the longest, microseconds.
    pub latency_us: [u32; 3],
    /// The longest time from the decision to drain a relay to its end, milliseconds.
    pub drain_ms: u64,
    /// How often each kind of event was decided.
    pub events: BTreeMap<&'static str, u64>,
}

/// Plays a plan. `log`: prints what happens to standard error.
#[must_use]
pub fn play(plan: &Plan, log: bool) -> Outcome {
    let played = catch_unwind(AssertUnwindSafe(|| {
        let mut world = Simulation::new(plan.clone(), log);
        let rest_ms = world.play();
        world.outcome(rest_ms)
    }));
    played.unwrap_or_else(|cause| {
        let text = cause.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| cause.downcast_ref::<&str>().copied()).unwrap_or("no text");
        Outcome { wrong: Some(format!("panic: {text}")), ..Outcome::default() }
    })
}

impl Simulation {
    /// Plays to the end. Returns how long it took until all was at rest.
    fn play(&mut self) -> u64 {
        let end_ms = self.plan.publish_ms.1;
        self.run_until(end_ms * 1_000);
        let mut at_ms = end_ms;
        while let Some(restless) = self.restless() {
            at_ms += CHECK_EVERY_MS;
            if at_ms > end_ms + REST_MS_MAX {
                self.check.wrong(format!("it does not come to rest: {restless}"));
            }
            self.run_until(at_ms * 1_000);
            if !self.check.wrong.is_empty() {
                return at_ms - end_ms;
            }
        }
        self.last_messages(at_ms);
        let promise = self.promise();
        if self.check.wrong.is_empty() {
            self.check.end(promise);
        }
        at_ms - end_ms
    }

    /// All flows again: what is published now is there soon.
    fn last_messages(&mut self, at_ms: u64) {
        for node in 0..self.machines.len() {
            let machine = &self.machines[node];
            if matches!(machine.participant, Participant::Producer(_))
                && let Some(Incarnation { number, .. }) = machine.current_incarnation(node)
            {
                let signal = Signal::Publish(LAST_MESSAGES);
                self.agenda.after(0, Event::Signal(Incarnation { node, number }, signal));
            }
        }
        self.run_until((at_ms + LAST_MS) * 1_000);
        if let Some(restless) = self.restless() {
            self.check.wrong(format!("{LAST_MS} ms after the last message: {restless}"));
        }
    }

    fn outcome(&self, rest_ms: u64) -> Outcome {
        Outcome {
            wrong: self.check.wrong.first().cloned(),
            trace: self.check.trace.sum(),
            steps: self.steps,
            messages: self.check.published_in_all(),
            deliveries: self.check.deliveries,
            missing: self.check.missing,
            rest_ms,
            latency_us: self.check.latency_us(),
            drain_ms: self.check.drain_ms,
            events: self.check.events.clone(),
        }
    }
}
