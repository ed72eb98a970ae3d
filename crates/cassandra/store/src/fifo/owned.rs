//! What FIFO queues have here: those that this front-end owns, and what it has seen of the others' owners.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Instant, SystemTime};

use quelea_cassandra_fifo::limits::LEASE_MS;
use quelea_cassandra_fifo::{Now, Observation, OwnerRow};
use rustc_hash::FxHashMap;
use tokio::sync::{Semaphore, mpsc};
use uuid::Uuid;

use super::inbox::Input;
use super::message_rows::MessageRows;
use super::owner_table::OwnerTable;
use super::owners_clock::OwnersClock;
use super::part_reads::ALL_READS_AT_ONCE;
use super::peer_client::PeerClient;
use crate::database::Database;
use crate::limits::REMEMBERED_QUEUES_MAX;

/// What FIFO queues have here.
pub(crate) struct Fifo {
    pub(super) rows: MessageRows,
    pub(super) owners: OwnerTable,
    pub(super) peers: PeerClient,
    pub(super) secret: [u8; 32],
    /// Where other front-ends reach this one.
    pub(super) address: OnceLock<String>,
    places: Mutex<FxHashMap<Uuid, Arc<Place>>>,
    pub(super) calls: AtomicU64,
    began: Instant,
    owners_clock: Mutex<OwnersClock>,
    /// Reads of partitions for owners.
    pub(super) reads: Arc<Semaphore>,
    /// What all owned queues take of the memory.
    bytes: AtomicUsize,
    bytes_max: usize,
    /// Releases of all queues that are under way.
    releasing: AtomicUsize,
}

/// A release of all queues, as long as it lasts.
pub(super) struct Releasing<'a>(&'a AtomicUsize);

impl Drop for Releasing<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What is known here of one queue.
#[derive(Default)]
pub(super) struct Place {
    owned: Mutex<Option<(u128, mpsc::Sender<Input>)>>,
    /// The name by which this front-end asked for the queue last; 0: it never did.
    holder: Mutex<u128>,
    pub(super) seen: Arc<tokio::sync::Mutex<ObservedOwner>>,
}

/// The owner's row, as it was seen last. Who looks holds it, so that there is one look at a time.
#[derive(Default)]
pub(super) struct ObservedOwner {
    pub(super) row: Option<OwnerRow>,
    pub(super) observation: Observation,
    pub(super) looked_at: Option<Instant>,
}

impl Place {
    pub(super) fn owner(&self) -> Option<mpsc::Sender<Input>> {
        let owned = self.owned.lock().unwrap_or_else(PoisonError::into_inner);
        let open = owned.as_ref().filter(|(_, calls)| !calls.is_closed());
        open.map(|(_, calls)| calls.clone())
    }

    /// This front-end asks for the queue by that name.
    pub(super) fn ask_as(&self, holder: u128) {
        *self.holder.lock().unwrap_or_else(PoisonError::into_inner) = holder;
    }

    /// Returns whether somebody else has the queue who can be called. Addresses say nothing about
    /// who it is: two front-ends may say the same one, each of its own machine.
    pub(super) fn is_elsewhere(&self, row: &OwnerRow) -> bool {
        let holder = *self.holder.lock().unwrap_or_else(PoisonError::into_inner);
        !row.address.is_empty() && row.holder != holder
    }

    pub(super) fn own(&self, holder: u128, calls: mpsc::Sender<Input>) {
        *self.owned.lock().unwrap_or_else(PoisonError::into_inner) = Some((holder, calls));
    }
}

impl Fifo {
    pub(crate) fn new(
        rows: MessageRows,
        owners: OwnerTable,
        secret: [u8; 32],
        bytes_max: usize,
    ) -> Self {
        let began = Instant::now();
        Self {
            rows,
            owners,
            peers: PeerClient::default(),
            secret,
            address: OnceLock::new(),
            places: Mutex::default(),
            calls: AtomicU64::new(0),
            began,
            owners_clock: Mutex::new(OwnersClock::new(began, SystemTime::now())),
            reads: Arc::new(Semaphore::new(ALL_READS_AT_ONCE)),
            bytes: AtomicUsize::new(0),
            bytes_max,
            releasing: AtomicUsize::new(0),
        }
    }

