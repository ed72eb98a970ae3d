//! A queue in virtual time: relays that boot, producers that send, moves that take a second. The plan is
//! carried out to the letter, so a test sees what the planner alone does.

use std::collections::BTreeMap;

use quelea_elastic_core::plan::{
    Action, History, Load, Plan, Planned, Policy, ProducerView, RelayState, RelayView, Snapshot,
    plan,
};
use quelea_elastic_core::sla::Sla;
use quelea_elastic_proto::{ClientId, RelayId, Time};

/// A megabyte.
pub(crate) const MB: f64 = 1e6;

/// Samples that a monitor keeps.
const SAMPLES: usize = 16;

pub(crate) struct PlannerWorld {
    pub(crate) now: Time,
    pub(crate) sla: Sla,
    pub(crate) policy: Policy,
    pub(crate) history: History,
    pub(crate) generation: u64,
    pub(crate) relays: BTreeMap<RelayId, Relay>,
    pub(crate) producers: BTreeMap<ClientId, Producer>,
    pub(crate) listeners: u32,
    /// Cores that a relay wants for 10 MB/s; it never has more than one.
    pub(crate) cores: f64,
    /// Shares of its host's memory and network that a relay uses at 10 MB/s.
    pub(crate) memory: f64,
    pub(crate) network: f64,
    /// Shares that it uses without any load.
    pub(crate) memory_at_rest: f64,
    pub(crate) network_at_rest: f64,
    pub(crate) cost: u64,
    pub(crate) spent: u64,
    /// How long a relay boots; `None`: it never comes.
    pub(crate) boot_ms: Option<u64>,
    /// All that was planned, with the time.
    pub(crate) log: Vec<(Time, Planned)>,
    pub(crate) last: Plan,
    next_relay: u64,
}

pub(crate) struct Relay {
    pub(crate) state: RelayState,
    pub(crate) started_at: Time,
    pub(crate) reported_at: Option<Time>,
    pub(crate) samples: Vec<Load>,
    pub(crate) capacity: Load,
    pub(crate) witnesses: u32,
    /// It reports no more.
    pub(crate) silent: bool,
    pub(crate) latency_us: f64,
}

pub(crate) struct Producer {
    pub(crate) relay: RelayId,
    /// Bytes a second now.
    pub(crate) rate: f64,
    /// Bytes of a message.
    pub(crate) message: f64,
    fast: f64,
    slow: f64,
    pub(crate) moved_at: Time,
    pub(crate) moves: u32,
    moving_to: Option<RelayId>,
    pub(crate) fixed: bool,
}

/// Returns an agreement with a limit of 10 MB/s in a relay: loads are easy to read.
pub(crate) fn ten_mb() -> Sla {
    Sla { bytes_in_per_s_max: 10_000_000, ..Sla::default() }
}

impl PlannerWorld {
    pub(crate) fn new(sla: Sla, policy: Policy) -> Self {
        Self {
            now: Time::ZERO.plus_ms(10_000_000),
            sla,
            policy,
            history: History::default(),
            generation: 1,
            relays: BTreeMap::new(),
            producers: BTreeMap::new(),
            listeners: 2,
            cores: 0.0,
            memory: 0.0,
            network: 0.0,
            memory_at_rest: 0.0,
            network_at_rest: 0.0,
            cost: 0,
            spent: 0,
            boot_ms: Some(2_000),
            log: Vec::new(),
            last: Plan::default(),
            next_relay: 1,
        }
    }

    /// Sets up a queue whose relays serve and have reported; each list has its relay's producers in
    /// MB/s.
    pub(crate) fn with(sla: Sla, policy: Policy, relays: &[&[f64]]) -> Self {
        let mut world = Self::new(sla, policy);
        for producers in relays {
            let relay = world.add_relay(RelayState::Up);
            for rate in *producers {
                world.add_producer(relay, rate * MB);
            }
        }
        for _ in 0..SAMPLES {
            world.measure();
        }
        world
    }

