//! How many relays are missing: by the sum of the load, and by what does not fit on those that are there.

use quelea_elastic_proto::RelayId;
use quelea_elastic_proto::frame::NoticeCode;

use super::builder::PlanBuilder;
use super::kpi::{KPIS, Kpi, Vector};
use super::projection::{ProjectedRelay, Projection, add};
use super::tuning::{DEFICIT, DEFICIT_MS, EASED, LATENCY_START_MS, LOOK_AHEAD_MAX, ROOM, TARGET};
use super::view::{Action, RelayState};

/// Relays that are wanted, and why.
struct WantedRelays {
    relays: u32,
    reason: String,
}

impl PlanBuilder<'_> {
    /// Starts what is missing, as far as the agreement and the budget allow.
    pub(crate) fn scale_out(&mut self) {
        let have = self.projection.count(RelayState::Up) + self.booting();
        let want = self.want(have);
        if let Some(want) = want {
            self.start_missing(want.relays - have, have, &want.reason);
        }
        // What is dead and was not replaced is not wanted any more.
        self.end_dead();
    }

    fn want(&mut self, have: u32) -> Option<WantedRelays> {
        if have < self.sla.relays_min {
            let relays = self.sla.relays_min;
            let reason = format!("{have} relays are fewer than relays_min {relays}");
            return Some(WantedRelays { relays, reason });
        }
        let by_sum = self.want_by_sum(have);
        let by_fit = self.want_by_fit(have);
        match (by_sum, by_fit) {
            (Some(sum), Some(fit)) => Some(if fit.relays > sum.relays { fit } else { sum }),
            (one, other) => one.or(other),
        }
    }

    /// The whole queue's load against the target.
    fn want_by_sum(&mut self, have: u32) -> Option<WantedRelays> {
        let demand = self.projection.demand();
        let found = self.projection.short_by_sum(&demand, have);
        let now = self.now();
        let Some((kpi, relays)) = found.filter(|(_, relays)| *relays > have) else {
            self.history.deficit_since = None;
            return None;
        };
        let since = *self.history.deficit_since.get_or_insert(now);
        let hot = self.projection.relays.iter().any(|relay| relay.hot.is_some());
        let whole = self.projection.new_limits.describe(kpi, &demand);
        let over = TARGET * DEFICIT;
        let reason = format!(
            "over all relays {whole} for one, more than {over:.2} on each of {have}; {TARGET:.2} needs \
             {relays}"
        );
        if now.since_ms(since) < DEFICIT_MS && !hot {
            self.remark(format!("not for {DEFICIT_MS} ms yet: {reason}"));
            return None;
        }
        Some(WantedRelays { relays, reason })
    }

    /// Relays that stay hot because their producers find no room: looks ahead with the relays that boot, and
    /// counts what else it takes.
    fn want_by_fit(&mut self, have: u32) -> Option<WantedRelays> {
        let hot: Vec<usize> = (0..self.projection.relays.len())
            .filter(|at| {
                let relay = &self.projection.relays[*at];
                relay.hot.is_some()
                    && relay.state == RelayState::Up
                    && !relay.awaits_effect
                    && self.is_no_burst(*at)
                    && relay.load().0 > EASED
            })
            .collect();
        if hot.is_empty() || self.moves_left == 0 {
            return None;
        }
        let by_latency = hot.iter().all(|at| self.projection.relays[*at].load().1 == Kpi::Latency);
        let now = self.now();
        if by_latency {
            let last = self.history.latency_start_at;
            if last.is_some_and(|at| now.since_ms(at) < LATENCY_START_MS) {
                self.remark(format!(
                    "latency_us is too high; a relay was added for it less than {LATENCY_START_MS} ms ago"
                ));
                return None;
            }
        }
        let first = self.projection.relays[hot[0]].id.0;
        let why = self.projection.relays[hot[0]].hot.map(|(kpi, last)| {
            self.projection.relays[hot[0]].limits.describe(kpi, &last).to_string()
        })?;
        let missing = look_ahead(self.projection.clone(), &hot, self.booting());
        if missing == 0 {
            return None;
        }
        if by_latency {
            self.history.latency_start_at = Some(now);
        }
        let reason = format!(
            "relay {first} is hot: {why}, and its producers fit on no relay below {ROOM:.2}: {missing} \
             more beside {have}"
        );
        Some(WantedRelays { relays: have + missing, reason })
    }

    fn start_missing(&mut self, missing: u32, have: u32, reason: &str) {
        let dead: Vec<RelayId> = self.dead();
        let back_off_ms = self.history.back_off_ms(self.now());
        if back_off_ms > 0 {
            let failures = self.history.boot_failures;
            self.remark(format!("{reason}; waits {back_off_ms} ms after {failures} failed starts"));
            return;
        }
        let by_sla = self.sla.relays_max.saturating_sub(have);
        // A relay that is replaced costs nothing more.
        let by_budget = self.affordable().map_or(u32::MAX, |paid| {
            (paid + dead.len() as u32).saturating_sub(self.projection.paid() + self.unseen())
        });
        let count = missing.min(by_sla).min(by_budget);
        if count < missing {
            self.notify_limit(missing, count, by_sla <= by_budget, reason);
        }
        let replaced = dead.len().min(count as usize);
        for relay in &dead[..replaced] {
            let reason = format!("it is dead and missed: {reason}");
            self.act_on(*relay, Action::Restart { relay: *relay }, reason);
        }
        let fresh = count - replaced as u32;
        if fresh > 0 {
            self.start(fresh, reason.to_owned());
        }
        if count > 0 {
            self.history.scaled_out_at = Some(self.now());
        }
    }

    fn notify_limit(&mut self, missing: u32, count: u32, by_sla: bool, reason: &str) {
        if by_sla {
            let max = self.sla.relays_max;
            let text =
                format!("{reason}; {missing} are missing, {count} are within relays_max {max}");
            self.notify(NoticeCode::AtMaximum, text);
            return;
        }
        let budget = self.sla.budget_per_hour_micros;
        let cost = self.projection.snapshot.relay_cost_per_hour_micros;
        let spent = self.projection.snapshot.spent_this_hour_micros;
        let text = format!(
            "{reason}; {missing} are missing, {count} are within budget_per_hour_micros {budget} at {cost} \
             for a relay's hour ({spent} spent in this hour)"
        );
        let code = if spent > budget { NoticeCode::BudgetSpent } else { NoticeCode::AtMaximum };
        self.notify(code, text);
    }

    fn unseen(&self) -> u32 {
        self.booting() - self.projection.count(RelayState::Starting)
    }

    fn dead(&self) -> Vec<RelayId> {
        let dead = self.projection.relays.iter().filter(|relay| relay.state == RelayState::Dead);
        dead.map(|relay| relay.id).filter(|id| !self.is_left_alone(*id)).collect()
    }

    fn end_dead(&mut self) {
        for relay in self.dead() {
            let reason = "it is dead, and the other relays carry the load".to_owned();
            self.act_on(relay, Action::Stop { relay }, reason);
        }
    }
}