    /// Where other front-ends reach this one: where it is said to be, or where it listens.
    pub(crate) fn be_reached_at(&self, address: Option<String>, listens_at: SocketAddr) {
        let _ = self.address.set(address.unwrap_or_else(|| listens_at.to_string()));
    }

    /// Returns the present for an owner's lease.
    pub(super) fn owners_now(&self, database: &Database) -> Now {
        let mut clock = self.owners_clock.lock().unwrap_or_else(PoisonError::into_inner);
        let steady_ms = clock.advance(Instant::now(), SystemTime::now()).as_millis() as u64;
        drop(clock);
        Now { wall_ms: database.clock.now_ms(), steady_ms }
    }

    /// Returns the present for who waits until another's lease is over: the clock that cannot jump.
    pub(super) fn observers_now(&self, database: &Database) -> Now {
        let steady_ms = self.began.elapsed().as_millis() as u64;
        Now { wall_ms: database.clock.now_ms(), steady_ms }
    }

    /// A queue takes so much of the memory now, and took so much before.
    pub(super) fn account(&self, before: usize, now: usize) {
        if now >= before {
            self.bytes.fetch_add(now - before, Ordering::Relaxed);
        } else {
            self.bytes.fetch_sub(before - now, Ordering::Relaxed);
        }
    }

    /// Returns whether owned queues have taken all the memory that they may.
    pub(super) fn is_full(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) >= self.bytes_max
    }

    /// Begins to release queues: no queue is taken over until what this returns is dropped.
    pub(super) fn begin_release(&self) -> Releasing<'_> {
        self.releasing.fetch_add(1, Ordering::Relaxed);
        Releasing(&self.releasing)
    }

    pub(super) fn is_releasing(&self) -> bool {
        self.releasing.load(Ordering::Relaxed) > 0
    }

    /// Returns until when a lease is said to be held that is asked for now.
    pub(super) fn held_until_ms(&self, database: &Database) -> i64 {
        database.clock.now_ms().saturating_add(LEASE_MS) as i64
    }

    pub(super) fn place(&self, generation: Uuid) -> Arc<Place> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        if places.len() >= REMEMBERED_QUEUES_MAX && !places.contains_key(&generation) {
            // Those that are neither owned nor asked for. What is forgotten of a lease is observed anew.
            places.retain(|_, place| place.owner().is_some() || Arc::strong_count(place) > 1);
        }
        places.entry(generation).or_default().clone()
    }

    pub(super) fn owned(&self) -> Vec<mpsc::Sender<Input>> {
        let places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.values().filter_map(|place| place.owner()).collect()
    }

    /// An owner has ended.
    pub(super) fn forget(&self, generation: Uuid, holder: u128) {
        let place = self.place(generation);
        let mut owned = place.owned.lock().unwrap_or_else(PoisonError::into_inner);
        if owned.as_ref().is_some_and(|(owner, _)| *owner == holder) {
            *owned = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_whose_task_has_ended_is_none() {
        let place = Place::default();
        let (calls, inbox) = mpsc::channel(1);
        place.own(7, calls);
        assert!(place.owner().is_some());
        drop(inbox);
        assert!(place.owner().is_none());
    }

    #[test]
    fn whose_a_queue_is_does_not_follow_from_an_address() {
        let place = Place::default();
        let row = |holder, address: &str| OwnerRow {
            holder,
            address: address.to_owned(),
            ..OwnerRow::default()
        };
        assert!(place.is_elsewhere(&row(7, "127.0.0.1:1")));
        place.ask_as(7);
        assert!(!place.is_elsewhere(&row(7, "127.0.0.1:1")));
        assert!(place.is_elsewhere(&row(8, "127.0.0.1:1")));
        assert!(!place.is_elsewhere(&row(8, "")));
    }
}
