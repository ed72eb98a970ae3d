//! How many relays are missing: by the sum of the load, and by what does not fit on those that are there.

use quelea_elastic_proto::RelayId;
use quelea_elastic_proto::frame::NoticeCode;

use super::builder::PlanBuilder;
use super::kpi::{KPIS, Kpi, Vector};
use super::projection::{ProjectedRelay, Projection, add};
use super::tuning::{
    DEFICIT, DEFICIT_MS, EASED, HOT, LATENCY_START_MS, LOOK_AHEAD_MAX, ROOM, TARGET,
};
use super::view::{Action, RelayState};
use crate::sla::Rule;

/// Relays that are wanted, and why.
struct WantedRelays {
    relays: u32,
    reason: String,
    /// The rule that wants them.
    rule: Option<Rule>,
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

    /// Returns how many relays are wanted: as many as the rule needs that needs most; the reasons
    /// stand in the order of the rules.
    fn want(&mut self, have: u32) -> Option<WantedRelays> {
        if have < self.sla.relays_min {
            let relays = self.sla.relays_min;
            let reason = format!("{have} relays are fewer than relays_min {relays}");
            return Some(WantedRelays { relays, reason, rule: None });
        }
        let wanted =
            [self.want_by_throughput(have), self.want_by_sum(have), self.want_by_fit(have)];
        let mut wanted: Vec<WantedRelays> = wanted.into_iter().flatten().collect();
        wanted.sort_by_key(|wanted| wanted.rule.map(|rule| self.sla.priorities.place(rule)));
        let relays = wanted.iter().map(|wanted| wanted.relays).max()?;
        let reasons: Vec<String> = wanted.into_iter().map(|wanted| wanted.reason).collect();
        Some(WantedRelays { relays, reason: reasons.join("; next by priority: "), rule: None })
    }

    /// Returns the relays that the promised throughput takes, by what each of them can carry.
    fn want_by_throughput(&mut self, have: u32) -> Option<WantedRelays> {
        let throughput = self.sla.throughput()?;
        let Some(relays) = self.relays_for_throughput() else {
            let reason = format!(
                "throughput_per_s_min {}: the part of one of {} producers, {:.0} deliveries/s, is more than a relay \
                 carries at {ROOM:.2} of its limits",
                throughput.deliveries_per_s,
                throughput.producers,
                throughput.of_one_producer()
            );
            self.notify(NoticeCode::Unsplittable, reason);
            return None;
        };
        let reason = format!(
            "{have} relays are fewer than the {relays} that carry throughput_per_s_min {} ({} producers, {} listeners, \
             {} bytes) at {ROOM:.2} of their limits",
            throughput.deliveries_per_s,
            throughput.producers,
            throughput.listeners,
            throughput.payload_bytes
        );
        (relays > have).then_some(WantedRelays { relays, reason, rule: Some(Rule::Throughput) })
    }

    /// Returns how many relays carry the promised throughput below [`ROOM`], where moves can bring
    /// it: 1 if none is promised, `None` if no number of them does. More than `relays_max` and the
    /// budget allow only if fewer could not carry it at their limits either.
    fn relays_for_throughput(&self) -> Option<u32> {
        let Some(throughput) = self.sla.throughput() else { return Some(1) };
        let limits = self.projection.new_limits.of_relay();
        let tight = throughput.relays(&limits, 1.0)?;
        let roomy = throughput.relays(&limits, ROOM).unwrap_or(tight);
        let paid = self.affordable().unwrap_or(u32::MAX);
        Some(roomy.min(self.sla.relays_max).min(paid).max(tight))
    }

    /// Returns the fewest relays that the agreement asks for: never fewer than the directory holds,
    /// which knows no host.
    pub(crate) fn fewest_agreed(&self) -> u32 {
        let by_hosts = self.relays_for_throughput();
        let relays = by_hosts.unwrap_or_else(|| self.sla.relays_fewest()).min(self.sla.relays_max);
        relays.max(self.sla.relays_min).max(1)
    }

