//! A plan in the making: the projection as it will be, the actions so far, and what is remembered.

use quelea_elastic_proto::frame::NoticeCode;
use quelea_elastic_proto::{RelayId, Time};

use super::history::{Expected, History};
use super::kpi::Kpi;
use super::projection::Projection;
use super::queue_kpi::QueueKpi;
use super::tuning::{MOVES_MAX, TARGET};
use super::view::{Action, Plan, Planned, RelayState, Snapshot};
use crate::sla::Sla;

pub(crate) struct PlanBuilder<'a> {
    pub(crate) projection: Projection<'a>,
    pub(crate) sla: &'a Sla,
    pub(crate) history: History,
    pub(crate) plan: Plan,
    pub(crate) moves_left: usize,
}

impl<'a> PlanBuilder<'a> {
    pub(crate) fn new(
        snapshot: &'a Snapshot,
        sla: &'a Sla,
        mut history: History,
        now: Time,
    ) -> Self {
        history.observe(snapshot, now);
        let projection = Projection::new(snapshot, sla, &history, now);
        Self { projection, sla, history, plan: Plan::default(), moves_left: MOVES_MAX }
    }

    pub(crate) fn now(&self) -> Time {
        self.projection.now
    }

    pub(crate) fn act(&mut self, action: Action, reason: String) {
        self.plan.actions.push(Planned { action, reason });
    }

    pub(crate) fn remark(&mut self, remark: String) {
        self.plan.remarks.push(remark);
    }

    /// Plans a move and makes it on the projection.
    pub(crate) fn apply_move(&mut self, producer: usize, from: usize, to: usize, reason: String) {
        self.projection.apply_move(producer, from, to);
        self.begin_move(producer, from, to, reason);
    }

    /// Plans a move that the projection has made.
    pub(crate) fn begin_move(&mut self, producer: usize, from: usize, to: usize, reason: String) {
        let (generation, now) = (self.projection.snapshot.generation, self.now());
        let (from_id, to_id) = (self.projection.relays[from].id, self.projection.relays[to].id);
        let id = self.projection.snapshot.producers[producer].id;
        self.act(Action::Move { producer: id, from: from_id, to: to_id }, reason);
        self.history.begin(from_id, generation, now);
        self.history.begin(to_id, generation, now);
        self.moves_left = self.moves_left.saturating_sub(1);
    }

    /// Plans an action on one relay, which is left alone until its effect is seen.
    pub(crate) fn act_on(&mut self, relay: RelayId, action: Action, reason: String) {
        self.history.begin(relay, self.projection.snapshot.generation, self.now());
        self.act(action, reason);
    }

    pub(crate) fn start(&mut self, count: u32, reason: String) {
        let generation = self.projection.snapshot.generation;
        self.history.expected = Some(Expected { count, at: self.now(), generation });
        self.act(Action::Start { count }, reason);
    }

    /// Notifies the queue's users, unless they got the notice lately.
    pub(crate) fn notify(&mut self, code: NoticeCode, reason: String) {
        if self.history.notices.iter().any(|(sent, _)| *sent == code) {
            self.remark(format!("still so: {reason}"));
            return;
        }
        let now = self.now();
        self.history.notices.push((code, now));
        self.act(Action::Notify { code }, reason);
    }

    /// Returns how many relays were asked for and do not serve yet, also those that the snapshot
    /// does not show yet.
    pub(crate) fn booting(&self) -> u32 {
        let unseen = self.history.expected.map_or(0, |expected| {
            let shown = self
                .projection
                .snapshot
                .relays
                .iter()
                .filter(|view| view.started_at >= expected.at);
            expected.count.saturating_sub(shown.count() as u32)
        });
        self.projection.count(RelayState::Starting) + unseen
    }

    /// Returns how many relays the budget pays for, `None` if there is no budget.
    pub(crate) fn affordable(&self) -> Option<u32> {
        let snapshot = self.projection.snapshot;
        self.sla.affordable(snapshot.relay_cost_per_hour_micros, snapshot.spent_this_hour_micros)
    }

    /// Returns what the queue carries against what it promises, if it promises something.
    fn kpi_queue(&self) -> Option<QueueKpi> {
        let up = || self.projection.relays.iter().filter(|relay| relay.state == RelayState::Up);
        let limits = up().map(|relay| relay.limits.of_relay());
        // Not `sum`: that of nothing is -0.
        let deliveries_per_s =
            up().fold(0.0, |sum, relay| sum + relay.usage[Kpi::MessagesOut as usize]);
        Some(QueueKpi::of_limits(self.sla.throughput()?, limits, deliveries_per_s))
    }

    /// The whole queue in one sentence, for the dry run.
    pub(crate) fn summarize(&mut self) {
        let (up, booting) = (self.projection.count(RelayState::Up), self.booting());
        let loads = self.projection.relays.iter().filter(|relay| relay.state == RelayState::Up);
        let loads: Vec<f64> = loads.map(|relay| relay.load().0).collect();
        let most = loads.iter().copied().fold(0.0, f64::max);
        let mean = loads.iter().sum::<f64>() / loads.len().max(1) as f64;
        if let Some(kpi) = self.kpi_queue() {
            self.remark(kpi.to_string());
        }
        let producers = self.projection.snapshot.producers.len();
        self.remark(format!(
            "{up} relays serve and {booting} boot for {producers} producers: mean load {mean:.2}, \
             highest {most:.2} after this plan, aim {TARGET:.2}"
        ));
    }
}
