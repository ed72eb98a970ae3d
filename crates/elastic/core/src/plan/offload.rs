//! Moves: off hot relays, off warm ones onto cold ones, off those that drain.

use quelea_elastic_proto::frame::NoticeCode;

use super::best_fit::Fit;
use super::builder::PlanBuilder;
use super::kpi::Kpi;
use super::projection::ProjectedRelay;
use super::tuning::{
    COLD, DRAIN_MS, EASED, HOT, HOT_SAMPLES, LASTING_MS, MOVES_MAX, PRODUCER_COOLDOWN_MS,
    QUICK_LOAD, QUICK_MOVES_MAX, QUICK_SMALL, QUICK_SMALL_LOAD, RISING_MS, ROOM, SEVERE, WARM,
};
use super::view::{Action, RelayState};

/// Moves that drains may begin while there are hot relays.
const DRAIN_MOVES: usize = MOVES_MAX / 3;

/// What it takes to bring a hot relay to [`EASED`].
struct Offload {
    moves: Vec<(Fit, String)>,
    /// The relays as they were.
    before: Vec<(usize, ProjectedRelay)>,
    /// What the moves carry, as a share of the relay's limit.
    load: f64,
}

impl Offload {
    /// Returns whether so little is moved that it is worth it also for a burst. Asked after each
    /// move, the largest of which come first: a large one among small ones makes it wait, too.
    fn is_quick(&self) -> bool {
        let moves = self.moves.len();
        let most =
            if self.load <= QUICK_SMALL * moves as f64 { QUICK_SMALL_LOAD } else { QUICK_LOAD };
        moves <= 1 || (moves <= QUICK_MOVES_MAX && self.load <= most)
    }
}

