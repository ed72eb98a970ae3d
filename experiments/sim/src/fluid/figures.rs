//! What is counted of a run.

use std::collections::VecDeque;
use std::ops::AddAssign;

/// Out and in, or in and out, within that many seconds is a flap (issue: 15 minutes).
const FLAP_S: u32 = 900;

/// The figures of a run, of one queue or summed over many.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// Moves of producers that were begun.
    pub moves: u64,
    /// Of these, off relays that drain.
    pub drain_moves: u64,
    /// To relays that have begun to serve in the last two minutes, but for those off relays that drain.
    pub fill_moves: u64,
    /// The others: off relays that are too loaded.
    pub relief_moves: u64,
    /// The rates of the producers that moved, summed, in relays' limits: how much traffic was disturbed.
    pub moved_load: f64,
    /// Relays that were started for load.
    pub started: u64,
    /// Relays that were drained.
    pub drained: u64,
    /// Drains within 15 minutes of a start for load.
    pub flaps: u64,
    /// Starts for load within 15 minutes of a drain.
    pub rebounds: u64,
    /// Relays that died.
    pub crashes: u64,
    /// Producers that the directory gave another relay because theirs had died.
    pub rehoused: u64,
    /// Starts from which no relay came.
    pub boot_failures: u64,
    /// Producers that came.
    pub joins: u64,
    /// Relay-seconds that were paid for.
    pub relay_s: u64,
    /// The same if every relay could be filled to its limit and none were ever missing.
    pub ideal_relay_s: u64,
    /// Relay-seconds above the limit.
    pub overloaded_s: u64,
    /// Load above the limit or without a relay, in relays' limits times seconds.
    pub lost_s: f64,
    /// Seconds in which a queue broke its agreement: a relay above the limit, or a producer without one.
    pub breach_s: u64,
    /// Seconds played, over all queues.
    pub queue_s: u64,
    /// Cost, millionths.
    pub cost_micros: f64,
    /// Times that the planner was asked.
    pub plans: u64,
    /// The same hour by hour, for plots.
    pub hours: Vec<Hour>,
}

/// An hour's figures; means are over its seconds, summed over queues.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hour {
    /// Seconds played of one queue.
    pub seconds: u32,
    /// Relay-seconds.
    pub relay_s: f64,
    /// Producer-seconds.
    pub producer_s: f64,
    /// Load in relays' limits times seconds.
    pub load_s: f64,
    /// The highest load of a relay in any second.
    pub load_max: f64,
    /// Moves begun.
    pub moves: u64,
    /// Relays started for load, and drained.
    pub scaled: (u64, u64),
    /// Seconds of broken agreements.
    pub breach_s: u64,
    /// Cost, millionths.
    pub cost_micros: f64,
}

impl AddAssign<&Self> for Figures {
    fn add_assign(&mut self, other: &Self) {
        self.moves += other.moves;
        self.drain_moves += other.drain_moves;
        self.fill_moves += other.fill_moves;
        self.relief_moves += other.relief_moves;
        self.moved_load += other.moved_load;
        self.started += other.started;
        self.drained += other.drained;
        self.flaps += other.flaps;
        self.rebounds += other.rebounds;
        self.crashes += other.crashes;
        self.rehoused += other.rehoused;
        self.boot_failures += other.boot_failures;
        self.joins += other.joins;
        self.relay_s += other.relay_s;
        self.ideal_relay_s += other.ideal_relay_s;
        self.overloaded_s += other.overloaded_s;
        self.lost_s += other.lost_s;
        self.breach_s += other.breach_s;
        self.queue_s += other.queue_s;
        self.cost_micros += other.cost_micros;
        self.plans += other.plans;
        if self.hours.len() < other.hours.len() {
            self.hours.resize(other.hours.len(), Hour::default());
        }
        for (hour, more) in self.hours.iter_mut().zip(&other.hours) {
            *hour += more;
        }
    }
}

