//! The metadata store as `quelea_elastic_directory::meta` describes it: revisions, transactions that compare
//! them, leases, and the changes since a revision.

use std::collections::BTreeMap;

use quelea_elastic_core::ownership::meta::{
    Change, Compare, Entry, LeaseId, Op, Revision, Txn, TxnOutcome,
};
use quelea_elastic_core::ownership::{Answer, Request};

/// The store.
#[derive(Debug)]
pub(super) struct Store {
    revision: u64,
    entries: BTreeMap<String, (Entry, Option<LeaseId>)>,
    changes: Vec<Change>,
    /// When each lease ends.
    leases: BTreeMap<LeaseId, u64>,
    last_lease: u64,
    ttl_us: u64,
}

impl Store {
    pub(super) fn new(ttl_us: u64) -> Self {
        let (entries, leases) = (BTreeMap::new(), BTreeMap::new());
        Self { revision: 0, entries, changes: Vec::new(), leases, last_lease: 0, ttl_us }
    }

    pub(super) fn handle(&mut self, request: Request, now_us: u64) -> Answer {
        self.end_leases(now_us);
        match request {
            Request::ListAndWatch => {
                Answer::Listed(self.entries.values().map(|(entry, _)| entry.clone()).collect())
            }
            Request::Get(key) => {
                Answer::Got(self.entries.get(&key).map(|(entry, _)| entry.clone()))
            }
            Request::Txn(txn) => self.txn(txn),
            Request::Lease => {
                self.last_lease += 1;
                let lease = LeaseId(self.last_lease);
                self.leases.insert(lease, now_us + self.ttl_us);
                Answer::Lease(lease)
            }
            Request::KeepAlive(lease) => match self.leases.get_mut(&lease) {
                Some(end) => {
                    *end = now_us + self.ttl_us;
                    Answer::Alive
                }
                None => Answer::LeaseEnded,
            },
            Request::Relays { .. } => Answer::Failed("the provider is to be asked that".to_owned()),
        }
    }

    fn txn(&mut self, Txn { compares, changes }: Txn) -> Answer {
        let entry = |key: &String| self.entries.get(key).map(|(entry, _)| entry);
        let holds = |compare: &Compare| match compare {
            Compare::Created(key, at) => entry(key).map_or(Revision(0), |of| of.created) == *at,
            Compare::Modified(key, at) => entry(key).map_or(Revision(0), |of| of.modified) == *at,
        };
        if !compares.iter().all(holds) {
            return Answer::Txn(TxnOutcome::Refused);
        }
        let lives = |change: &Op| match change {
            Op::Put { lease: Some(lease), .. } => self.leases.contains_key(lease),
            _ => true,
        };
        if !changes.iter().all(lives) {
            return Answer::LeaseEnded;
        }
        self.revision += 1;
        for change in changes {
            self.change(change);
        }
        Answer::Txn(TxnOutcome::Done(Revision(self.revision)))
    }

    fn change(&mut self, change: Op) {
        let revision = Revision(self.revision);
        match change {
            Op::Put { key, value, lease } => {
                let created = self.entries.get(&key).map_or(revision, |(entry, _)| entry.created);
                let entry = Entry { key: key.clone(), value, created, modified: revision };
                self.changes.push(Change::Put(entry.clone()));
                self.entries.insert(key, (entry, lease));
            }
            Op::Delete { key } => {
                if self.entries.remove(&key).is_some() {
                    self.changes.push(Change::Gone { key, revision });
                }
            }
        }
    }

    /// Ends the leases that have run out, with their keys.
    pub(super) fn end_leases(&mut self, now_us: u64) {
        let over = self.leases.iter().filter(|(_, end)| **end <= now_us);
        for lease in over.map(|(lease, _)| *lease).collect::<Vec<_>>() {
            self.end_lease(lease);
        }
    }

    fn end_lease(&mut self, lease: LeaseId) {
        self.leases.remove(&lease);
        let of_it = self.entries.iter().filter(|(_, (_, of))| *of == Some(lease));
        for key in of_it.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
            self.revision += 1;
            self.change(Op::Delete { key });
        }
    }

    /// Ends the lease with which a key was put: somebody's mistake, or the store's.
    pub(super) fn expire(&mut self, key: &str) {
        if let Some(lease) = self.entries.get(key).and_then(|(_, lease)| *lease) {
            self.end_lease(lease);
        }
    }

    /// Returns the changes so far; a watch remembers how many it has reported.
    pub(super) fn changes(&self) -> &[Change] {
        &self.changes
    }
}
