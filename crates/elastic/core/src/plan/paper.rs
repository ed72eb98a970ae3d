//! Policy `paper`: the algorithm of EQS §III-D as printed, for the reproduction, with its defects.
//!
//! As printed, and so kept: the queue's rules look once a minute (§V-B); one new relay a trigger, whatever
//! is missing; the producer that sent most messages moves, however small the need; the new relay is
//! filled until it is overloaded itself; no cool-down, no hysteresis. The one guard that it needs to
//! end is marked in [`fill`]. Two things are said in the paper's text without figures and chosen
//! here: which relay is underused ([`PAPER_UNDERUSED`]), and that at the most relays the freest takes
//! the new one's part (§V-A: "relocate producers on free exchanges").

use quelea_elastic_proto::RelayId;

use super::builder::PlanBuilder;
use super::projection::Projection;
use super::tuning::{PAPER_MS, PAPER_UNDERUSED};
use super::view::{Action, RelayState};

/// A relay at its limit KPI is overloaded.
const LIMIT: f64 = 1.0;

pub(crate) fn paper(builder: &mut PlanBuilder<'_>) {
    builder.heal();
    builder.restart_dead();
    builder.empty_draining_at_once();
    if let Some(new) = builder.new_relay() {
        builder.fill(new);
        return;
    }
    let now = builder.now();
    if builder.history.looked_at.is_some_and(|at| now.since_ms(at) < PAPER_MS) {
        builder.remark(format!("the rules look every {PAPER_MS} ms"));
        return;
    }
    builder.history.looked_at = Some(now);
    let overloaded = builder.overloaded();
    let fewest = builder.fewest_agreed().min(builder.most_relays());
    let have = builder.projection.count(RelayState::Up) + builder.booting();
    if have < fewest {
        let reason = format!("fewer relays than the agreement needs: {fewest}");
        builder.start(fewest - have, reason);
    } else if overloaded.is_empty() {
        builder.scale_in_underused();
    } else {
        builder.scale_out_by_one(&overloaded);
    }
}