    /// Returns the relays that the whole queue's load takes, against the target.
    fn want_by_sum(&mut self, have: u32) -> Option<WantedRelays> {
        let demand = self.projection.demand();
        let mut short = self.projection.short_by_sum(&demand, have);
        short.retain(|(_, relays)| *relays > have);
        let now = self.now();
        let Some(relays) = short.iter().map(|(_, relays)| *relays).max() else {
            self.history.deficit_since = None;
            return None;
        };
        let since = *self.history.deficit_since.get_or_insert(now);
        let hot = self.projection.relays.iter().any(|relay| relay.hot.is_some());
        let (first, needed) = short[0];
        let whole = self.projection.new_limits.describe(first, &demand);
        let over = TARGET * DEFICIT;
        let mut reason = format!(
            "over all relays {whole} for one, more than {over:.2} on each of {have}; {TARGET:.2} needs \
             {needed}"
        );
        if short.len() > 1 {
            let others = short[1..].iter();
            let others: Vec<String> =
                others.map(|(kpi, relays)| format!("{} ({relays})", kpi.rule().name())).collect();
            reason += &format!(
                " (rule {}, by priority before {})",
                first.rule().name(),
                others.join(", ")
            );
        }
        if now.since_ms(since) < DEFICIT_MS && !hot {
            self.remark(format!("not for {DEFICIT_MS} ms yet: {reason}"));
            return None;
        }
        Some(WantedRelays { relays, reason, rule: Some(first.rule()) })
    }

    /// Returns the relays that it takes if some stay hot because their producers find no room:
    /// looks ahead with the relays that boot, and counts what else it takes.
    fn want_by_fit(&mut self, have: u32) -> Option<WantedRelays> {
        let hot: Vec<usize> = self
            .hot_by_priority()
            .into_iter()
            .filter(|at| {
                let relay = &self.projection.relays[*at];
                !relay.awaits_effect && self.is_no_burst(*at) && relay.load().0 > EASED
            })
            .collect();
        if hot.is_empty() || self.moves_left == 0 {
            return None;
        }
        let falls_late = hot.iter().all(|at| self.projection.relays[*at].load().1.falls_late());
        let now = self.now();
        if falls_late {
            let last = self.history.latency_start_at;
            if last.is_some_and(|at| now.since_ms(at) < LATENCY_START_MS) {
                self.remark(format!(
                    "latency, memory or network is too high; a relay was added for it less than {LATENCY_START_MS} ms ago"
                ));
                return None;
            }
        }
        let first = &self.projection.relays[hot[0]];
        let (kpi, last) = first.hot?;
        let (first, why) = (first.id.0, first.limits.describe_first(kpi, &last, HOT));
        let missing = look_ahead(self.projection.clone(), &hot, self.booting());
        if missing == 0 {
            return None;
        }
        if falls_late {
            self.history.latency_start_at = Some(now);
        }
        let reason = format!(
            "relay {first} is hot: {why}, and its producers fit on no relay below {ROOM:.2}: {missing} \
             more beside {have}"
        );
        Some(WantedRelays { relays: have + missing, reason, rule: Some(kpi.rule()) })
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
    /// Returns what all producers need, wherever they are, with what relays carry besides.
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

    /// Returns the dimensions that are short, and the relays that the target needs in each, if the
    /// dead band is left; in the order of the rules.
    fn short_by_sum(&self, demand: &Vector, have: u32) -> Vec<(Kpi, u32)> {
        let mut short = Vec::new();
        for kpi in self.new_limits.order().into_iter().filter(|kpi| kpi.is_shared_out()) {
            let room = self.new_limits.values[kpi as usize] * TARGET - self.taken(kpi);
            if !room.is_finite() || room <= 0.0 {
                continue;
            }
            let relays = demand[kpi as usize] / room;
            if relays > f64::from(have) * DEFICIT {
                short.push((kpi, relays.ceil() as u32));
            }
        }
        short
    }

    /// Returns what each relay carries before its first producer.
    pub(crate) fn taken(&self, kpi: Kpi) -> f64 {
        if kpi == Kpi::Clients { f64::from(self.snapshot.listeners) } else { 0.0 }
    }

    /// Opens an empty relay on the projection, as it will be. Returns its place.
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

/// Returns how many relays more than those that boot it takes to bring the hot ones to the target.
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
