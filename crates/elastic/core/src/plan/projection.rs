//! The planner's working copy of a snapshot: each relay with its projected load, changed move by move.

use quelea_elastic_proto::{RelayId, Time};

use super::history::{History, RelayHistory};
use super::kpi::{KPIS, Kpi, Limits, Vector, vector};
use super::tuning::{EASED, HOT, HOT_SAMPLES, LAG_MAX, PRODUCER_COOLDOWN_MS, ROOM, STALE_MS};
use super::view::{Load, ProducerView, RelayState, RelayView, Snapshot};
use crate::sla::Sla;

/// All relays, by id, and what their producers are estimated to need.
#[derive(Clone)]
pub(crate) struct Projection<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) now: Time,
    pub(crate) relays: Vec<ProjectedRelay>,
    /// By the producer's place in the snapshot.
    pub(crate) needs: Vec<Vector>,
    /// Producers whose relay is not known (any more).
    pub(crate) unassigned: Vec<usize>,
    /// What a new relay could carry.
    pub(crate) new_limits: Limits,
}

/// A relay and its load.
#[derive(Clone)]
pub(crate) struct ProjectedRelay {
    pub(crate) id: RelayId,
    pub(crate) state: RelayState,
    pub(crate) limits: Limits,
    /// What it carries once all moves so far are done, by estimate.
    pub(crate) usage: Vector,
    /// Places of its producers in the snapshot.
    pub(crate) producers: Vec<usize>,
    /// Its last report is recent.
    pub(crate) reports: bool,
    /// A plan's actions on it are not done, or not yet seen in its reports.
    pub(crate) awaits_effect: bool,
    /// Its reports say that it is hot: by which KPI, and what it was in the last one.
    pub(crate) hot: Option<(Kpi, Vector)>,
    /// Its load by its last reports alone, which knows at once that a burst is over.
    pub(crate) reported: f64,
    /// A witness says that it is gone.
    pub(crate) suspected: bool,
}

impl ProjectedRelay {
    pub(crate) fn load(&self) -> (f64, Kpi) {
        self.limits.load(&self.usage)
    }

    /// Returns which limit its producers are moved for, and the part of it that is used: of those
    /// passed the first by priority.
    pub(crate) fn first(&self) -> (f64, Kpi) {
        self.limits.first(&self.usage, EASED)
    }

    /// Returns whether producers may be sent there.
    pub(crate) fn accepts_producers(&self) -> bool {
        self.state == RelayState::Up && self.reports && !self.suspected
    }

    /// Returns its load with that much more. Latency is its own: no sum gives it.
    pub(crate) fn load_with(&self, need: &Vector) -> f64 {
        let mut usage = self.usage;
        for kpi in Kpi::ALL.into_iter().filter(|kpi| kpi.adds_up()) {
            usage[kpi as usize] += need[kpi as usize];
        }
        self.limits.load(&usage).0
    }

    /// Returns by how much it is above what moves may fill it to, over all dimensions.
    pub(crate) fn excess(&self) -> f64 {
        let over = |kpi: usize| (self.usage[kpi] / self.limits.values[kpi] - ROOM).max(0.0);
        (0..KPIS).map(over).sum()
    }
}

impl<'a> Projection<'a> {
    pub(crate) fn new(snapshot: &'a Snapshot, sla: &Sla, history: &History, now: Time) -> Self {
        let mut views: Vec<&RelayView> = snapshot.relays.iter().collect();
        views.sort_unstable_by_key(|view| view.id);
        let mut samples: Vec<RecentSamples> = Vec::with_capacity(views.len());
        let mut relays: Vec<ProjectedRelay> = Vec::with_capacity(views.len());
        // Both are by id, and the history has observed this snapshot.
        for (view, known) in views.iter().zip(history.relays()) {
            debug_assert_eq!(view.id, known.id);
            let from = view.samples.len().saturating_sub(known.fresh.min(HOT_SAMPLES));
            let recent = RecentSamples::of(&view.samples[from..]);
            relays.push(relay(view, sla, known, recent.samples(), now));
            samples.push(recent);
        }
        let new_limits = new_limits(&relays, sla);
        let mut projection =
            Self { snapshot, now, relays, needs: Vec::new(), unassigned: Vec::new(), new_limits };
        projection.assign_producers();
        projection.estimate(&samples);
        projection
    }