impl PlanBuilder<'_> {
    /// EQS §III-C.4: components of EQS are restarted when an outage occurs.
    fn restart_dead(&mut self) {
        for at in 0..self.projection.relays.len() {
            let (id, state) = (self.projection.relays[at].id, self.projection.relays[at].state);
            if state == RelayState::Dead && !self.is_left_alone(id) {
                let reason = "it is dead: restarted (EQS §III-C.4)".to_owned();
                self.act_on(id, Action::Restart { relay: id }, reason);
            }
        }
    }

    /// Lines 1 to 3: a queue above its KPI gets one relay; who moves is decided when it serves (§IV-E).
    fn scale_out_by_one(&mut self, overloaded: &[usize]) {
        let relay = &self.projection.relays[overloaded[0]];
        let (_, kpi) = relay.load();
        let why = relay.limits.describe(kpi, &relay.usage).to_string();
        let have = self.projection.count(RelayState::Up) + self.booting();
        let most =
            self.affordable().map_or(self.sla.relays_max, |paid| paid.min(self.sla.relays_max));
        if self.booting() > 0 {
            self.remark(format!("relay {}: {why}; a relay boots", relay.id.0));
        } else if have < most {
            let reason = format!("relay {}: {why} (overloaded above {LIMIT:.2})", relay.id.0);
            self.start(1, reason);
        } else if let Some(freest) = self.freest() {
            self.fill(freest);
        } else {
            self.remark(format!("relay {}: {why}; all {most} relays are overloaded", relay.id.0));
        }
    }

    /// Finds a relay that has just begun to serve, and notes that it is to be filled. Returns it if
    /// it has no producer yet and is not the only one that serves.
    fn new_relay(&mut self) -> Option<usize> {
        let serving = self.projection.count(RelayState::Up) > 1;
        let at = self.projection.relays.iter().position(|relay| {
            let known = self.history.relay(relay.id);
            relay.accepts_producers() && known.is_some_and(|relay| !relay.filled)
        })?;
        if let Some(relay) = self.history.relay_mut(self.projection.relays[at].id) {
            relay.filled = true;
        }
        (serving && self.projection.relays[at].producers.is_empty()).then_some(at)
    }

    /// Lines 4 to 9. Line 10, the listeners' update, is the directory's, which has it before the moves.
    ///
    /// **The guard**: a pass over L that moves nothing ends it, and a relay in L that is not overloaded
    /// any more gives nothing. As printed it would go on for ever when each has one producer (line 7).
    fn fill(&mut self, new: usize) {
        let overloaded = self.overloaded();
        loop {
            let mut moved = false;
            for from in overloaded.iter().copied().filter(|from| *from != new) {
                if self.projection.relays[new].load().0 > LIMIT {
                    return;
                }
                let relay = &self.projection.relays[from];
                if relay.producers.len() < 2 || relay.load().0 <= LIMIT {
                    continue;
                }
                let Some(most_productive) = self.projection.most_productive(from) else { continue };
                let reason = self.projection.why_moved(from, most_productive);
                self.apply_move(most_productive, from, new, reason);
                moved = true;
            }
            if !moved {
                return;
            }
        }
    }

    fn overloaded(&self) -> Vec<usize> {
        let is_overloaded = |at: &usize| {
            let relay = &self.projection.relays[*at];
            relay.state == RelayState::Up && relay.reports && relay.load().0 > LIMIT
        };
        (0..self.projection.relays.len()).filter(is_overloaded).collect()
    }

    fn freest(&self) -> Option<usize> {
        let free = (0..self.projection.relays.len()).filter(|at| {
            self.projection.relays[*at].accepts_producers()
                && self.projection.relays[*at].load().0 <= LIMIT
        });
        free.min_by(|a, b| {
            self.projection.relays[*a].load().0.total_cmp(&self.projection.relays[*b].load().0)
        })
    }

    /// §III-C.3: an underused relay whose load the others can carry is shut down.
    fn scale_in_underused(&mut self) {
        let up = self.projection.count(RelayState::Up);
        if up <= self.fewest_agreed() || self.booting() > 0 {
            return;
        }
        let Some(at) = self.freest() else { return };
        let (load, kpi) = self.projection.relays[at].load();
        let demand = self.projection.demand();
        let others = self.projection.new_limits.load(&demand).0 / f64::from(up - 1);
        if load < PAPER_UNDERUSED && others <= LIMIT {
            let why =
                self.projection.relays[at].limits.describe(kpi, &self.projection.relays[at].usage);
            let reason = format!(
                "underused: {why} (below {PAPER_UNDERUSED:.2}), the others carry it at {others:.2}"
            );
            self.drain(at, reason);
        }
    }

    /// §III-C.3: its producers are relocated "in a load balanced manner"; all at once.
    fn empty_draining_at_once(&mut self) {
        for from in 0..self.projection.relays.len() {
            if self.projection.relays[from].state != RelayState::Draining {
                continue;
            }
            let id: RelayId = self.projection.relays[from].id;
            if self.projection.relays[from].producers.is_empty()
                && !self.projection.relays[from].awaits_effect
            {
                let reason = "it drains and has no producer any more".to_owned();
                self.act_on(id, Action::Stop { relay: id }, reason);
                continue;
            }
            let to: Vec<usize> = (0..self.projection.relays.len())
                .filter(|at| self.projection.relays[*at].accepts_producers())
                .collect();
            for at in self.projection.relays[from].producers.clone() {
                let producer = &self.projection.snapshot.producers[at];
                if producer.fixed || producer.moving {
                    continue;
                }
                if let Some(to) = self.projection.least_loaded(at, &to, f64::INFINITY) {
                    let to_id = self.projection.relays[to].id.0;
                    self.apply_move(
                        at,
                        from,
                        to,
                        format!("relay {} drains; {to_id} is freest", id.0),
                    );
                }
            }
        }
    }
}

impl Projection<'_> {
    /// Returns "the one which has sent the biggest number of messages over the previous time
    /// period" (§III-D).
    fn most_productive(&self, from: usize) -> Option<usize> {
        let rate = |at: usize| self.snapshot.producers[at].fast.messages_in;
        let free = |at: &usize| {
            let producer = &self.snapshot.producers[*at];
            !producer.fixed && !producer.moving
        };
        let producers = self.relays[from].producers.iter().copied().filter(free);
        producers.max_by(|a, b| rate(*a).total_cmp(&rate(*b)).then(b.cmp(a)))
    }

    fn why_moved(&self, from: usize, producer: usize) -> String {
        let relay = &self.relays[from];
        let (_, kpi) = relay.load();
        format!(
            "relay {}: {} (overloaded above {LIMIT:.2}); it sends most: {:.1} messages/s",
            relay.id.0,
            relay.limits.describe(kpi, &relay.usage),
            self.snapshot.producers[producer].fast.messages_in
        )
    }
}
