//! The metadata store as `quelea_directory::meta` describes it: revisions, transactions that compare
//! them, leases, and the changes since a revision.

use std::collections::BTreeMap;

use bytes::Bytes;

/// What a directory asks. Keys, values and revisions are as in `quelea_directory::meta`.
#[derive(Clone, Debug)]
pub(super) enum StoreCall {
    Get(&'static str),
    /// Everything at one revision; the directory is told of all changes from then on.
    ListAndWatch,
    /// Does `change` if all of these keys were made at these revisions (0: there is no such key).
    Txn {
        made: Vec<(String, u64)>,
        change: Op,
    },
    Lease,
    KeepAlive(u64),
}

#[derive(Clone, Debug)]
pub(super) enum Op {
    Put { key: String, value: Bytes, lease: Option<u64> },
    Delete { key: String },
}

#[derive(Clone, Debug)]
pub(super) enum StoreAnswer {
    Got(Option<Entry>),
    Listed(Vec<Entry>),
    /// Done at this revision, or refused.
    Txn(Option<u64>),
    Lease(u64),
    Alive,
    LeaseEnded,
    /// No answer came in time.
    Unavailable,
}

#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) value: Bytes,
    /// The revision in which the key was made.
    pub(super) made: u64,
    lease: Option<u64>,
}

#[derive(Clone, Debug)]
pub(super) enum Change {
    Put(Entry),
    Gone { key: String, revision: u64 },
}

/// The store.
#[derive(Debug)]
pub(super) struct Store {
    revision: u64,
    entries: BTreeMap<String, Entry>,
    changes: Vec<Change>,
    /// When each lease ends.
    leases: BTreeMap<u64, u64>,
    last_lease: u64,
    ttl_us: u64,
}

impl Store {
    pub(super) fn new(ttl_us: u64) -> Self {
        let (entries, leases) = (BTreeMap::new(), BTreeMap::new());
        Self { revision: 0, entries, changes: Vec::new(), leases, last_lease: 0, ttl_us }
    }

    pub(super) fn handle(&mut self, call: StoreCall, now_us: u64) -> StoreAnswer {
        self.end_leases(now_us);
        match call {
            StoreCall::Get(key) => StoreAnswer::Got(self.entries.get(key).cloned()),
            StoreCall::ListAndWatch => {
                StoreAnswer::Listed(self.entries.values().cloned().collect())
            }
            StoreCall::Txn { made, change } => {
                let holds = |(key, revision): &(String, u64)| {
                    self.entries.get(key).map_or(0, |entry| entry.made) == *revision
                };
                if !made.iter().all(holds) {
                    return StoreAnswer::Txn(None);
                }
                if let Op::Put { lease: Some(lease), .. } = &change
                    && !self.leases.contains_key(lease)
                {
                    return StoreAnswer::LeaseEnded;
                }
                self.change(change);
                StoreAnswer::Txn(Some(self.revision))
            }
            StoreCall::Lease => {
                self.last_lease += 1;
                self.leases.insert(self.last_lease, now_us + self.ttl_us);
                StoreAnswer::Lease(self.last_lease)
            }
            StoreCall::KeepAlive(lease) => match self.leases.get_mut(&lease) {
                Some(end) => {
                    *end = now_us + self.ttl_us;
                    StoreAnswer::Alive
                }
                None => StoreAnswer::LeaseEnded,
            },
        }
    }

    fn change(&mut self, change: Op) {
        self.revision += 1;
        let revision = self.revision;
        match change {
            Op::Put { key, value, lease } => {
                let made = self.entries.get(&key).map_or(revision, |entry| entry.made);
                let entry = Entry { key: key.clone(), value, made, lease };
                self.changes.push(Change::Put(entry.clone()));
                self.entries.insert(key, entry);
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
        let over: Vec<u64> = self
            .leases
            .iter()
            .filter(|(_, end)| **end <= now_us)
            .map(|(lease, _)| *lease)
            .collect();
        for lease in over {
            self.end_lease(lease);
        }
    }

    fn end_lease(&mut self, lease: u64) {
        self.leases.remove(&lease);
        let of_it = |entry: &&Entry| entry.lease == Some(lease);
        let keys: Vec<String> =
            self.entries.values().filter(of_it).map(|entry| entry.key.clone()).collect();
        for key in keys {
            self.change(Op::Delete { key });
        }
    }

    /// Ends the lease with which a key was put: somebody's mistake, or the store's.
    pub(super) fn expire(&mut self, key: &str) {
        if let Some(lease) = self.entries.get(key).and_then(|entry| entry.lease) {
            self.end_lease(lease);
        }
    }

    /// Changes so far; a watch remembers how many it has told.
    pub(super) fn changes(&self) -> &[Change] {
        &self.changes
    }
}