    fn assign_producers(&mut self) {
        let index = RelayIndex::of(&self.relays);
        let relays = self.snapshot.producers.iter().map(|producer| producer.relay);
        let found: Vec<Option<usize>> = relays.map(|relay| index.find(relay)).collect();
        let mut counts = vec![0; self.relays.len()];
        for relay in found.iter().flatten() {
            counts[*relay] += 1;
        }
        for (relay, count) in self.relays.iter_mut().zip(counts) {
            // One allocation each: a plan of a million relays' fleet is mostly this.
            relay.producers.reserve(count);
        }
        for (at, relay) in found.into_iter().enumerate() {
            match relay {
                Some(relay) => self.relays[relay].producers.push(at),
                None => self.unassigned.push(at),
            }
        }
    }

    pub(crate) fn find(&self, id: RelayId) -> Option<usize> {
        self.relays.binary_search_by_key(&id, |relay| relay.id).ok()
    }

    /// What each producer needs, and with it each relay. An average lags behind a rise: where a relay's
    /// own reports show more than the sum of its producers', each of them is held to need more.
    fn estimate(&mut self, samples: &[RecentSamples]) {
        self.needs = self.snapshot.producers.iter().map(estimate).collect();
        for (relay, recent) in self.relays.iter_mut().zip(samples) {
            let measured = if relay.reports { mean_of_last(recent.samples()) } else { [0.0; KPIS] };
            relay.reported = relay.limits.load(&measured).0;
            let mut sum = [0.0; KPIS];
            for &at in &relay.producers {
                add(&mut sum, &self.needs[at]);
            }
            let weight = weight_of(&sum);
            let factor = lag(&sum, &measured);
            for &at in &relay.producers {
                let need = &mut self.needs[at];
                let share = if sum[weight] > 0.0 { need[weight] / sum[weight] } else { 0.0 };
                for (need, factor) in need.iter_mut().zip(&factor) {
                    *need *= factor;
                }
                for kpi in Kpi::OF_RELAYS.map(|kpi| kpi as usize) {
                    if sum[kpi] == 0.0 {
                        need[kpi] = measured[kpi] * share;
                    }
                }
                need[Kpi::Latency as usize] = measured[Kpi::Latency as usize] * share;
            }
            relay.usage = std::array::from_fn(|kpi| measured[kpi].max(sum[kpi] * factor[kpi]));
            let present = f64::from(self.snapshot.listeners) + relay.producers.len() as f64;
            let clients = &mut relay.usage[Kpi::Clients as usize];
            *clients = clients.max(present);
        }
    }

    /// Returns whether a producer may be moved now.
    pub(crate) fn movable(&self, at: usize) -> bool {
        let producer = &self.snapshot.producers[at];
        // Time counts from the directory's start: one that never moved may go at once all the same.
        let rested = producer.moved_at == Time::ZERO
            || self.now.since_ms(producer.moved_at) >= PRODUCER_COOLDOWN_MS;
        !producer.fixed && !producer.moving && rested
    }

    /// Moves a producer on the projection.
    pub(crate) fn apply_move(&mut self, at: usize, from: usize, to: usize) {
        let need = self.needs[at];
        for (index, (kpi, need)) in Kpi::ALL.into_iter().zip(need).enumerate() {
            let left = &mut self.relays[from].usage[index];
            *left = (*left - need).max(0.0);
            if kpi.adds_up() {
                self.relays[to].usage[index] += need;
            }
        }
        self.relays[from].producers.retain(|other| *other != at);
        self.relays[to].producers.push(at);
    }

    /// Returns how many relays are in this state.
    pub(crate) fn count(&self, state: RelayState) -> u32 {
        self.relays.iter().filter(|relay| relay.state == state).count() as u32
    }

    /// Returns how many relays cost something.
    pub(crate) fn paid(&self) -> u32 {
        self.relays.len() as u32
    }
}

/// Finds a relay's place in the projection by its id: a hash table, since each producer asks.
struct RelayIndex {
    /// A relay and its place; a power of two of them, at most half of which are taken.
    slots: Vec<Option<(RelayId, usize)>>,
}

impl RelayIndex {
    fn of(relays: &[ProjectedRelay]) -> Self {
        let mut index = Self { slots: vec![None; (2 * relays.len() + 1).next_power_of_two()] };
        for (at, relay) in relays.iter().enumerate() {
            let mut slot = index.home(relay.id);
            while index.slots[slot].is_some() {
                slot = index.next(slot);
            }
            index.slots[slot] = Some((relay.id, at));
        }
        index
    }

    /// Returns the id's place in the hash table. Ids are counted up, so that their last bits tell
    /// them apart.
    fn home(&self, id: RelayId) -> usize {
        id.0 as usize & (self.slots.len() - 1)
    }

