//! Moves: off hot relays, off warm ones onto cold ones, off those that drain.

use quelea_elastic_proto::frame::NoticeCode;

use super::board::Seat;
use super::draft::Draft;
use super::kpi::Kpi;
use super::pick::Pick;
use super::tuning::{
    COLD, DRAIN_MS, EASED, HOT, HOT_SAMPLES, LASTING_MS, MOVES_MAX, PRODUCER_COOLDOWN_MS,
    QUICK_LOAD, QUICK_MOVES_MAX, QUICK_SMALL, QUICK_SMALL_LOAD, RISING_MS, ROOM, SEVERE, WARM,
};
use super::view::{Action, RelayState};

/// Moves that drains may begin while there are hot relays.
const DRAIN_MOVES: usize = MOVES_MAX / 3;

/// What it takes to bring a hot relay to [`EASED`].
struct Relief {
    moves: Vec<(Pick, String)>,
    /// The seats as they were.
    before: Vec<(usize, Seat)>,
    /// What the moves carry, as a share of the relay's limit.
    load: f64,
}

impl Relief {
    /// Whether it is so little that it is worth it also for a burst. Asked after each move, the largest of which
    /// come first: a large one among small ones makes it wait, too.
    fn is_quick(&self) -> bool {
        let moves = self.moves.len();
        let most =
            if self.load <= QUICK_SMALL * moves as f64 { QUICK_SMALL_LOAD } else { QUICK_LOAD };
        moves <= 1 || (moves <= QUICK_MOVES_MAX && self.load <= most)
    }
}

