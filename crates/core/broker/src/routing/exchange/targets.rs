//! Where an exchange's bindings lead, with how many bindings lead there.

use quelea_model::QueueId;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// An exchange's place in its router. Reused after the exchange is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ExchangeKey(pub(crate) u32);

/// One end of a binding, as the matchers know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Target {
    Queue(QueueId),
    Exchange(ExchangeKey),
}

/// From this many targets on, a map says where in the list each one stands.
const MAPPED_FROM: usize = 16;

/// A set of targets. Bindings that differ in nothing but their arguments share an element, so each
/// counts its bindings. Adding and removing take constant time: a fan-out may have 100,000.
#[derive(Debug, Default)]
pub(crate) struct Targets {
    list: SmallVec<[(Target, u32); 1]>,
    /// Present from [`MAPPED_FROM`] elements on.
    places: Option<Box<FxHashMap<Target, u32>>>,
}

impl Targets {
    pub(crate) fn add(&mut self, target: Target) {
        if let Some(at) = self.place(target) {
            self.list[at].1 += 1;
            return;
        }
        self.list.push((target, 1));
        match &mut self.places {
            Some(places) => {
                places.insert(target, self.list.len() as u32 - 1);
            }
            None if self.list.len() >= MAPPED_FROM => {
                let places = self.list.iter().enumerate().map(|(at, (t, _))| (*t, at as u32));
                self.places = Some(Box::new(places.collect()));
            }
            None => {}
        }
    }

    /// Takes one binding away; does nothing if there is none.
    pub(crate) fn remove(&mut self, target: Target) {
        let Some(at) = self.place(target) else { return };
        self.list[at].1 -= 1;
        if self.list[at].1 > 0 {
            return;
        }
        self.list.swap_remove(at);
        if self.list.len() < MAPPED_FROM {
            self.places = None;
        } else if let Some(places) = &mut self.places {
            places.remove(&target);
            if let Some((moved, _)) = self.list.get(at) {
                places.insert(*moved, at as u32);
            }
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Target> {
        self.list.iter().map(|(target, _)| *target)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    fn place(&self, target: Target) -> Option<usize> {
        match &self.places {
            Some(places) => places.get(&target).map(|at| *at as usize),
            None => self.list.iter().position(|(t, _)| *t == target),
        }
    }
}

/// What the matchers of one message found so far.
#[derive(Debug, Default)]
pub(crate) struct RouteMatches {
    /// With repetitions, in no order.
    pub(crate) queues: Vec<QueueId>,
    /// With repetitions, in no order.
    pub(crate) exchanges: Vec<ExchangeKey>,
}

impl RouteMatches {
    pub(crate) fn add(&mut self, target: Target) {
        match target {
            Target::Queue(queue) => self.queues.push(queue),
            Target::Exchange(exchange) => self.exchanges.push(exchange),
        }
    }

    pub(crate) fn add_all(&mut self, targets: &Targets) {
        targets.iter().for_each(|target| self.add(target));
    }

    pub(crate) fn clear(&mut self) {
        self.queues.clear();
        self.exchanges.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn targets_are_a_set_that_counts(
            steps in proptest::collection::vec((any::<bool>(), 0u32..40), 0..400),
        ) {
            let mut targets = Targets::default();
            let mut model = BTreeMap::<u32, u32>::new();
            for (add, queue) in steps {
                let target = Target::Queue(QueueId(queue));
                if add {
                    targets.add(target);
                    *model.entry(queue).or_default() += 1;
                } else {
                    targets.remove(target);
                    let count = model.get(&queue).copied().unwrap_or(0).saturating_sub(1);
                    model.insert(queue, count);
                    model.retain(|_, count| *count > 0);
                }
                let mut have: Vec<_> = targets.iter().collect();
                have.sort_unstable();
                let want: Vec<_> = model.keys().map(|q| Target::Queue(QueueId(*q))).collect();
                prop_assert_eq!(have, want);
                prop_assert_eq!(targets.is_empty(), model.is_empty());
            }
        }
    }
}
