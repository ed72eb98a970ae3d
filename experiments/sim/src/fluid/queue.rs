//! One queue from beginning to end.

use std::f64::consts::TAU;

use fastrand::Rng;
use quelea_elastic_core::plan::{History, RelayState, Snapshot};
use quelea_testkit::Agenda;

use super::chance;
use super::events::{self, Event};
use super::figures::{Counter, Figures, Second};
use super::gate::{CHECK_EVERY_S, Gate};
use super::producers::{NOWHERE, Producers};
use super::relays::Relays;
use super::scenario::Scenario;
use crate::Seed;

/// Seconds between two looks at the day's curve.
const DAY_STEP_S: f64 = 60.0;
/// How long a burst of the whole queue lasts, on average, seconds.
const FLASH_S: f64 = 300.0;
/// Where in its day a queue may be, as a part of the day: time zones of one continent.
const ZONES: f64 = 0.25;
/// A relay's death is seen by its connection and a client within a second; but one that lies dead with an
/// open connection only when reports are missing, which is so for one of that many.
const DEAD_BUT_CONNECTED: f64 = 0.1;
const FOUND_S: (f64, f64) = (1.0, 4.0);
/// Load at which a queue's first relays are.
const FIRST_LOAD: f64 = 0.6;

pub(super) struct Queue<'a> {
    pub(super) scenario: &'a Scenario,
    /// What the load draws from: the same under any policy.
    rng: Rng,
    /// What relays' lives draw from.
    fate: Rng,
    pub(super) now: u32,
    zone: f64,
    flash: f64,
    /// By what all rates are multiplied now.
    factor: f64,
    pub(super) producers: Producers,
    pub(super) relays: Relays,
    pub(super) events: Agenda<Event>,
    /// Slots of the producers that move.
    pub(super) moving: Vec<u32>,
    /// Slots of the producers that no relay could be found for.
    homeless: Vec<u32>,
    pub(super) generation: u64,
    pub(super) history: History,
    pub(super) snapshot: Snapshot,
    pub(super) spent_micros: f64,
    pub(super) gate: Gate,
    pub(super) counter: Counter,
    /// Seconds up to now that were all like this one, and are not in the figures yet.
    uncounted_s: u32,
}

/// Plays a queue's life. Same seed and scenario, same figures.
#[must_use]
pub fn play(seed: Seed, scenario: &Scenario) -> Figures {
    let mut queue = Queue::new(seed, scenario);
    while queue.now < scenario.seconds {
        queue.tick();
    }
    queue.count();
    queue.counter.sum
}

impl<'a> Queue<'a> {
    fn new(seed: Seed, scenario: &'a Scenario) -> Self {
        let mut rng = seed.rng("load");
        let zone = (rng.f64() - 0.5) * ZONES;
        let snapshot = Snapshot {
            generation: 0,
            relays: Vec::new(),
            producers: Vec::new(),
            listeners: scenario.listeners,
            relay_cost_per_hour_micros: scenario.relay_cost_per_hour_micros,
            spent_this_hour_micros: 0,
        };
        let mut queue = Self {
            scenario,
            rng,
            fate: seed.rng("relays"),
            now: 0,
            zone,
            flash: 1.0,
            factor: 1.0,
            producers: Producers::default(),
            relays: Relays::default(),
            events: Agenda::new(),
            moving: Vec::new(),
            homeless: Vec::new(),
            generation: 1,
            history: History::default(),
            snapshot,
            spent_micros: 0.0,
            gate: Gate::default(),
            counter: Counter::default(),
            uncounted_s: 0,
        };
        queue.begin();
        queue
    }

    /// The first producers, and relays for them.
    fn begin(&mut self) {
        self.factor = self.day();
        let rates: Vec<f32> = (0..self.scenario.producers).map(|_| self.draw_rate()).collect();
        let load = rates.iter().copied().map(f64::from).sum::<f64>() * self.factor;
        let least = self.scenario.sla.relays_min;
        let relays = ((load / FIRST_LOAD).ceil() as u32).clamp(least, self.scenario.sla.relays_max);
        for _ in 0..relays {
            let slot = self.relays.start(0);
            self.serve(slot);
        }
        for rate in rates {
            self.join(rate);
        }
        self.counter.sum.joins = 0;
        events::enter(&mut self.events, 0, DAY_STEP_S, Event::Day);
        self.enter_join();
        self.enter_flash();
    }