impl Draft<'_> {
    /// Takes load off hot relays: at once where few moves do it, what takes more when it lasts. Moves that one
    /// plan has no room for are the next one's.
    pub(crate) fn relieve(&mut self) {
        self.note_heat();
        for from in self.by_load(|seat| seat.hot.is_some() && seat.state == RelayState::Up) {
            let id = self.board.seats[from].id.0;
            if self.board.seats[from].waits {
                self.remark(format!("relay {id} is hot, and waits for the effect of a plan"));
                continue;
            }
            let Some((kpi, last)) = self.board.seats[from].hot else { continue };
            let why = self.board.seats[from].limits.tell(kpi, &last).to_string();
            let producers = self.board.seats[from].producers.len();
            // One producer alone cannot be moved off its burst.
            let lasts = producers < 2 || self.is_no_burst(from) || self.rises();
            let relief = self.try_to_relieve(from, &why, lasts);
            let eased = self.board.seats[from].load().0 <= EASED;
            if lasts || (eased && relief.is_quick()) {
                for (pick, reason) in relief.moves.into_iter().take(self.moves_left) {
                    self.begin_move(pick.producer, from, pick.to, reason);
                }
                self.tell_what_is_left(from, &why);
            } else {
                for (at, seat) in relief.before {
                    self.board.seats[at] = seat;
                }
                self.remark(format!(
                    "relay {id}: {why}; neither one move nor several of {QUICK_LOAD:.2} in sum \
                     ({QUICK_SMALL_LOAD:.2} of small producers) bring it to {EASED:.2}: left for a burst until \
                     it has lasted for {LASTING_MS} ms"
                ));
            }
        }
    }

    /// Makes the moves on the board that a hot relay needs: of one that does not last, until they are too
    /// much.
    fn try_to_relieve(&mut self, from: usize, why: &str, lasts: bool) -> Relief {
        let to = self.open_to_all(from);
        let id = self.board.seats[from].id.0;
        let mut relief = Relief { moves: Vec::new(), before: Vec::new(), load: 0.0 };
        let goes_on = |relief: &Relief, left| {
            if lasts { relief.moves.len() < left } else { relief.is_quick() }
        };
        while goes_on(&relief, self.moves_left) && self.board.seats[from].load().0 > EASED {
            let Some(pick) = self.board.pick(from, &to) else { break };
            let target = self.board.seats[pick.to].load_with(&self.board.needs[pick.producer]);
            let reason = format!(
                "relay {id} is hot: {why} (above {HOT:.2} in {HOT_SAMPLES} reports); this producer is {:.2} \
                 of it and lifts relay {} to {target:.2} (at most {ROOM:.2})",
                pick.size, self.board.seats[pick.to].id.0
            );
            for at in [from, pick.to] {
                if relief.before.iter().all(|(kept, _)| *kept != at) {
                    relief.before.push((at, self.board.seats[at].clone()));
                }
            }
            self.board.shift(pick.producer, from, pick.to);
            relief.load += pick.size;
            relief.moves.push((pick, reason));
        }
        relief
    }

    /// Remembers since when relays are hot, and warm. Both last until the load is down again, whatever single
    /// reports say; and while a plan's moves take effect nothing is known.
    fn note_heat(&mut self) {
        let now = self.now();
        for seat in &self.board.seats {
            let Some(relay) = self.history.relay_mut(seat.id) else { continue };
            if seat.hot.is_some() {
                relay.hot_since.get_or_insert(now);
            } else if relay.fresh >= HOT_SAMPLES && seat.reports && seat.reported <= EASED {
                relay.hot_since = None;
            }
            if seat.reported > WARM {
                relay.warm_since.get_or_insert(now);
            } else if relay.fresh >= HOT_SAMPLES && seat.reports {
                relay.warm_since = None;
            }
        }
    }

    /// Whether a hot relay has more than a burst: it lasts, or is too much to be waited for, or it is not load.
    pub(crate) fn is_no_burst(&self, at: usize) -> bool {
        let seat = &self.board.seats[at];
        let since = self.history.relay(seat.id).and_then(|relay| relay.hot_since);
        let lasts = since.is_some_and(|since| self.now().since_ms(since) >= LASTING_MS);
        lasts || seat.load().0 > SEVERE || matches!(seat.hot, Some((Kpi::Latency, _)))
    }

    /// Whether the whole queue's load has just risen.
    fn rises(&self) -> bool {
        self.history.scaled_out_at.is_some_and(|at| self.now().since_ms(at) < RISING_MS)
    }

    /// Whether one has been warm for that long.
    fn stays_warm(&self, at: usize) -> bool {
        let since = self.history.relay(self.board.seats[at].id).and_then(|relay| relay.warm_since);
        since.is_some_and(|since| self.now().since_ms(since) >= LASTING_MS)
    }

    /// Says why a hot relay keeps its load.
    fn tell_what_is_left(&mut self, from: usize, why: &str) {
        let seat = &self.board.seats[from];
        let (load, id) = (seat.load().0, seat.id.0);
        if load <= EASED {
            return;
        }
        let kpi = seat.load().1 as usize;
        let limit = seat.limits.values[kpi];
        let largest = seat
            .producers
            .iter()
            .max_by(|a, b| self.board.needs[**a][kpi].total_cmp(&self.board.needs[**b][kpi]));
        let share = largest.map_or(0.0, |at| self.board.needs[*at][kpi] / limit);
        let listeners = f64::from(self.board.snapshot.listeners) / seat.limits.values[5];
        if listeners > HOT {
            let reason = format!(
                "relay {id}: {why}; {} listeners alone are {listeners:.2} of clients_max, and each relay \
                 has them all: no relay more helps",
                self.board.snapshot.listeners
            );
            self.notify(NoticeCode::Unsplittable, reason);
        } else if share > HOT {
            let producer = largest.map_or(0, |at| self.board.snapshot.producers[*at].id.0);
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
            let still = seat.producers.iter().filter(|at| !self.board.movable(**at)).count();
            self.remark(format!(
                "relay {id}: {why}; none of its {} producers fits elsewhere below {ROOM:.2} ({still} \
                 moved less than {PRODUCER_COOLDOWN_MS} ms ago, are moving or fixed)",
                seat.producers.len()
            ));
        }
    }

    /// Gives load of relays that stay warm to relays that are nearly empty.
    pub(crate) fn level(&mut self) {
        let cold: Vec<usize> = (0..self.board.seats.len())
            .filter(|at| self.is_open(*at) && self.board.seats[*at].load().0 < COLD)
            .collect();
        if cold.is_empty() {
            return;
        }
        let warm = self.by_load(|seat| {
            seat.takes() && !seat.waits && seat.hot.is_none() && seat.load().0 > WARM
        });
        for from in warm {
            if !self.stays_warm(from) {
                continue;
            }
            let id = self.board.seats[from].id.0;
            while self.moves_left > 0 && self.board.seats[from].load().0 > ROOM {
                let (_, kpi) = self.board.seats[from].load();
                let why = self.board.seats[from].limits.tell(kpi, &self.board.seats[from].usage);
                let why = why.to_string();
                let Some(pick) = self.board.pick(from, &cold) else { break };
                let to = self.board.seats[pick.to].id.0;
                let reason = format!(
                    "relay {id} is warm: {why} (above {WARM:.2} for {LASTING_MS} ms) and relay {to} was below {COLD:.2}; this \
                     producer is {:.2} of it",
                    pick.size
                );
                self.shift(pick.producer, from, pick.to, reason);
            }
        }
    }

    /// Empties relays that drain, and stops those that are empty or at their deadline.
    pub(crate) fn empty_draining(&mut self) {
        let any_hot = self.board.seats.iter().any(|seat| seat.hot.is_some());
        let mut left = if any_hot { DRAIN_MOVES } else { self.moves_left };
        for from in 0..self.board.seats.len() {
            if self.board.seats[from].state != RelayState::Draining {
                continue;
            }
            let id = self.board.seats[from].id;
            let since = self.history.relay(id).and_then(|relay| relay.draining_since);
            let drained_ms = since.map_or(0, |since| self.now().since_ms(since));
            if self.board.seats[from].producers.is_empty() && !self.board.seats[from].waits {
                let reason = format!("it drained for {drained_ms} ms and has no producer any more");
                self.act_on(id, Action::Stop { relay: id }, reason);
            } else if drained_ms >= DRAIN_MS {
                let reason = format!(
                    "it drained for {drained_ms} ms (limit {DRAIN_MS} ms); {} producers are cut",
                    self.board.seats[from].producers.len()
                );
                self.act_on(id, Action::Stop { relay: id }, reason);
            } else {
                left = self.empty_one(from, drained_ms, left);
            }
        }
    }

    /// Moves producers off one relay that drains; gives back how many moves are left.
    fn empty_one(&mut self, from: usize, drained_ms: u64, mut left: usize) -> usize {
        let to = self.open_to_all(from);
        let id = self.board.seats[from].id.0;
        // What has to go goes to the least loaded, be it as it may.
        let must = drained_ms >= DRAIN_MS / 2 || self.is_over_its_means();
        let mut largest_first = self.board.seats[from].producers.clone();
        let (_, kpi) = self.board.seats[from].load();
        let need = |at: &usize| self.board.needs[*at][kpi as usize];
        largest_first.sort_by(|a, b| need(b).total_cmp(&need(a)).then(a.cmp(b)));
        let mut stuck = 0;
        for at in largest_first {
            let producer = &self.board.snapshot.producers[at];
            if producer.moving || producer.fixed {
                continue;
            }
            let fits = self.board.least_loaded(at, &to, ROOM);
            let forced = || self.board.least_loaded(at, &to, f64::INFINITY).filter(|_| must);
            let Some(to) = fits.or_else(forced) else {
                stuck += 1;
                continue;
            };
            if left == 0 || self.moves_left == 0 {
                break;
            }
            let load = self.board.seats[to].load_with(&self.board.needs[at]);
            let to_id = self.board.seats[to].id.0;
            let reason = format!(
                "relay {id} drains; relay {to_id} is the least loaded and comes to {load:.2} (at most \
                 {ROOM:.2}{})",
                if fits.is_none() { ", passed because the relay has to go" } else { "" }
            );
            self.shift(at, from, to, reason);
            left -= 1;
        }
        if stuck > 0 {
            self.remark(format!(
                "relay {id} drains: {stuck} producers fit nowhere below {ROOM:.2} and wait"
            ));
        }
        left
    }

    /// Whether a relay takes producers and no plan waits for it.
    pub(crate) fn is_open(&self, at: usize) -> bool {
        let seat = &self.board.seats[at];
        seat.takes() && !seat.waits && seat.hot.is_none()
    }

    /// All relays that a producer of `from` may go to.
    fn open_to_all(&self, from: usize) -> Vec<usize> {
        (0..self.board.seats.len()).filter(|at| *at != from && self.is_open(*at)).collect()
    }

    /// Relays of a kind, most loaded first.
    fn by_load(&self, of_kind: impl Fn(&Seat) -> bool) -> Vec<usize> {
        let of_kind = (0..self.board.seats.len()).filter(|at| of_kind(&self.board.seats[*at]));
        let mut found: Vec<(f64, usize)> =
            of_kind.map(|at| (self.board.seats[at].load().0, at)).collect();
        found.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        found.into_iter().map(|(_, at)| at).collect()
    }
}