    fn next(&self, slot: usize) -> usize {
        (slot + 1) & (self.slots.len() - 1)
    }

    fn find(&self, id: RelayId) -> Option<usize> {
        let mut slot = self.home(id);
        while let Some((known, at)) = self.slots[slot] {
            if known == id {
                return Some(at);
            }
            slot = self.next(slot);
        }
        None
    }
}

/// A relay's last samples that count. In place: a plan of a hundred relays would else allocate as often.
struct RecentSamples {
    all: [Vector; HOT_SAMPLES],
    count: usize,
}

impl RecentSamples {
    fn of(samples: &[Load]) -> Self {
        let mut all = [[0.0; KPIS]; HOT_SAMPLES];
        for (place, sample) in all.iter_mut().zip(samples) {
            *place = vector(sample);
        }
        Self { all, count: samples.len().min(HOT_SAMPLES) }
    }

    fn samples(&self) -> &[Vector] {
        &self.all[..self.count]
    }
}

fn relay(
    view: &RelayView,
    sla: &Sla,
    known: &RelayHistory,
    recent: &[Vector],
    now: Time,
) -> ProjectedRelay {
    let limits = Limits::of(sla, &view.capacity);
    let reports = view.reported_at.is_some_and(|at| now.since_ms(at) < STALE_MS);
    ProjectedRelay {
        id: view.id,
        state: view.state,
        limits,
        usage: [0.0; KPIS],
        producers: Vec::new(),
        reports,
        awaits_effect: known.pending.is_some() || view.moves_under_way > 0,
        hot: if reports { heat(&limits, recent) } else { None },
        reported: 0.0,
        suspected: view.witnesses > 0,
    }
}

/// Returns whether the samples make a relay hot, and by what: of several limits the first by
/// priority.
fn heat(limits: &Limits, recent: &[Vector]) -> Option<(Kpi, Vector)> {
    let last = recent.last()?;
    let (_, kpi) = limits.first(last, HOT);
    let is_hot = |sample| limits.load(sample).0 > HOT;
    let enough = recent.len() >= HOT_SAMPLES;
    (enough && recent.iter().all(is_hot)).then_some((kpi, *last))
}

/// Returns the larger of both averages: quick to see a rise, slow to believe a fall.
fn estimate(producer: &ProducerView) -> Vector {
    let (fast, slow) = (vector(&producer.fast), vector(&producer.slow));
    let mut need: Vector = std::array::from_fn(|kpi| fast[kpi].max(slow[kpi]));
    need[Kpi::Clients as usize] = 1.0;
    need
}

/// Returns how much each dimension is above its producers' averages.
fn lag(sum: &Vector, measured: &Vector) -> Vector {
    let mut factor = [1.0; KPIS];
    for kpi in Kpi::ALL.into_iter().filter(|kpi| *kpi != Kpi::Clients) {
        let kpi = kpi as usize;
        if sum[kpi] > 0.0 && measured[kpi] > sum[kpi] {
            factor[kpi] = (measured[kpi] / sum[kpi]).min(LAG_MAX);
        }
    }
    factor
}

/// Returns what a relay's work is shared out by where it is not known per producer: bytes with
/// their fan-out, or the next best figure.
fn weight_of(sum: &Vector) -> usize {
    let order = [Kpi::BytesOut, Kpi::BytesIn, Kpi::MessagesIn, Kpi::Clients];
    let known = order.into_iter().find(|kpi| sum[*kpi as usize] > 0.0);
    known.unwrap_or(Kpi::Clients) as usize
}

/// Returns the mean of the last two samples: one alone is noise.
fn mean_of_last(recent: &[Vector]) -> Vector {
    let last = &recent[recent.len().saturating_sub(2)..];
    let mut mean = [0.0; KPIS];
    for sample in last {
        add(&mut mean, sample);
    }
    mean.map(|sum| sum / last.len().max(1) as f64)
}

pub(crate) fn add(sum: &mut Vector, more: &Vector) {
    for (sum, more) in sum.iter_mut().zip(more) {
        *sum += more;
    }
}

/// Returns the limits of a new relay: it is taken for as strong as the weakest one that serves.
fn new_limits(relays: &[ProjectedRelay], sla: &Sla) -> Limits {
    let mut least = Limits::of(sla, &Load::default());
    let up = relays.iter().filter(|relay| relay.state == RelayState::Up);
    for relay in up {
        for kpi in 0..KPIS {
            least.values[kpi] = least.values[kpi].min(relay.limits.values[kpi]);
        }
    }
    least
}