    pub(crate) fn add_relay(&mut self, state: RelayState) -> RelayId {
        let id = RelayId(self.next_relay);
        self.next_relay += 1;
        let relay = Relay {
            state,
            started_at: self.now,
            reported_at: None,
            samples: Vec::new(),
            capacity: Load::default(),
            witnesses: 0,
            silent: false,
            latency_us: 100.0,
        };
        self.relays.insert(id, relay);
        id
    }

    pub(crate) fn add_producer(&mut self, relay: RelayId, rate: f64) -> ClientId {
        let id = ClientId(self.producers.len() as u128 + 1);
        let producer = Producer {
            relay,
            rate,
            message: 5_000.0,
            fast: rate,
            slow: rate,
            // Long ago.
            moved_at: Time::ZERO,
            moves: 0,
            moving_to: None,
            fixed: false,
        };
        self.producers.insert(id, producer);
        id
    }

    /// Returns the load of a relay now, in bytes a second.
    pub(crate) fn carried(&self, relay: RelayId) -> f64 {
        self.producers.values().filter(|p| p.relay == relay).map(|p| p.rate).sum()
    }

    pub(crate) fn up(&self) -> usize {
        self.relays.values().filter(|relay| relay.state == RelayState::Up).count()
    }

    /// Returns the share of the limit that the most loaded relay uses.
    pub(crate) fn highest(&self) -> f64 {
        let limit = self.sla.bytes_in_per_s_max as f64;
        self.relays.keys().map(|id| self.carried(*id) / limit).fold(0.0, f64::max)
    }

    /// One second: what was begun is done, what is there is measured, and planned on.
    pub(crate) fn tick(&mut self) {
        self.tick_without_plan();
        self.plan();
    }

    /// The same, but nobody asks the planner.
    pub(crate) fn tick_without_plan(&mut self) {
        self.now = self.now.plus_ms(1_000);
        self.finish_moves();
        self.finish_boots();
        self.measure();
        self.spent += self.cost * self.relays.len() as u64 / 3_600;
    }

    pub(crate) fn run(&mut self, seconds: u32) {
        for _ in 0..seconds {
            self.tick();
        }
    }

    pub(crate) fn plan(&mut self) {
        let snapshot = self.snapshot();
        let (plan, history) = plan(&snapshot, &self.sla, self.policy, &self.history, self.now);
        self.history = history;
        for planned in plan.actions.clone() {
            self.carry_out(&planned.action);
            self.log.push((self.now, planned));
        }
        self.last = plan;
    }

    fn finish_moves(&mut self) {
        for producer in self.producers.values_mut() {
            if let Some(to) = producer.moving_to.take() {
                self.generation += 1;
                producer.relay = to;
                producer.moved_at = self.now;
                producer.moves += 1;
            }
        }
    }

    fn finish_boots(&mut self) {
        let Some(boot_ms) = self.boot_ms else { return };
        for relay in self.relays.values_mut() {
            let is_due = self.now.since_ms(relay.started_at) >= boot_ms;
            if relay.state == RelayState::Starting && is_due {
                relay.state = RelayState::Up;
                self.generation += 1;
            }
        }
    }

