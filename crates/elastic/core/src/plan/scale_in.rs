//! Fewer relays: when the load has long fitted on fewer, or when the agreement allows no more.

use quelea_elastic_proto::frame::NoticeCode;

use super::builder::PlanBuilder;
use super::kpi::{KPIS, Kpi, Vector};
use super::projection::{ProjectedRelay, Projection, add};
use super::tuning::{FORCED_DRAIN_MS, SURPLUS, TARGET, VICTIMS_MAX};
use super::view::{Action, RelayState};
use crate::sla::Sla;

impl PlanBuilder<'_> {
    /// Returns whether more relays run than the agreement or the budget allow.
    pub(crate) fn is_over_limits(&self) -> bool {
        self.projection.paid() > self.most_relays()
    }

    pub(crate) fn most_relays(&self) -> u32 {
        self.affordable().map_or(self.sla.relays_max, |paid| paid.min(self.sla.relays_max)).max(1)
    }

    /// Brings the queue down to what it may have (EQS §III-C.3: the minimal service level).
    pub(crate) fn enforce_limits(&mut self) {
        let most = self.most_relays();
        let starting = self.projection.count(RelayState::Starting);
        let have = self.projection.count(RelayState::Up) + starting;
        if have <= most {
            return;
        }
        let reason = self.why_fewer(have, most);
        if self.projection.snapshot.spent_this_hour_micros > self.sla.budget_per_hour_micros
            && self.sla.budget_per_hour_micros > 0
        {
            self.notify(NoticeCode::BudgetSpent, reason.clone());
        }
        let recent = self.history.scaled_in_at;
        if recent.is_some_and(|at| self.now().since_ms(at) < FORCED_DRAIN_MS) {
            self.remark(format!(
                "the next relay goes {FORCED_DRAIN_MS} ms after the last: {reason}"
            ));
            return;
        }
        let mut surplus = have - most;
        for at in self.cheapest_first() {
            let relay = &self.projection.relays[at];
            let (id, state) = (relay.id, relay.state);
            if surplus == 0 || self.is_left_alone(id) {
                continue;
            }
            surplus -= 1;
            if state == RelayState::Starting {
                self.act_on(id, Action::Stop { relay: id }, reason.clone());
                if let Some(relay) = self.history.relay_mut(id) {
                    relay.given_up = true;
                }
            } else {
                self.drain(at, reason.clone());
            }
        }
    }

    fn why_fewer(&self, have: u32, most: u32) -> String {
        let budget = self.sla.budget_per_hour_micros;
        let snapshot = self.projection.snapshot;
        if self.sla.relays_max <= most {
            return format!("{have} relays are more than relays_max {}", self.sla.relays_max);
        }
        if snapshot.spent_this_hour_micros > budget {
            return format!(
                "{} is spent in this hour of budget_per_hour_micros {budget}: relays_without_budget \
                 {most} stay of {have}",
                snapshot.spent_this_hour_micros
            );
        }
        format!(
            "{have} relays at {} an hour are more than budget_per_hour_micros {budget} pays for: {most}",
            snapshot.relay_cost_per_hour_micros
        )
    }

    /// Returns the relays that boot, then those that serve, least loaded first.
    fn cheapest_first(&self) -> Vec<usize> {
        let served = |at: usize| self.projection.relays[at].state == RelayState::Up;
        let may_go = |at: &usize| {
            matches!(self.projection.relays[*at].state, RelayState::Up | RelayState::Starting)
        };
        let mut order: Vec<(bool, f64, usize)> = (0..self.projection.relays.len())
            .filter(may_go)
            .map(|at| (served(at), self.projection.relays[at].load().0, at))
            .collect();
        order.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.cmp(&b.2)));
        order.into_iter().map(|(_, _, at)| at).collect()
    }

    /// Plans that a relay drains.
    pub(crate) fn drain(&mut self, at: usize, reason: String) {
        let id = self.projection.relays[at].id;
        self.act_on(id, Action::Drain { relay: id }, reason);
        self.projection.relays[at].state = RelayState::Draining;
        self.history.scaled_in_at = Some(self.now());
    }

    /// Removes a relay that is not needed.
    pub(crate) fn scale_in(&mut self) {
        let up = self.projection.count(RelayState::Up);
        let demand = self.projection.demand();
        let now = self.now();
        let fewest = self.projection.fewest_relays(&demand, up);
        self.history.fitting.note(fewest, now);
        let is_idle = self.projection.snapshot.producers.is_empty();
        self.history.idle_since = is_idle.then(|| self.history.idle_since.unwrap_or(now));
        if up <= self.fewest_agreed() {
            return;
        }
        let Some(since) = self.history.fitting.since(up - 1) else { return };
        let level = TARGET - SURPLUS;
        let (load, kpi) = self.projection.new_limits.load(&demand);
        let whole = self.projection.new_limits.describe(kpi, &demand);
        let others = up - 1;
        let reason = format!(
            "over all relays {whole} for one; {others} of {up} carry {load:.2} at {:.2} each (below \
             {level:.2} for {} ms)",
            load / f64::from(others),
            now.since_ms(since)
        );
        if let Some(wait) = self.why_not_yet(since) {
            self.remark(format!("{reason}; {wait}"));
            return;
        }
        match self.victim() {
            Some(at) => {
                let producers = self.projection.relays[at].producers.len();
                self.drain(at, format!("{reason}; its {producers} producers fit on the others"));
            }
            None => self.remark(format!("{reason}; no relay's producers all fit on the others")),
        }
    }

    fn why_not_yet(&self, since: quelea_elastic_proto::Time) -> Option<String> {
        let within = |at: Option<quelea_elastic_proto::Time>, ms: u64| {
            at.is_some_and(|at| self.now().since_ms(at) < ms)
        };
        let Sla { scale_in_after_ms: after, scale_in_after_out_ms: after_out, .. } = *self.sla;
        let (idle_after, apart) = (self.sla.scale_in_idle_ms, self.sla.scale_in_apart_ms);
        // Where nobody sends, no load comes back by what is removed: it does not flap.
        let idle = self.history.idle_since.is_some_and(|at| self.now().since_ms(at) >= idle_after);
        let apart = if idle { apart.min(FORCED_DRAIN_MS) } else { apart };
        if !idle && self.now().since_ms(since) < after {
            return Some(format!("waits until it was so for {after} ms"));
        }
        if !idle && within(self.history.scaled_out_at, after_out) {
            return Some(format!("relays were added less than {after_out} ms ago"));
        }
        if within(self.history.scaled_in_at, apart) {
            return Some(format!("a relay was removed less than {apart} ms ago"));
        }
        if self.booting() > 0 {
            return Some("relays boot".to_owned());
        }
        let relays = &self.projection.relays;
        if let Some(hot) = relays.iter().find(|relay| relay.hot.is_some()) {
            return Some(format!("relay {} is hot", hot.id.0));
        }
        let silent = |state| state == RelayState::Up || state == RelayState::Dead;
        if let Some(gone) =
            relays.iter().find(|relay| silent(relay.state) && !relay.accepts_producers())
        {
            return Some(format!("relay {} does not report", gone.id.0));
        }
        if relays.iter().any(|relay| relay.awaits_effect) || !self.projection.unassigned.is_empty()
        {
            return Some("moves are under way".to_owned());
        }
        None
    }

    /// Returns the relay with the fewest producers, all of which fit on the others: each of them is
    /// a move. Of relays with equally many the least loaded one.
    fn victim(&self) -> Option<usize> {
        let mut up: Vec<usize> = self.cheapest_first();
        up.retain(|at| self.projection.relays[*at].state == RelayState::Up);
        up.sort_by_key(|at| self.projection.relays[*at].producers.len());
        up.into_iter().take(VICTIMS_MAX).find(|at| self.projection.fits_on_the_others(*at))
    }
}

