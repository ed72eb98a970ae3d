//! Which producer leaves a loaded relay, and for where: best fit, never above [`ROOM`].

use super::kpi::{KPIS, Kpi, Limits, Vector, vector};
use super::projection::Projection;
use super::tuning::{NEWCOMERS_BELOW, ROOM, TARGET};
use super::view::Load;
use crate::sla::Sla;

/// A producer's share of its relay's limit below which moving it helps nobody.
const SIZE_MIN: f64 = 1e-4;

/// Candidates that are compared with all destinations for one choice; the others differ little in size.
const TRIED_MAX: usize = 128;

/// A choice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Fit {
    pub(crate) producer: usize,
    pub(crate) to: usize,
    /// Its share of the limit of the relay that it leaves.
    pub(crate) size: f64,
}

/// Returns whether a producer of which nothing is known may go to a relay with that load, capacity
/// and agreement: it is below [`NEWCOMERS_BELOW`]. Not where neither bytes in nor bytes out have a
/// limit: those that came since the last report are not seen in the other figures.
#[must_use]
pub fn has_room_for_newcomers(sla: &Sla, capacity: &Load, load: &Load) -> bool {
    let limits = Limits::of(sla, capacity);
    let bytes = [Kpi::BytesIn, Kpi::BytesOut].map(|kpi| limits.values[kpi as usize]);
    bytes.iter().any(|limit| limit.is_finite()) && limits.load(&vector(load)).0 < NEWCOMERS_BELOW
}

impl Projection<'_> {
    /// Returns the smallest producer that alone brings the relay down to [`TARGET`], else the
    /// largest; of those that find room.
    pub(crate) fn best_fit(&self, from: usize, destinations: &[usize]) -> Option<Fit> {
        let relay = &self.relays[from];
        if relay.producers.len() < 2 || destinations.is_empty() {
            return None;
        }
        let (load, kpi) = relay.first();
        let sized = self.sized(from, kpi);
        let enough = sized.partition_point(|(size, _)| *size < load - TARGET);
        let room = self.largest_room(destinations);
        let fits_somewhere = |at: usize| (0..KPIS).all(|kpi| self.needs[at][kpi] <= room[kpi]);
        let order = sized[enough..].iter().chain(sized[..enough].iter().rev());
        order
            .filter(|(_, at)| fits_somewhere(*at))
            .take(TRIED_MAX)
            .find_map(|(size, at)| {
                let to = self.least_loaded(*at, destinations, ROOM)?;
                Some(Fit { producer: *at, to, size: *size })
            })
            .or_else(|| self.fit_alone(from, destinations, &sized))
    }

    /// Returns a producer that is above the target alone, and so fits nowhere, but is better off
    /// alone on an empty relay than beside others.
    fn fit_alone(
        &self,
        from: usize,
        destinations: &[usize],
        sized: &[(f64, usize)],
    ) -> Option<Fit> {
        let to = destinations.iter().copied().find(|to| self.relays[*to].producers.is_empty())?;
        let gains = |at: usize| {
            let mut after = [self.relays[from].clone(), self.relays[to].clone()];
            for kpi in 0..KPIS {
                after[0].usage[kpi] -= self.needs[at][kpi];
                after[1].usage[kpi] += self.needs[at][kpi];
            }
            let before = self.relays[from].excess() + self.relays[to].excess();
            before - after[0].excess() - after[1].excess() > SIZE_MIN
        };
        let tried = sized.iter().take(TRIED_MAX);
        let (size, producer) = tried.copied().find(|(size, at)| *size > ROOM && gains(*at))?;
        Some(Fit { producer, to, size })
    }

    /// Returns the relay's movable producers with their share of its limit, smallest first.
    fn sized(&self, from: usize, kpi: Kpi) -> Vec<(f64, usize)> {
        let relay = &self.relays[from];
        let size = |at: usize| self.needs[at][kpi as usize] / relay.limits.values[kpi as usize];
        let mut sized: Vec<(f64, usize)> = relay
            .producers
            .iter()
            .filter(|at| self.movable(**at))
            .map(|at| (size(*at), *at))
            .filter(|(size, _)| *size > SIZE_MIN)
            .collect();
        sized.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        sized
    }

    /// Returns the most that any of the destinations has room for, by dimension.
    fn largest_room(&self, destinations: &[usize]) -> Vector {
        let mut room = [0.0; KPIS];
        for to in destinations {
            let relay = &self.relays[*to];
            for (kpi, room) in room.iter_mut().enumerate() {
                *room = (relay.limits.values[kpi] * ROOM - relay.usage[kpi]).max(*room);
            }
        }
        // Latency does not move with a producer.
        room[Kpi::Latency as usize] = f64::INFINITY;
        room
    }

    /// Returns the destination that will be loaded least with the producer on it, if that is within
    /// `level`.
    pub(crate) fn least_loaded(
        &self,
        producer: usize,
        destinations: &[usize],
        level: f64,
    ) -> Option<usize> {
        let need = &self.needs[producer];
        let mut best: Option<(f64, usize)> = None;
        for to in destinations {
            let load = self.relays[*to].load_with(need);
            if load <= level && best.is_none_or(|(least, _)| load < least) {
                best = Some((load, *to));
            }
        }
        best.map(|(_, to)| to)
    }
}