    /// What was begun is done, what happens happens, all is measured, and planned on. Seconds in which
    /// nothing is to happen go by at once before it.
    fn tick(&mut self) {
        if self.now.is_multiple_of(3_600) {
            self.count();
        }
        let idle = self.idle_s();
        if idle > 0 {
            self.now += idle;
            self.relays.report(self.now, idle);
            self.uncounted_s += idle;
        }
        let next = self.now + 1;
        if next.is_multiple_of(3_600) || self.happens_at(next) {
            self.count();
        }
        self.now = next;
        if self.now.is_multiple_of(3_600) {
            self.spent_micros = 0.0;
        }
        self.finish_moves();
        while let Some(event) = events::take(&mut self.events, self.now) {
            self.happen(event);
        }
        self.house_all();
        self.relays.report(self.now, 1);
        self.uncounted_s += 1;
        let gated = self.scenario.gated;
        if !gated
            || (self.now.is_multiple_of(CHECK_EVERY_S)
                && self.gate.opens(self.now, &self.relays, self.scenario.policy))
        {
            self.count();
            self.producers.measure(self.now);
            self.plan_and_act();
        }
    }

    /// Returns the seconds until the one before which nothing happens. No hour ends within them.
    fn idle_s(&self) -> u32 {
        if !self.scenario.gated || !self.moving.is_empty() || !self.homeless.is_empty() {
            return 0;
        }
        let look = (self.now / CHECK_EVERY_S + 1) * CHECK_EVERY_S;
        let next = events::next_at(&self.events).map_or(look, |at| at.min(look));
        next.min(self.scenario.seconds).saturating_sub(self.now + 1)
    }

    fn happens_at(&self, second: u32) -> bool {
        let is_due = events::next_at(&self.events).is_some_and(|at| at <= second);
        is_due || !self.moving.is_empty() || !self.homeless.is_empty()
    }

    fn finish_moves(&mut self) {
        for slot in std::mem::take(&mut self.moving) {
            let producer = slot as usize;
            let to = std::mem::replace(&mut self.producers.to[producer], NOWHERE);
            if to == NOWHERE {
                continue;
            }
            let from = self.producers.at[producer];
            self.end_move(from);
            self.end_move(to);
            self.place(producer, to);
            self.producers.moved_at[producer] = Some(self.now);
            self.generation += 1;
            self.gate.stir(self.now);
        }
    }