impl Projection<'_> {
    /// What all producers need, wherever they are, with what relays carry besides.
    pub(crate) fn demand(&self) -> Vector {
        let mut demand = [0.0; KPIS];
        for relay in &self.relays {
            if relay.state == RelayState::Up {
                add(&mut demand, &relay.usage);
            } else {
                for at in &relay.producers {
                    add(&mut demand, &self.needs[*at]);
                }
            }
        }
        for at in &self.unassigned {
            add(&mut demand, &self.needs[*at]);
        }
        // Each relay has all listeners, so only producers are shared out.
        demand[Kpi::Clients as usize] = self.snapshot.producers.len() as f64;
        demand[Kpi::Latency as usize] = 0.0;
        demand
    }

    /// The dimension that is short most, and the relays that the target needs in it, if the dead band is
    /// left.
    fn short_by_sum(&self, demand: &Vector, have: u32) -> Option<(Kpi, u32)> {
        let mut most: Option<(Kpi, u32)> = None;
        for kpi in Kpi::ALL.into_iter().filter(|kpi| kpi.adds_up()) {
            let room = self.new_limits.values[kpi as usize] * TARGET - self.taken(kpi);
            if !room.is_finite() || room <= 0.0 {
                continue;
            }
            let relays = demand[kpi as usize] / room;
            let is_short = relays > f64::from(have) * DEFICIT;
            if is_short && most.is_none_or(|(_, most)| relays.ceil() as u32 > most) {
                most = Some((kpi, relays.ceil() as u32));
            }
        }
        most
    }

    /// What each relay carries before its first producer.
    pub(crate) fn taken(&self, kpi: Kpi) -> f64 {
        if kpi == Kpi::Clients { f64::from(self.snapshot.listeners) } else { 0.0 }
    }

    /// An empty relay, as it will be.
    fn open_new(&mut self) -> usize {
        let mut usage = [0.0; KPIS];
        usage[Kpi::Clients as usize] = self.taken(Kpi::Clients);
        self.relays.push(ProjectedRelay {
            id: RelayId(u64::MAX),
            state: RelayState::Up,
            limits: self.new_limits,
            usage,
            producers: Vec::new(),
            reports: true,
            awaits_effect: false,
            hot: None,
            reported: 0.0,
            suspected: false,
        });
        self.relays.len() - 1
    }
}

/// How many relays more than those that boot it takes to bring the hot ones to the target.
fn look_ahead(mut projection: Projection<'_>, hot: &[usize], booting: u32) -> u32 {
    let mut open: Vec<usize> = (0..booting).map(|_| projection.open_new()).collect();
    let mut missing = 0;
    let mut left = LOOK_AHEAD_MAX;
    for from in hot {
        while left > 0 && projection.relays[*from].load().0 > EASED {
            left -= 1;
            if let Some(fit) = projection.best_fit(*from, &open) {
                projection.apply_move(fit.producer, *from, fit.to);
                continue;
            }
            let new = projection.open_new();
            let Some(fit) = projection.best_fit(*from, &[new]) else {
                projection.relays.truncate(new);
                break;
            };
            open.push(new);
            missing += 1;
            projection.apply_move(fit.producer, *from, fit.to);
        }
    }
    missing
}
