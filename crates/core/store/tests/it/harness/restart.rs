//! Crashes, restarts, and what should be found after them.

use std::collections::BTreeMap;

use quelea_model::{QueueId, Timestamp};
use quelea_store::fake_disk::{FakeDisk, Survival};
use quelea_store::{
    Durability, EntryFlags, LoadItem, LoadRequest, LoadWhat, Loaded, LogStore, OpenError, Options,
    Recovered, Store, Ticket,
};

use super::{StoreHarness, item};
use crate::state::{State, assert_is};

impl StoreHarness<LogStore> {
    pub(crate) fn new(options: Options) -> Self {
        Self::on(FakeDisk::new(), options)
    }

    pub(crate) fn on(disk: FakeDisk, options: Options) -> Self {
        Self::open(disk, options, 1).unwrap_or_else(|error| panic!("cannot open: {error}"))
    }

    fn open(disk: FakeDisk, options: Options, openings: u64) -> Result<Self, OpenError> {
        let options = Options { nonce: options.nonce.wrapping_add(1), ..options };
        let now = Timestamp::from_millis(1_000_000 * openings);
        let (store, recovered) = LogStore::open(&disk, options, now)?;
        let mut harness = Self::with(disk, options, store, now);
        harness.openings = openings + 1;
        harness.take_over(recovered);
        Ok(harness)
    }

    /// Returns what remains after a crash, or what is wrong with it.
    pub(crate) fn try_crash(&self, survival: Survival, seed: u64) -> Result<Self, OpenError> {
        Self::open(self.disk.crash(survival, seed), self.options, self.openings)
    }

    /// Crashes and checks that what is recovered is what some moment explains, not before the last
    /// one that was promised.
    pub(crate) fn crash(&self, survival: Survival, seed: u64) -> Self {
        let after = self
            .try_crash(survival, seed)
            .unwrap_or_else(|error| panic!("{survival:?} {seed}: cannot open: {error}"));
        self.assert_explains(&after, survival);
        after
    }

    /// Kills the process, while the machine goes on: what was written is there but not durable.
    pub(crate) fn kill(&self) -> Self {
        let after = Self::open(self.disk.clone(), self.options, self.openings)
            .unwrap_or_else(|error| panic!("cannot open: {error}"));
        self.assert_explains(&after, Survival::All);
        after
    }

    /// Crashes and takes over whatever is recovered, without reading ranges back.
    pub(crate) fn crash_unhistoric(&self) -> Self {
        let disk = self.disk.crash(Survival::Nothing, 0);
        let options = Options { nonce: self.options.nonce.wrapping_add(9), ..self.options };
        let (store, recovered) = LogStore::open(&disk, options, self.now)
            .unwrap_or_else(|error| panic!("cannot open: {error}"));
        let mut after = Self::with(disk, options, store, self.now);
        after.next_seq = recovered.next_seq;
        after.ready = recovered.queues.into_iter().collect();
        after
    }

    /// Returns what a restart leaves of a harness that has synced everything, checked against its
    /// state but with its ranges as they are: after a crash, or after the process was killed.
    pub(crate) fn successor(&self, killed: bool) -> Self {
        let disk = if killed { self.disk.clone() } else { self.disk.crash(Survival::Nothing, 0) };
        let nonce = self.options.nonce.wrapping_add(self.next_seq.0);
        let options = Options { nonce, ..self.options };
        let (store, recovered) = LogStore::open(&disk, options, self.now)
            .unwrap_or_else(|error| panic!("cannot open: {error}"));
        let mut after = Self::with(disk, options, store, self.now);
        after.next_seq = recovered.next_seq;
        after.ready = recovered.queues.into_iter().collect();
        after.state = self.state.clone();
        let len = after.ready.values().map(|index| index.len()).sum::<usize>();
        assert_eq!(len, after.state.messages.len());
        assert_eq!(after.store.stats().live, len as u64);
        after
    }

    /// Checks that the indexes, nothing in them paged out, hold the state.
    pub(crate) fn assert_state_of_indexes(&self) {
        let mut found = State { messages: BTreeMap::new(), ..self.state.clone() };
        for (queue, index) in &self.ready {
            for (entry, expires_at) in index.entries() {
                found.put(*queue, entry, expires_at);
            }
        }
        assert!(found == self.state, "the indexes hold something else");
    }

    /// Opens an image of the disk and checks it in the same way.
    pub(crate) fn open_image(&self, image: FakeDisk, survival: Survival) -> Self {
        let after = Self::open(image, self.options, self.openings)
            .unwrap_or_else(|error| panic!("{survival:?}: cannot open: {error}"));
        self.assert_explains(&after, survival);
        after
    }

