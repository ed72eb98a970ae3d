//! Once a second: what is known goes to the planner, and its actions are carried out.

use quelea_elastic_proto::frame::NoticeCode;
use quelea_elastic_proto::{ClientId, RelayId, Time};

use crate::directory::Definition;
use crate::directory::context::Context;
use crate::directory::limits::MOVES_PER_QUEUE_MAX;
use crate::directory::queue::Queue;
use crate::directory::queue::relay::{Relay, RelayPhase};
use crate::plan::{
    Action, History, Load, Plan, Planned, ProducerView, RelayView, Snapshot, explain, plan,
};

/// The same notice is given to users again only after this.
const NOTICE_AGAIN_MS: u64 = 60_000;

/// When the next plan is due, and what the last ones left.
pub(in crate::directory) struct Planning {
    due_at: Time,
    /// What the planner remembers. Begins anew with each owner of the queue.
    history: History,
    /// The producer that an operator moved last: such moves take the producers in turn.
    pub(super) last_operator_move: Option<ClientId>,
    notices: Vec<(NoticeCode, Time)>,
    /// The planner has said that the budget is spent.
    pub(super) budget_spent: bool,
}

impl Planning {
    pub(in crate::directory) fn new(now: Time) -> Self {
        Self {
            due_at: now,
            history: History::default(),
            last_operator_move: None,
            notices: Vec::new(),
            budget_spent: false,
        }
    }

    pub(super) fn due_at(&self) -> Time {
        self.due_at
    }
}

impl Queue {
    /// Plans and carries the plan out.
    pub(super) fn plan_and_act(&mut self, cx: &mut Context<'_>) {
        self.planning.due_at = cx.now.plus_ms(cx.settings.plan_ms.max(1));
        let snapshot = self.snapshot(cx.now, cx.settings.relay_cost_per_hour_micros);
        let Definition { sla, policy, .. } = &self.definition;
        let (plan, history) = plan(&snapshot, sla, *policy, &self.planning.history, cx.now);
        self.planning.history = history;
        let actions = !plan.actions.is_empty();
        for planned in plan.actions {
            self.act(cx, planned);
        }
        // The next snapshot is later than these actions, also if none of them could be begun.
        self.generation += u64::from(actions);
    }

    /// Whether the budget is spent, for the status.
    pub(super) fn count_spent(&mut self, cx: &Context<'_>) {
        let budget = self.definition.sla.budget_per_hour_micros;
        let spent = self.budget.spent(cx.now);
        self.planning.budget_spent = budget > 0 && spent >= budget;
    }

    /// Returns what the planner would do now, by a definition.
    pub(in crate::directory) fn dry_run(
        &self,
        now: Time,
        definition: &Definition,
        relay_cost_per_hour_micros: u64,
    ) -> Plan {
        let snapshot = self.snapshot(now, relay_cost_per_hour_micros);
        let Definition { sla, policy, .. } = definition;
        explain(&snapshot, sla, *policy, &self.planning.history, now)
    }

    /// Carries out one action, if it still makes sense: the planner saw a moment that has passed.
    pub(in crate::directory) fn act(&mut self, cx: &mut Context<'_>, planned: Planned) {
        let reason = planned.reason;
        match planned.action {
            Action::Start { count } => {
                for _ in 0..count {
                    let most = self.definition.sla.relays_max as usize;
                    let may = self.relays_wanted() < most && cx.now >= self.starts.not_before;
                    if !may || !self.start_relay(cx, reason.clone()) {
                        break;
                    }
                }
            }
            Action::Move { producer, from, to } => self.act_move(cx, producer, from, to, reason),
            Action::Drain { relay } => {
                self.drain_relay(cx, relay, &reason);
            }
            Action::FailOver { relay } => self.declare_dead(cx, relay, &reason),
            Action::Restart { relay } => self.restart(cx, relay, &reason),
            Action::Stop { relay } => {
                // One that boots has no client yet: it goes at once.
                let may_go = |relay: &Relay| {
                    matches!(
                        relay.phase,
                        RelayPhase::Starting | RelayPhase::Draining { empty: true, .. }
                    )
                };
                if self.relays.get(&relay).is_some_and(may_go) {
                    self.stop_relay(cx, relay, &reason);
                }
            }
            Action::Notify { code } => self.notify_rate_limited(cx, code, reason),
        }
    }