impl PlanBuilder<'_> {
    /// Takes load off hot relays: at once where few moves do it, what takes more when it lasts. Moves that one
    /// plan has no room for are the next one's.
    pub(crate) fn offload(&mut self) {
        self.note_heat();
        for from in self.hot_by_priority() {
            let id = self.projection.relays[from].id.0;
            if self.projection.relays[from].awaits_effect {
                self.remark(format!("relay {id} is hot, and waits for the effect of a plan"));
                continue;
            }
            let Some((kpi, last)) = self.projection.relays[from].hot else { continue };
            let why = self.projection.relays[from].limits.describe_first(kpi, &last, HOT);
            let producers = self.projection.relays[from].producers.len();
            // One producer alone cannot be moved off its burst.
            let lasts = producers < 2 || self.is_no_burst(from) || self.rises();
            let offload = self.try_offload(from, &why, lasts);
            let eased = self.projection.relays[from].load().0 <= EASED;
            if lasts || (eased && offload.is_quick()) {
                for (fit, reason) in offload.moves.into_iter().take(self.moves_left) {
                    self.begin_move(fit.producer, from, fit.to, reason);
                }
                self.report_remaining_heat(from, &why);
            } else {
                for (at, relay) in offload.before {
                    self.projection.relays[at] = relay;
                }
                self.remark(format!(
                    "relay {id}: {why}; neither one move nor several of {QUICK_LOAD:.2} in sum \
                     ({QUICK_SMALL_LOAD:.2} of small producers) bring it to {EASED:.2}: left for a burst until \
                     it has lasted for {LASTING_MS} ms"
                ));
            }
        }
    }

    /// Makes the moves on the projection that a hot relay needs: of one that does not last, until they are too
    /// much.
    fn try_offload(&mut self, from: usize, why: &str, lasts: bool) -> Offload {
        let to = self.open_to_all(from);
        let id = self.projection.relays[from].id.0;
        let mut offload = Offload { moves: Vec::new(), before: Vec::new(), load: 0.0 };
        let goes_on = |offload: &Offload, left| {
            if lasts { offload.moves.len() < left } else { offload.is_quick() }
        };
        while goes_on(&offload, self.moves_left) && self.projection.relays[from].load().0 > EASED {
            let Some(fit) = self.projection.best_fit(from, &to) else { break };
            let target =
                self.projection.relays[fit.to].load_with(&self.projection.needs[fit.producer]);
            let reason = format!(
                "relay {id} is hot: {why} (above {HOT:.2} in {HOT_SAMPLES} reports); this producer is {:.2} \
                 of it and lifts relay {} to {target:.2} (at most {ROOM:.2})",
                fit.size, self.projection.relays[fit.to].id.0
            );
            for at in [from, fit.to] {
                if offload.before.iter().all(|(kept, _)| *kept != at) {
                    offload.before.push((at, self.projection.relays[at].clone()));
                }
            }
            self.projection.apply_move(fit.producer, from, fit.to);
            offload.load += fit.size;
            offload.moves.push((fit, reason));
        }
        offload
    }

    /// Remembers since when relays are hot, and warm. Both last until the load is down again, whatever single
    /// reports say; and while a plan's moves take effect nothing is known.
    fn note_heat(&mut self) {
        let now = self.now();
        for relay in &self.projection.relays {
            let Some(history) = self.history.relay_mut(relay.id) else { continue };
            if relay.hot.is_some() {
                history.hot_since.get_or_insert(now);
            } else if history.fresh >= HOT_SAMPLES && relay.reports && relay.reported <= EASED {
                history.hot_since = None;
            }
            if relay.reported > WARM {
                history.warm_since.get_or_insert(now);
            } else if history.fresh >= HOT_SAMPLES && relay.reports {
                history.warm_since = None;
            }
        }
    }

    /// Returns whether a hot relay has more than a burst: it lasts, or is too much to be waited
    /// for, or it is not load.
    pub(crate) fn is_no_burst(&self, at: usize) -> bool {
        let relay = &self.projection.relays[at];
        let since = self.history.relay(relay.id).and_then(|relay| relay.hot_since);
        let lasts = since.is_some_and(|since| self.now().since_ms(since) >= LASTING_MS);
        lasts
            || relay.load().0 > SEVERE
            || matches!(relay.hot, Some((Kpi::Latency | Kpi::Memory, _)))
    }

    /// Returns whether the whole queue's load has just risen.
    fn rises(&self) -> bool {
        self.history.scaled_out_at.is_some_and(|at| self.now().since_ms(at) < RISING_MS)
    }

    /// Returns whether a relay has been warm for that long.
    fn stays_warm(&self, at: usize) -> bool {
        let since =
            self.history.relay(self.projection.relays[at].id).and_then(|relay| relay.warm_since);
        since.is_some_and(|since| self.now().since_ms(since) >= LASTING_MS)
    }

    /// Says why a hot relay keeps its load.
    fn report_remaining_heat(&mut self, from: usize, why: &str) {
        let relay = &self.projection.relays[from];
        let (load, id) = (relay.load().0, relay.id.0);
        if load <= EASED {
            return;
        }
        let kpi = relay.first().1 as usize;
        let limit = relay.limits.values[kpi];
        let largest = relay.producers.iter().max_by(|a, b| {
            self.projection.needs[**a][kpi].total_cmp(&self.projection.needs[**b][kpi])
        });
        let share = largest.map_or(0.0, |at| self.projection.needs[*at][kpi] / limit);
        let listeners = f64::from(self.projection.snapshot.listeners)
            / relay.limits.values[Kpi::Clients as usize];
        if listeners > HOT {
            let reason = format!(
                "relay {id}: {why}; {} listeners alone are {listeners:.2} of clients_max, and each relay \
                 has them all: no relay more helps",
                self.projection.snapshot.listeners
            );
            self.notify(NoticeCode::Unsplittable, reason);
        } else if share > HOT && !relay.first().1.falls_late() {
            let producer = largest.map_or(0, |at| self.projection.snapshot.producers[*at].id.0);
            let reason = format!(
                "relay {id}: {why}; producer {producer:032x} alone is {share:.2} of the limit (above \
                 {HOT:.2}): split its topics over several producers, raise the limit, or take larger relays"
            );
            self.notify(NoticeCode::Unsplittable, reason);
        } else if self.moves_left == 0 {
            self.remark(format!(
                "relay {id}: {why}; {MOVES_MAX} moves are begun, the rest follows"
            ));
        } else {
            let still = relay.producers.iter().filter(|at| !self.projection.movable(**at)).count();
            self.remark(format!(
                "relay {id}: {why}; none of its {} producers fits elsewhere below {ROOM:.2} ({still} \
                 moved less than {PRODUCER_COOLDOWN_MS} ms ago, are moving or fixed)",
                relay.producers.len()
            ));
        }
    }

    /// Moves load of relays that stay warm to relays that are nearly empty.
    pub(crate) fn rebalance(&mut self) {
        let cold: Vec<usize> = (0..self.projection.relays.len())
            .filter(|at| self.is_open(*at) && self.projection.relays[*at].load().0 < COLD)
            .collect();
        if cold.is_empty() {
            return;
        }
        let warm = self.by_load(|relay| {
            relay.accepts_producers()
                && !relay.awaits_effect
                && relay.hot.is_none()
                && relay.load().0 > WARM
        });
        for from in warm {
            if !self.stays_warm(from) {
                continue;
            }
            let id = self.projection.relays[from].id.0;
            while self.moves_left > 0 && self.projection.relays[from].load().0 > ROOM {
                let (_, kpi) = self.projection.relays[from].load();
                let why = self.projection.relays[from]
                    .limits
                    .describe(kpi, &self.projection.relays[from].usage);
                let why = why.to_string();
                let Some(fit) = self.projection.best_fit(from, &cold) else { break };
                let to = self.projection.relays[fit.to].id.0;
                let reason = format!(
                    "relay {id} is warm: {why} (above {WARM:.2} for {LASTING_MS} ms) and relay {to} was below {COLD:.2}; this \
                     producer is {:.2} of it",
                    fit.size
                );
                self.apply_move(fit.producer, from, fit.to, reason);
            }
        }
    }

    /// Empties relays that drain, and stops those that are empty or at their deadline.
    pub(crate) fn empty_draining(&mut self) {
        let any_hot = self.projection.relays.iter().any(|relay| relay.hot.is_some());
        let mut left = if any_hot { DRAIN_MOVES } else { self.moves_left };
        for from in 0..self.projection.relays.len() {
            if self.projection.relays[from].state != RelayState::Draining {
                continue;
            }
            let id = self.projection.relays[from].id;
            let since = self.history.relay(id).and_then(|relay| relay.draining_since);
            let drained_ms = since.map_or(0, |since| self.now().since_ms(since));
            if self.projection.relays[from].producers.is_empty()
                && !self.projection.relays[from].awaits_effect
            {
                let reason = format!("it drained for {drained_ms} ms and has no producer any more");
                self.act_on(id, Action::Stop { relay: id }, reason);
            } else if drained_ms >= DRAIN_MS {
                let reason = format!(
                    "it drained for {drained_ms} ms (limit {DRAIN_MS} ms); {} producers are cut",
                    self.projection.relays[from].producers.len()
                );
                self.act_on(id, Action::Stop { relay: id }, reason);
            } else {
                left = self.empty_one(from, drained_ms, left);
            }
        }
    }

    /// Moves producers off one relay that drains; returns how many moves are left.
    fn empty_one(&mut self, from: usize, drained_ms: u64, mut left: usize) -> usize {
        let to = self.open_to_all(from);
        let id = self.projection.relays[from].id.0;
        // What has to go goes to the least loaded, be it as it may.
        let must = drained_ms >= DRAIN_MS / 2 || self.is_over_limits();
        let mut largest_first = self.projection.relays[from].producers.clone();
        let (_, kpi) = self.projection.relays[from].load();
        let need = |at: &usize| self.projection.needs[*at][kpi as usize];
        largest_first.sort_by(|a, b| need(b).total_cmp(&need(a)).then(a.cmp(b)));
        let mut stuck = 0;
        for at in largest_first {
            let producer = &self.projection.snapshot.producers[at];
            if producer.moving || producer.fixed {
                continue;
            }
            let fits = self.projection.least_loaded(at, &to, ROOM);
            let forced = || self.projection.least_loaded(at, &to, f64::INFINITY).filter(|_| must);
            let Some(to) = fits.or_else(forced) else {
                stuck += 1;
                continue;
            };
            if left == 0 || self.moves_left == 0 {
                break;
            }
            let load = self.projection.relays[to].load_with(&self.projection.needs[at]);
            let to_id = self.projection.relays[to].id.0;
            let reason = format!(
                "relay {id} drains; relay {to_id} is the least loaded and comes to {load:.2} (at most \
                 {ROOM:.2}{})",
                if fits.is_none() { ", passed because the relay has to go" } else { "" }
            );
            self.apply_move(at, from, to, reason);
            left -= 1;
        }
        if stuck > 0 {
            self.remark(format!(
                "relay {id} drains: {stuck} producers fit nowhere below {ROOM:.2} and wait"
            ));
        }
        left
    }

    /// Returns whether a relay takes producers and no plan waits for it.
    pub(crate) fn is_open(&self, at: usize) -> bool {
        let relay = &self.projection.relays[at];
        relay.accepts_producers() && !relay.awaits_effect && relay.hot.is_none()
    }

    /// Returns all relays that a producer of `from` may go to.
    fn open_to_all(&self, from: usize) -> Vec<usize> {
        (0..self.projection.relays.len()).filter(|at| *at != from && self.is_open(*at)).collect()
    }

    /// Returns the hot relays: those first whose broken rule is first by priority, of these the
    /// most loaded.
    pub(crate) fn hot_by_priority(&self) -> Vec<usize> {
        let mut hot = self.by_load(|relay| relay.hot.is_some() && relay.state == RelayState::Up);
        hot.sort_by_key(|at| {
            let relay = &self.projection.relays[*at];
            relay.hot.map_or(usize::MAX, |(kpi, _)| relay.limits.place(kpi))
        });
        hot
    }

    /// Returns the relays of a kind, most loaded first.
    fn by_load(&self, of_kind: impl Fn(&ProjectedRelay) -> bool) -> Vec<usize> {
        let of_kind =
            (0..self.projection.relays.len()).filter(|at| of_kind(&self.projection.relays[*at]));
        let mut found: Vec<(f64, usize)> =
            of_kind.map(|at| (self.projection.relays[at].load().0, at)).collect();
        found.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        found.into_iter().map(|(_, at)| at).collect()
    }
}