    /// Opens what a crash makes of an image of the disk, without checking it.
    pub(crate) fn try_image(&self, image: &FakeDisk, survival: Survival, seed: u64) -> Self {
        Self::open(image.crash(survival, seed), self.options, self.openings)
            .unwrap_or_else(|error| panic!("{survival:?} {seed}: cannot open: {error}"))
    }

    pub(crate) fn assert_explains(&self, after: &Self, survival: Survival) {
        let promised = self.promised(survival == Survival::All);
        let found = self.history[promised..].iter().position(|state| *state == after.state);
        assert!(
            found.is_some(),
            "{survival:?}: no moment from {promised} to {} explains what was recovered.\n\
             expected at least {:?}\nfound {:?}",
            self.history.len(),
            self.history[promised],
            after.state,
        );
    }

    /// Returns the index in the history of the last state that a ticket promised.
    pub(crate) fn promised(&self, os_too: bool) -> usize {
        let progress = self.store.progress();
        let reached = |ticket: &Ticket| {
            progress.reached(*ticket) && (os_too || ticket.durability() == Durability::Fsync)
        };
        let promised = self.tickets.iter().filter(|(ticket, _)| reached(ticket));
        promised.map(|(_, at)| at - 1).max().unwrap_or(0)
    }

    /// Takes all of the recovered state over, reading ranges back to look into them.
    fn take_over(&mut self, recovered: Recovered) {
        self.next_seq = recovered.next_seq;
        self.state.note(&recovered);
        self.ready = recovered.queues.into_iter().collect();
        self.state.topology = recovered.topology;
        self.load_everything();
        self.state.messages.clear();
        for (queue, index) in &self.ready {
            let mut before = None;
            for (entry, expires_at) in index.entries() {
                assert!(before < Some(entry.seq), "the index is sorted");
                before = Some(entry.seq);
                assert_eq!(entry.flags.has(EntryFlags::HAS_EXPIRY), expires_at.is_some());
                self.state.put(*queue, entry, expires_at);
            }
            assert_eq!(index.entries().count(), index.len());
        }
        let messages = &self.state.messages;
        for place in self.state.visibility.keys() {
            assert!(messages.contains_key(place), "{place:?} is noted, but not there");
        }
        self.history = vec![self.state.clone()];
    }

    /// Stops after all was written and synced, and starts again.
    pub(crate) fn restart(mut self) -> Self {
        self.settle();
        let after = self.crash(Survival::Nothing, 0);
        assert_eq!(after.state, self.state);
        after
    }

    /// Reads every message back and checks it.
    pub(crate) fn load_everything(&mut self) {
        self.page_in();
        let mut items: Vec<(QueueId, LoadItem)> = self
            .ready
            .iter()
            .flat_map(|(queue, index)| index.entries().map(|(entry, _)| (*queue, item(entry))))
            .chain(self.unacked.iter().map(|((queue, _), (entry, _))| (*queue, item(entry))))
            .filter(|(_, item)| item.location != quelea_store::Location::NOWHERE)
            .collect();
        items.sort_by_key(|(queue, item)| (*queue, item.seq));
        for group in items.chunk_by(|a, b| a.0 == b.0) {
            let what = LoadWhat::Items(group.iter().map(|(_, item)| *item).collect());
            let loaded = self.load(group[0].0, what);
            assert_eq!(loaded.errors, []);
            assert_eq!(loaded.messages.len(), group.len());
            for ((seq, found), (_, item)) in loaded.messages.iter().zip(group) {
                assert_eq!(*seq, item.seq);
                assert_is(found, item.seq, item.body_bytes);
            }
        }
    }

    /// Reads all ranges back.
    pub(crate) fn page_in(&mut self) {
        let ranges: Vec<_> = self
            .ready
            .iter()
            .flat_map(|(queue, index)| index.paged_ranges().map(|range| (*queue, *range)))
            .collect();
        for (queue, range) in ranges {
            let loaded = self.load(queue, LoadWhat::PagedRange(range));
            assert_eq!(loaded.errors, []);
            self.index(queue).fill(loaded);
        }
    }

    /// Asks for something and pumps until the answer is there.
    pub(crate) fn load(&mut self, queue: QueueId, what: LoadWhat) -> Loaded {
        self.token += 1;
        let token = self.token;
        self.store.load(LoadRequest { token, queue, what });
        for _ in 0..10_000 {
            self.take_loaded();
            if let Some(at) = self.loaded.iter().position(|loaded| loaded.token == token) {
                return self.loaded.swap_remove(at);
            }
            if !self.step() {
                self.now = self.store.deadline().unwrap_or(self.now).max(self.now);
            }
        }
        panic!("no answer to a load");
    }
}