    fn act_move(
        &mut self,
        cx: &mut Context<'_>,
        id: ClientId,
        from: RelayId,
        to: RelayId,
        reason: String,
    ) {
        let Some(producer) = self.producers.get(&id) else { return };
        let is_there = producer.place.is_some_and(|place| place.relay == from);
        let can_move = producer.peer.is_some() && producer.moving.is_none() && !producer.fixed;
        let to_is_up = self.relays.get(&to).is_some_and(Relay::takes_producers);
        let under_way: usize =
            self.relays.values().map(|relay| relay.moves as usize).sum::<usize>() / 2;
        if is_there && can_move && to_is_up && from != to && under_way < MOVES_PER_QUEUE_MAX {
            self.begin_move(cx, id, to, reason);
        }
    }

    fn restart(&mut self, cx: &mut Context<'_>, id: RelayId, reason: &str) {
        let Some(relay) = self.relays.get(&id) else { return };
        match relay.phase {
            RelayPhase::Starting => {
                self.stop_relay(cx, id, reason);
                self.starts.owed += 1;
                self.start_missing(cx);
            }
            RelayPhase::Up | RelayPhase::Draining { .. } => self.declare_dead(cx, id, reason),
            RelayPhase::Stopping { .. } => {}
        }
    }

    /// Notifies the users, unless they got the same notice a short while ago.
    pub(super) fn notify_rate_limited(
        &mut self,
        cx: &mut Context<'_>,
        code: NoticeCode,
        reason: String,
    ) {
        let notices = &mut self.planning.notices;
        notices.retain(|(_, at)| cx.now.since_ms(*at) < NOTICE_AGAIN_MS);
        if notices.iter().any(|(known, _)| *known == code) {
            return;
        }
        notices.push((code, cx.now));
        self.notify(cx, code, reason);
    }

    fn snapshot(&self, now: Time, relay_cost_per_hour_micros: u64) -> Snapshot {
        let relays = self.relays.values().filter(|relay| !relay.is_ending());
        let producers = self.producers.iter().filter_map(|(id, producer)| {
            let place = producer.place?;
            Some(ProducerView {
                id: *id,
                relay: place.relay,
                fast: producer.meter.fast,
                slow: producer.meter.slow,
                moved_at: producer.moved_at,
                moving: producer.moving.is_some(),
                fixed: producer.fixed || producer.peer.is_none(),
            })
        });
        Snapshot {
            generation: self.generation,
            relays: relays.map(Relay::view).collect(),
            producers: producers.collect(),
            listeners: u32::try_from(self.listeners.len()).unwrap_or(u32::MAX),
            relay_cost_per_hour_micros,
            spent_this_hour_micros: self.budget.spent(now),
        }
    }
}

impl Relay {
    /// Returns what the relay can carry by itself, by its word; 0 where it said nothing.
    #[expect(clippy::cast_precision_loss, reason = "capacities are estimates")]
    pub(super) fn capacity(&self) -> Load {
        Load {
            messages_in: self.capacity.messages_in_per_s as f64,
            bytes_in: self.capacity.bytes_in_per_s as f64,
            messages_out: self.capacity.messages_out_per_s as f64,
            bytes_out: self.capacity.bytes_out_per_s as f64,
            clients: f64::from(self.capacity.connections),
            ..Load::default()
        }
    }

    fn view(&self) -> RelayView {
        RelayView {
            id: self.id,
            state: self.state(),
            started_at: self.started_at,
            reported_at: self.reported_at,
            samples: self.samples.iter().copied().collect(),
            capacity: self.capacity(),
            witnesses: self.witness_count(),
            moves_under_way: self.moves,
        }
    }
}
