//! The places of connections, and who gives way when all are taken: not the newcomer, but a connection without a
//! request under way of the address that has most, the oldest first.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quelea_net::network_of;
use slab::Slab;
use tokio::task::AbortHandle;

/// All places.
pub(crate) struct Places {
    max: usize,
    table: Arc<Mutex<Table>>,
}

/// A connection's place; it is given back when it is dropped, however the connection ends.
pub(crate) struct Place {
    table: Arc<Mutex<Table>>,
    number: usize,
}

#[derive(Default)]
struct Table {
    taken: Slab<Taken>,
    /// Places that were ever taken: a higher one is a younger connection.
    last: u64,
}

struct Taken {
    network: IpAddr,
    age: u64,
    is_at_work: bool,
    /// It was asked to give way.
    is_leaving: bool,
    abort: Option<AbortHandle>,
}

impl Places {
    pub(crate) fn new(max: usize) -> Self {
        Self { max, table: Arc::default() }
    }

    /// Takes a place, and says whether another connection gives way for it; `None` if none can.
    pub(crate) fn take(&self, peer: IpAddr) -> Option<(Place, bool)> {
        let mut table = lock(&self.table);
        let staying = table.taken.iter().filter(|(_, taken)| !taken.is_leaving).count();
        let gives_way = staying >= self.max;
        if gives_way {
            let victim = table.idle_of_most()?;
            let taken = &mut table.taken[victim];
            taken.is_leaving = true;
            // Its place is given back when its task is dropped.
            taken.abort.take().iter().for_each(AbortHandle::abort);
        }
        table.last += 1;
        let taken = Taken {
            network: network_of(peer),
            age: table.last,
            is_at_work: false,
            is_leaving: false,
            abort: None,
        };
        let number = table.taken.insert(taken);
        Some((Place { table: Arc::clone(&self.table), number }, gives_way))
    }

    /// What ends a connection. It may have ended already.
    pub(crate) fn set_abort(&self, number: usize, abort: AbortHandle) {
        if let Some(taken) = lock(&self.table).taken.get_mut(number) {
            taken.abort = Some(abort);
        }
    }
}

impl Table {
    /// Returns, of the connections without a request under way, the oldest of the address that has
    /// most.
    fn idle_of_most(&self) -> Option<usize> {
        let mut counts = HashMap::<IpAddr, usize>::new();
        for (_, taken) in self.taken.iter().filter(|(_, taken)| !taken.is_leaving) {
            *counts.entry(taken.network).or_default() += 1;
        }
        let can_go =
            |taken: &Taken| !taken.is_at_work && !taken.is_leaving && taken.abort.is_some();
        let idle = self.taken.iter().filter(|(_, taken)| can_go(taken));
        let chosen = idle.max_by_key(|(_, taken)| (counts[&taken.network], u64::MAX - taken.age));
        chosen.map(|(number, _)| number)
    }
}

impl Place {
    pub(crate) const fn number(&self) -> usize {
        self.number
    }

    /// Whether a request is under way.
    pub(crate) fn set_at_work(&self, is_at_work: bool) {
        lock(&self.table).taken[self.number].is_at_work = is_at_work;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.table).taken.remove(self.number);
    }
}

fn lock(table: &Mutex<Table>) -> MutexGuard<'_, Table> {
    // Whole between any two statements.
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(number: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, number])
    }

    #[tokio::test]
    async fn who_has_most_and_waits_longest_gives_way_and_nobody_at_work() {
        let places = Places::new(4);
        let take = |from| {
            let (place, gave_way) = places.take(host(from))?;
            let task = tokio::spawn(std::future::pending::<()>());
            places.set_abort(place.number(), task.abort_handle());
            Some((place, gave_way, task))
        };
        let lonely = take(1).unwrap();
        let mut many: Vec<_> = (0..3).map(|_| take(2).unwrap()).collect();
        many[0].0.set_at_work(true);
        let newcomer = take(3).unwrap();
        assert!(newcomer.1 && !lonely.1);
        let (gone, _, task) = many.remove(1);
        assert!(task.await.unwrap_err().is_cancelled(), "the oldest that is idle");
        drop(gone);
        for (place, _, _) in [&lonely, &newcomer, &many[1]] {
            place.set_at_work(true);
        }
        assert!(take(4).is_none(), "all are at work");
        lonely.0.set_at_work(false);
        assert!(take(4).unwrap().1);
    }
}
