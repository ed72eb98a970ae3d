//! What the metadata store keeps and can be asked: revisions, leases, and transactions that compare them. The
//! shape is etcd's, since that is what several directories need.

use bytes::Bytes;

/// Counts the store's transactions: each that changes something has a higher one. 0 is before all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(pub u64);

/// A lease: keys that are put with it vanish when it is not kept alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId(pub u64);

/// A key with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// The value.
    pub value: Bytes,
    /// When the key was made (since it was last deleted).
    pub created: Revision,
    /// When the value was last put.
    pub modified: Revision,
}

/// What is done at once, or not at all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Txn {
    /// What has to hold.
    pub compares: Vec<Compare>,
    /// What is done then.
    pub changes: Vec<Op>,
}

/// A condition of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compare {
    /// The key was made at this revision; [`Revision`] 0: there is no such key.
    Created(String, Revision),
    /// The key's value was put at this revision; [`Revision`] 0: there is no such key.
    Modified(String, Revision),
}

/// A change that a transaction makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// The key has this value, as long as the lease lives if there is one.
    Put {
        /// The key.
        key: String,
        /// The value.
        value: Bytes,
        /// With which it goes.
        lease: Option<LeaseId>,
    },
    /// There is no such key.
    Delete {
        /// The key.
        key: String,
    },
}

/// How a transaction went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TxnOutcome {
    /// Done, at this revision.
    Done(Revision),
    /// A compare did not hold: nothing was done.
    Refused,
}

/// What has changed in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The key has a new value.
    Put(Entry),
    /// The key is gone: deleted, or its lease has ended.
    Gone {
        /// The key.
        key: String,
        /// Since when.
        revision: Revision,
    },
}