    fn end_move(&mut self, relay: u32) {
        let moves = &mut self.relays.moves[relay as usize];
        *moves = moves.saturating_sub(1);
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Day => {
                self.revalue();
                events::enter(&mut self.events, self.now, DAY_STEP_S, Event::Day);
            }
            Event::Join => {
                let rate = self.draw_rate();
                self.join(rate);
                self.enter_join();
            }
            Event::Leave { slot, life } if self.producers.is(slot, life) => self.leave(slot),
            Event::Burst { slot, life } if self.producers.is(slot, life) => {
                self.producers.burst[slot as usize] = chance::burst(&mut self.rng);
                self.revalue_one(slot as usize);
                let lasts = chance::waiting(&mut self.rng, self.scenario.burst_s);
                events::enter(&mut self.events, self.now, lasts, Event::Calm { slot, life });
            }
            Event::Calm { slot, life } if self.producers.is(slot, life) => {
                self.producers.burst[slot as usize] = 1.0;
                self.revalue_one(slot as usize);
                self.enter_burst(slot, life);
            }
            Event::Flash => {
                self.flash = chance::flash(&mut self.rng);
                self.revalue();
                let lasts = chance::waiting(&mut self.rng, FLASH_S);
                events::enter(&mut self.events, self.now, lasts, Event::FlashOver);
            }
            Event::FlashOver => {
                self.flash = 1.0;
                self.revalue();
                self.enter_flash();
            }
            Event::Booted { relay } => {
                if let Some(slot) = self.relays.find(relay)
                    && self.relays.life[slot] == Some(RelayState::Starting)
                {
                    self.serve(slot);
                }
            }
            Event::Crash { relay } => self.crash(relay),
            Event::Found { relay } => {
                if let Some(slot) = self.relays.find(relay) {
                    self.fail_over(slot);
                }
            }
            Event::Leave { .. } | Event::Burst { .. } | Event::Calm { .. } => {}
        }
    }

    fn day(&self) -> f64 {
        let turn = f64::from(self.now) / self.scenario.day_s + self.zone;
        1.0 + self.scenario.day_swing * (TAU * turn).sin()
    }

    fn draw_rate(&mut self) -> f32 {
        chance::rate(&mut self.rng, self.scenario.mean_rate, self.scenario.rate_max)
    }

    fn enter_join(&mut self) {
        let mean = self.scenario.stay_s / f64::from(self.scenario.producers.max(1));
        let wait = chance::waiting(&mut self.rng, mean);
        events::enter(&mut self.events, self.now, wait, Event::Join);
    }

    fn enter_flash(&mut self) {
        if self.scenario.flash_every_s > 0.0 {
            let wait = chance::waiting(&mut self.rng, self.scenario.flash_every_s);
            events::enter(&mut self.events, self.now, wait, Event::Flash);
        }
    }

    fn enter_burst(&mut self, slot: u32, life: u32) {
        if self.scenario.burst_every_s > 0.0 {
            let wait = chance::waiting(&mut self.rng, self.scenario.burst_every_s);
            events::enter(&mut self.events, self.now, wait, Event::Burst { slot, life });
        }
    }

    fn join(&mut self, rate: f32) {
        let producer = self.producers.join(self.now, rate, self.factor as f32);
        let (slot, life) = (producer as u32, self.producers.life[producer]);
        let stays = chance::waiting(&mut self.rng, self.scenario.stay_s);
        events::enter(&mut self.events, self.now, stays, Event::Leave { slot, life });
        self.enter_burst(slot, life);
        self.counter.sum.joins += 1;
        self.house(slot);
    }

    fn leave(&mut self, slot: u32) {
        let producer = slot as usize;
        self.give_up_move(producer);
        self.place(producer, NOWHERE);
        self.producers.leave(producer);
        self.homeless.retain(|other| *other != slot);
    }

    /// A producer without a relay gets one, if there is one.
    fn house(&mut self, slot: u32) {
        match self.relays.choose(self.scenario.policy) {
            Some(relay) => self.place(slot as usize, relay as u32),
            None => self.homeless.push(slot),
        }
    }

    fn house_all(&mut self) {
        for slot in std::mem::take(&mut self.homeless) {
            self.house(slot);
        }
    }

    fn place(&mut self, producer: usize, relay: u32) {
        let from = std::mem::replace(&mut self.producers.at[producer], relay);
        let rate = self.producers.rate[producer];
        if from != NOWHERE {
            self.relays.producers[from as usize] -= 1;
            self.relays.load[from as usize] -= rate;
        }
        if relay != NOWHERE {
            self.relays.producers[relay as usize] += 1;
            self.relays.load[relay as usize] += rate;
        }
    }

    fn revalue_one(&mut self, producer: usize) {
        // The second that has begun is measured at the new rate.
        self.producers.measure_one(producer, self.now.saturating_sub(1));
        let rates = &mut self.producers;
        let rate = rates.base[producer] * rates.burst[producer] * self.factor as f32;
        let before = std::mem::replace(&mut rates.rate[producer], rate);
        if rates.at[producer] != NOWHERE {
            self.relays.load[rates.at[producer] as usize] += rate - before;
        }
    }

    /// All rates anew, and the relays' sums of them.
    fn revalue(&mut self) {
        self.factor = self.day() * self.flash;
        let factor = self.factor as f32;
        self.producers.measure(self.now.saturating_sub(1));
        let producers = &mut self.producers;
        let rates = producers.rate.iter_mut().zip(&producers.base).zip(&producers.burst);
        for ((rate, base), burst) in rates {
            *rate = base * burst * factor;
        }
        self.relays.load.fill(0.0);
        for (at, rate) in producers.at.iter().zip(&producers.rate) {
            if *at != NOWHERE {
                self.relays.load[*at as usize] += rate;
            }
        }
    }

    /// Asks for a relay.
    pub(super) fn start(&mut self) {
        let slot = self.relays.start(self.now);
        let relay = self.relays.id[slot];
        self.generation += 1;
        if self.fate.f64() < self.scenario.boot_failures {
            self.counter.sum.boot_failures += 1;
            return;
        }
        let boots = chance::between(&mut self.fate, self.scenario.boot_s);
        events::enter(&mut self.events, self.now, boots, Event::Booted { relay });
    }

    fn serve(&mut self, slot: usize) {
        self.relays.become_(slot, Some(RelayState::Up));
        self.relays.up_at[slot] = self.now;
        self.relays.begin_to_report(slot);
        self.generation += 1;
        self.gate.stir(self.now);
        if self.scenario.relay_life_s > 0.0 {
            let lives = chance::waiting(&mut self.fate, self.scenario.relay_life_s);
            let relay = self.relays.id[slot];
            events::enter(&mut self.events, self.now, lives, Event::Crash { relay });
        }
    }

    fn crash(&mut self, relay: u64) {
        let Some(slot) = self.relays.find(relay) else { return };
        self.relays.fall_silent(slot);
        self.counter.sum.crashes += 1;
        let found = if self.fate.f64() < DEAD_BUT_CONNECTED { FOUND_S.1 } else { FOUND_S.0 };
        events::enter(&mut self.events, self.now, found, Event::Found { relay });
    }

    /// As the directory does it (directory/failover.rs): another relay is asked for, and the dead one's
    /// producers go to those that are there.
    pub(super) fn fail_over(&mut self, slot: usize) {
        let was_up = self.relays.life[slot] == Some(RelayState::Up);
        let here = slot as u32;
        for producer in 0..self.producers.at.len() {
            if self.producers.to[producer] == here || self.producers.at[producer] == here {
                self.give_up_move(producer);
            }
        }
        self.remove(slot);
        for producer in 0..self.producers.at.len() {
            if self.producers.at[producer] == here {
                self.place(producer, NOWHERE);
                self.house(producer as u32);
                self.counter.sum.rehoused += 1;
            }
        }
        if was_up {
            self.start();
        }
        self.gate.stir(self.now);
    }

    /// A relay is no more.
    pub(super) fn remove(&mut self, slot: usize) {
        self.relays.become_(slot, None);
        self.generation += 1;
        self.gate.stir(self.now);
    }

    fn give_up_move(&mut self, producer: usize) {
        let to = std::mem::replace(&mut self.producers.to[producer], NOWHERE);
        if to != NOWHERE {
            self.end_move(to);
            self.end_move(self.producers.at[producer]);
            self.generation += 1;
        }
    }

    /// Enters the seconds up to now into the figures, before anything changes.
    fn count(&mut self) {
        let seconds = std::mem::take(&mut self.uncounted_s);
        if seconds == 0 {
            return;
        }
        let relays = &self.relays;
        let Carried { load, load_max, overloaded, mut lost } = Carried::of(&relays.load);
        let mut homeless = !self.homeless.is_empty();
        let of_silent = (0..relays.load.len()).filter(|slot| relays.is_silent(*slot));
        for slot in of_silent.take(relays.silent as usize) {
            if relays.load[slot] > 0.0 {
                lost += relays.load[slot].min(1.0);
                homeless = true;
            }
        }
        let nowhere = self.homeless.iter().map(|slot| self.producers.rate[*slot as usize]);
        let nowhere: f32 = nowhere.sum();
        let paid = relays.paid();
        let hourly = self.scenario.relay_cost_per_hour_micros as f64 * f64::from(paid);
        let second = Second {
            relays: paid,
            producers: self.producers.count,
            load: f64::from(load + nowhere),
            load_max,
            overloaded,
            lost: f64::from(lost + nowhere),
            homeless,
            cost_micros: hourly / 3_600.0,
        };
        self.spent_micros += second.cost_micros * f64::from(seconds);
        self.counter.observe(self.now, &second, seconds);
    }
}