    pub(crate) fn measure(&mut self) {
        for producer in self.producers.values_mut() {
            producer.fast += (producer.rate - producer.fast) * (1.0 - (-0.1f64).exp());
            producer.slow += (producer.rate - producer.slow) * (1.0 - (-0.005f64).exp());
        }
        let listeners = f64::from(self.listeners);
        for (id, relay) in &mut self.relays {
            let serves = matches!(relay.state, RelayState::Up | RelayState::Draining);
            if !serves || relay.silent {
                continue;
            }
            let mut sample = Load { latency_us: relay.latency_us, ..Load::default() };
            for producer in self.producers.values().filter(|p| p.relay == *id) {
                let load = load(producer.rate, producer.message, listeners);
                sample.messages_in += load.messages_in;
                sample.bytes_in += load.bytes_in;
                sample.messages_out += load.messages_out;
                sample.bytes_out += load.bytes_out;
                sample.clients += 1.0;
            }
            sample.clients += listeners;
            // Others want a little of the core, too.
            sample.cpu = (sample.bytes_in / (10.0 * MB) * self.cores).min(0.97);
            let part = sample.bytes_in / (10.0 * MB);
            sample.memory = (self.memory_at_rest + part * self.memory).min(1.0);
            sample.network = (self.network_at_rest + part * self.network).min(1.0);
            relay.samples.push(sample);
            if relay.samples.len() > SAMPLES {
                relay.samples.remove(0);
            }
            relay.reported_at = Some(self.now);
        }
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        let under_way = |id: RelayId| {
            let moving = self.producers.values().filter(|p| p.moving_to.is_some());
            moving.filter(|p| p.relay == id || p.moving_to == Some(id)).count() as u32
        };
        let relays = self.relays.iter().map(|(id, relay)| RelayView {
            id: *id,
            state: relay.state,
            started_at: relay.started_at,
            reported_at: relay.reported_at,
            samples: relay.samples.clone(),
            capacity: relay.capacity,
            witnesses: relay.witnesses,
            moves_under_way: under_way(*id),
        });
        let listeners = f64::from(self.listeners);
        let producers = self.producers.iter().map(|(id, producer)| ProducerView {
            id: *id,
            relay: producer.relay,
            fast: load(producer.fast, producer.message, listeners),
            slow: load(producer.slow, producer.message, listeners),
            moved_at: producer.moved_at,
            moving: producer.moving_to.is_some(),
            fixed: producer.fixed,
        });
        Snapshot {
            generation: self.generation,
            relays: relays.collect(),
            producers: producers.collect(),
            listeners: self.listeners,
            relay_cost_per_hour_micros: self.cost,
            spent_this_hour_micros: self.spent,
        }
    }

    fn carry_out(&mut self, action: &Action) {
        self.generation += 1;
        match action {
            Action::Start { count } => {
                for _ in 0..*count {
                    self.add_relay(RelayState::Starting);
                }
            }
            Action::Move { producer, from, to } => {
                let producer = self.producers.get_mut(producer).unwrap();
                assert_eq!(producer.relay, *from);
                assert!(producer.moving_to.is_none() && !producer.fixed);
                assert!(self.relays.contains_key(to));
                producer.moving_to = Some(*to);
            }
            Action::Drain { relay } => self.set(*relay, RelayState::Draining),
            Action::FailOver { relay } => self.fail_over(*relay),
            Action::Restart { relay } => {
                self.relays.remove(relay);
                self.add_relay(RelayState::Starting);
            }
            Action::Stop { relay } => {
                self.relays.remove(relay);
            }
            Action::Notify { .. } => {}
        }
    }

    fn set(&mut self, relay: RelayId, state: RelayState) {
        self.relays.get_mut(&relay).unwrap().state = state;
    }

    /// Assigns a dead relay's producers to the least loaded of the others.
    fn fail_over(&mut self, dead: RelayId) {
        self.set(dead, RelayState::Dead);
        let ids: Vec<ClientId> = self.producers.keys().copied().collect();
        for id in ids {
            let up = self.relays.iter().filter(|(_, relay)| relay.state == RelayState::Up);
            let least = up.min_by(|a, b| self.carried(*a.0).total_cmp(&self.carried(*b.0)));
            let least = least.map(|(id, _)| *id);
            let producer = self.producers.get_mut(&id).unwrap();
            if producer.relay == dead {
                producer.relay = least.unwrap_or(dead);
            }
        }
    }

    pub(crate) fn moves(&self) -> usize {
        self.log.iter().filter(|(_, p)| matches!(p.action, Action::Move { .. })).count()
    }

    pub(crate) fn started(&self) -> u32 {
        let count = |planned: &Planned| match planned.action {
            Action::Start { count } => count,
            _ => 0,
        };
        self.log.iter().map(|(_, planned)| count(planned)).sum()
    }

    pub(crate) fn drained(&self) -> usize {
        self.log.iter().filter(|(_, p)| matches!(p.action, Action::Drain { .. })).count()
    }
}

fn load(rate: f64, message: f64, listeners: f64) -> Load {
    Load {
        messages_in: rate / message,
        bytes_in: rate,
        messages_out: rate / message * listeners,
        bytes_out: rate * listeners,
        ..Load::default()
    }
}