impl Projection<'_> {
    /// Returns the fewest relays, up to `most`, that carry the demand well below the target; `most`
    /// if it takes more.
    fn fewest_relays(&self, demand: &Vector, most: u32) -> u32 {
        let (mut low, mut high) = (1, most.max(1));
        while low < high {
            let middle = low.midpoint(high);
            if self.fits_easily(demand, middle) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }

    /// Returns whether that many relays carry the demand well below the target.
    fn fits_easily(&self, demand: &Vector, relays: u32) -> bool {
        Kpi::ALL.into_iter().filter(|kpi| kpi.adds_up()).all(|kpi| {
            let each = demand[kpi as usize] / f64::from(relays) + self.taken(kpi);
            each <= self.new_limits.values[kpi as usize] * (TARGET - SURPLUS)
        })
    }

    /// Returns whether all of a relay's producers find a place on the others, largest first; all or
    /// nothing.
    fn fits_on_the_others(&self, victim: usize) -> bool {
        let others = self.relays.iter().enumerate().filter(|(at, _)| *at != victim);
        let others = others.filter(|(_, relay)| relay.accepts_producers() && !relay.awaits_effect);
        // With what is placed there.
        let mut others: Vec<(&ProjectedRelay, Vector)> =
            others.map(|(_, relay)| (relay, [0.0; KPIS])).collect();
        let (_, kpi) = self.relays[victim].load();
        let mut producers = self.relays[victim].producers.clone();
        let need = |at: &usize| self.needs[*at][kpi as usize];
        producers.sort_by(|a, b| need(b).total_cmp(&need(a)).then(a.cmp(b)));
        for at in producers {
            if self.snapshot.producers[at].fixed || self.snapshot.producers[at].moving {
                return false;
            }
            let with_it = others.iter_mut().map(|(relay, placed)| {
                let mut sum = *placed;
                add(&mut sum, &self.needs[at]);
                (relay.load_with(&sum), placed, sum)
            });
            let least = with_it.min_by(|a, b| a.0.total_cmp(&b.0));
            let Some((_, placed, sum)) = least.filter(|(load, ..)| *load <= TARGET) else {
                return false;
            };
            *placed = sum;
        }
        true
    }
}
