//! What the planner is shown of a queue, as the directory shows it (directory/planning.rs), and what
//! becomes of its plan.

use quelea_elastic_core::plan::{Action, Load, ProducerView, RelayState, RelayView, plan};
use quelea_elastic_proto::{ClientId, RelayId, Time};

use super::figures::Cause;
use super::producers::NOWHERE;
use super::queue::Queue;
use super::relays::SAMPLES;
use super::scenario::{CPU_S_PER_DELIVERY, LIMIT_BYTES_PER_S, MESSAGE_BYTES};

/// Milliseconds on the planner's clock when a run begins: zero is long ago.
const BEGUN_MS: u64 = 10_000_000;
/// A relay is new for so long after it began to serve, in the figures.
const NEW_S: u32 = 120;

fn at(second: u32) -> Time {
    Time::ZERO.plus_ms(BEGUN_MS + u64::from(second) * 1_000)
}

/// Returns a share of a relay's limit as rates.
fn rates(share: f32, listeners: u32) -> Load {
    let (share, listeners) = (f64::from(share.max(0.0)), f64::from(listeners));
    let bytes_in = share * LIMIT_BYTES_PER_S;
    let messages_in = share * (LIMIT_BYTES_PER_S / MESSAGE_BYTES);
    Load {
        messages_in,
        bytes_in,
        messages_out: messages_in * listeners,
        bytes_out: bytes_in * listeners,
        ..Load::default()
    }
}

impl Queue<'_> {
    pub(super) fn plan_and_act(&mut self) {
        self.show();
        self.counter.sum.plans += 1;
        let (sla, policy) = (&self.scenario.sla, self.scenario.policy);
        let (plan, history) = plan(&self.snapshot, sla, policy, &self.history, at(self.now));
        self.history = history;
        if plan.actions.is_empty() {
            return;
        }
        self.generation += 1;
        self.gate.stir(self.now);
        for planned in plan.actions {
            self.act(&planned.action);
        }
    }

    fn show(&mut self) {
        let mut snapshot = std::mem::take(&mut self.snapshot.relays);
        self.snapshot.generation = self.generation;
        self.snapshot.spent_this_hour_micros = self.spent_micros as u64;
        let alive = (0..self.relays.life.len()).filter(|slot| self.relays.life[*slot].is_some());
        let mut shown = 0;
        for slot in alive {
            if shown == snapshot.len() {
                snapshot.push(blank());
            }
            self.show_relay(slot, &mut snapshot[shown]);
            shown += 1;
        }
        snapshot.truncate(shown);
        snapshot.sort_unstable_by_key(|view| view.id);
        self.snapshot.relays = snapshot;
        self.show_producers();
    }

    fn show_relay(&self, slot: usize, view: &mut RelayView) {
        let relays = &self.relays;
        view.id = RelayId(relays.id[slot]);
        view.state = relays.life[slot].unwrap_or(RelayState::Dead);
        view.started_at = at(relays.started_at[slot]);
        view.reported_at = relays.last_report(slot).map(at);
        view.witnesses = u32::from(relays.is_silent(slot));
        view.moves_under_way = relays.moves[slot];
        view.samples.clear();
        view.samples.extend(relays.samples(slot).map(|(share, producers)| {
            let load = rates(share, self.scenario.listeners);
            Load {
                cpu: load.messages_out * CPU_S_PER_DELIVERY,
                memory: f64::from(share) * self.scenario.memory_at_limit,
                network: f64::from(share) * self.scenario.network_at_limit,
                clients: f64::from(producers + self.scenario.listeners),
                ..load
            }
        }));
    }

    fn show_producers(&mut self) {
        let views = &mut self.snapshot.producers;
        views.clear();
        let (producers, relays) = (&self.producers, &self.relays);
        for slot in 0..producers.alive.len() {
            let relay = producers.at[slot];
            if !producers.alive[slot] || relay == NOWHERE {
                continue;
            }
            views.push(ProducerView {
                id: ClientId(slot as u128),
                relay: RelayId(relays.id[relay as usize]),
                fast: rates(producers.fast[slot], self.scenario.listeners),
                slow: rates(producers.slow[slot], self.scenario.listeners),
                moved_at: producers.moved_at[slot].map_or(Time::ZERO, at),
                moving: producers.to[slot] != NOWHERE,
                fixed: false,
            });
        }
    }

    fn act(&mut self, action: &Action) {
        match action {
            Action::Start { count } => {
                for _ in 0..*count {
                    if self.relays.starting + self.relays.up < self.scenario.sla.relays_max {
                        self.start();
                        self.counter.scaled_out(self.now);
                    }
                }
            }
            Action::Move { producer, from, to } => self.begin_move(producer.0 as usize, *from, *to),
            Action::Drain { relay } => {
                let slot = self.relays.find(relay.0);
                let up = slot.filter(|slot| self.relays.life[*slot] == Some(RelayState::Up));
                if let Some(slot) = up {
                    self.relays.become_(slot, Some(RelayState::Draining));
                    self.counter.scaled_in(self.now);
                }
            }
            Action::FailOver { relay } => {
                if let Some(slot) = self.relays.find(relay.0) {
                    self.fail_over(slot);
                }
            }
            Action::Restart { relay } => self.restart(*relay),
            Action::Stop { relay } => {
                if let Some(slot) = self.relays.find(relay.0)
                    && self.relays.producers[slot] == 0
                    && self.relays.moves[slot] == 0
                {
                    self.remove(slot);
                }
            }
            Action::Notify { .. } => {}
        }
    }

    fn restart(&mut self, relay: RelayId) {
        let Some(slot) = self.relays.find(relay.0) else { return };
        if self.relays.life[slot] == Some(RelayState::Starting) {
            self.remove(slot);
            self.start();
        } else {
            self.fail_over(slot);
        }
    }

    fn begin_move(&mut self, producer: usize, from: RelayId, to: RelayId) {
        let (Some(from), Some(to)) = (self.relays.find(from.0), self.relays.find(to.0)) else {
            return;
        };
        let producers = &mut self.producers;
        let is_there = producers.at[producer] as usize == from && producers.to[producer] == NOWHERE;
        if !is_there || from == to || self.relays.life[to] != Some(RelayState::Up) {
            return;
        }
        producers.to[producer] = to as u32;
        let rate = producers.rate[producer];
        self.relays.moves[from] += 1;
        self.relays.moves[to] += 1;
        self.moving.push(producer as u32);
        let cause = if self.relays.life[from] == Some(RelayState::Draining) {
            Cause::Drain
        } else if self.now.saturating_sub(self.relays.up_at[to]) < NEW_S
            && self.relays.up_at[to] > 0
        {
            Cause::Fill
        } else {
            Cause::Relief
        };
        self.counter.moved(self.now, rate, cause);
    }
}

fn blank() -> RelayView {
    RelayView {
        id: RelayId(0),
        state: RelayState::Starting,
        started_at: Time::ZERO,
        reported_at: None,
        samples: Vec::with_capacity(SAMPLES),
        capacity: Load::default(),
        witnesses: 0,
        moves_under_way: 0,
    }
}