impl AddAssign<&Self> for Hour {
    fn add_assign(&mut self, other: &Self) {
        self.seconds = self.seconds.max(other.seconds);
        self.relay_s += other.relay_s;
        self.producer_s += other.producer_s;
        self.load_s += other.load_s;
        self.load_max = self.load_max.max(other.load_max);
        self.moves += other.moves;
        self.scaled.0 += other.scaled.0;
        self.scaled.1 += other.scaled.1;
        self.breach_s += other.breach_s;
        self.cost_micros += other.cost_micros;
    }
}

/// What a move is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cause {
    /// Its relay drains.
    Drain,
    /// A relay has just begun to serve.
    Fill,
    /// Its relay is too loaded.
    Relief,
}

/// What one second of a queue shows.
pub(super) struct Second {
    pub(super) relays: u32,
    pub(super) producers: u32,
    pub(super) load: f64,
    pub(super) load_max: f32,
    pub(super) overloaded: u32,
    /// Load that no relay takes.
    pub(super) lost: f64,
    pub(super) homeless: bool,
    pub(super) cost_micros: f64,
}

/// Counts one queue's figures.
#[derive(Default)]
pub(super) struct Counter {
    pub(super) sum: Figures,
    starts: VecDeque<u32>,
    drains: VecDeque<u32>,
}

impl Counter {
    /// Counts that many seconds that were all like this one, within an hour; the last is now.
    pub(super) fn observe(&mut self, now: u32, second: &Second, seconds: u32) {
        let (times, part) = (u64::from(seconds), f64::from(seconds));
        let breach = u64::from(second.overloaded > 0 || second.homeless) * times;
        let sum = &mut self.sum;
        sum.queue_s += times;
        sum.relay_s += u64::from(second.relays) * times;
        sum.ideal_relay_s += second.load.ceil().max(1.0) as u64 * times;
        sum.overloaded_s += u64::from(second.overloaded) * times;
        sum.lost_s += second.lost * part;
        sum.breach_s += breach;
        sum.cost_micros += second.cost_micros * part;
        let hour = self.hour(now);
        hour.seconds += seconds;
        hour.relay_s += f64::from(second.relays) * part;
        hour.producer_s += f64::from(second.producers) * part;
        hour.load_s += second.load * part;
        hour.load_max = hour.load_max.max(f64::from(second.load_max));
        hour.breach_s += breach;
        hour.cost_micros += second.cost_micros * part;
    }

    fn hour(&mut self, now: u32) -> &mut Hour {
        let at = (now.saturating_sub(1) / 3_600) as usize;
        let hours = &mut self.sum.hours;
        if hours.len() <= at {
            hours.resize(at + 1, Hour::default());
        }
        &mut hours[at]
    }

    pub(super) fn moved(&mut self, now: u32, rate: f32, cause: Cause) {
        self.sum.moves += 1;
        match cause {
            Cause::Drain => self.sum.drain_moves += 1,
            Cause::Fill => self.sum.fill_moves += 1,
            Cause::Relief => self.sum.relief_moves += 1,
        }
        self.sum.moved_load += f64::from(rate);
        self.hour(now).moves += 1;
    }

    /// A relay was started for load.
    pub(super) fn scaled_out(&mut self, now: u32) {
        self.sum.started += 1;
        self.sum.rebounds += u64::from(take_recent(&mut self.drains, now));
        self.starts.push_back(now);
        self.hour(now).scaled.0 += 1;
    }

    /// A relay was told to drain.
    pub(super) fn scaled_in(&mut self, now: u32) {
        self.sum.drained += 1;
        self.sum.flaps += u64::from(take_recent(&mut self.starts, now));
        self.drains.push_back(now);
        self.hour(now).scaled.1 += 1;
    }
}

/// Takes a contrary deed that was done within [`FLAP_S`], so that each such deed counts once.
/// Returns whether there was one.
fn take_recent(deeds: &mut VecDeque<u32>, now: u32) -> bool {
    deeds.retain(|at| now - at < FLAP_S);
    deeds.pop_front().is_some()
}