/// What relays carry, in their limits.
struct Carried {
    load: f32,
    load_max: f32,
    /// Relays above their limit.
    overloaded: u32,
    /// Load above limits.
    lost: f32,
}

impl Carried {
    /// Sums the loads in lanes, which the compiler makes vectors of: this is done for every relay
    /// in nearly every second.
    fn of(loads: &[f32]) -> Self {
        const LANES: usize = 16;
        let (mut load, mut load_max, mut lost) = ([0.0; LANES], [0.0_f32; LANES], [0.0; LANES]);
        let mut overloaded = [0; LANES];
        // Load 0 is that of no relay.
        let (whole, rest) = loads.as_chunks::<LANES>();
        let mut last = [0.0; LANES];
        last[..rest.len()].copy_from_slice(rest);
        for chunk in whole.iter().chain([&last]) {
            for (lane, share) in chunk.iter().enumerate() {
                load[lane] += share;
                load_max[lane] = if *share > load_max[lane] { *share } else { load_max[lane] };
                lost[lane] += if *share > 1.0 { share - 1.0 } else { 0.0 };
                overloaded[lane] += u32::from(*share > 1.0);
            }
        }
        Self {
            load: load.iter().sum(),
            load_max: load_max.into_iter().fold(0.0, f32::max),
            overloaded: overloaded.iter().sum(),
            lost: lost.iter().sum(),
        }
    }
}
