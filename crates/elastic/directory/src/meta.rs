//! Where the directories keep what they have to agree on: queues' records and who owns what. The shape
//! is etcd's (revisions, transactions that compare them, leases, watches), since that is what several
//! directories need; the embedded store does the same for one.

pub mod embedded;
#[cfg(feature = "etcd")]
pub mod etcd;

use std::pin::Pin;
use std::time::Duration;

pub use quelea_elastic_core::ownership::meta::{
    Change, Compare, Entry, LeaseId, Op, Revision, Txn, TxnOutcome,
};

use crate::ResultFuture;

/// A store of few and small values that several directories share. Every read sees all transactions that were
/// answered before it began.
pub trait MetaStore: Send + Sync {
    /// Returns the name as in `elastic.metadata`, for logs.
    fn name(&self) -> &'static str;

    /// Reads one key's value.
    ///
    /// # Errors
    ///
    /// [`MetaError::Unavailable`] if the store does not answer, or not in time.
    fn get<'a>(&'a self, key: &'a str) -> ResultFuture<'a, Option<Entry>, MetaError>;

    /// Reads all keys that begin with `prefix`, in their order, at one revision.
    ///
    /// # Errors
    ///
    /// As [`MetaStore::get`].
    fn list<'a>(&'a self, prefix: &'a str) -> ResultFuture<'a, Listing, MetaError>;

    /// Carries out all of `txn.changes` at one revision if all of `txn.compares` hold, else
    /// nothing.
    ///
    /// # Errors
    ///
    /// [`MetaError::Unavailable`]: whether the changes were done is not known then.
    /// [`MetaError::LeaseEnded`], from stores that check it, if a change's lease has ended.
    fn txn(&self, txn: Txn) -> ResultFuture<'_, TxnOutcome, MetaError>;

    /// Grants a new lease that ends when `ttl` has passed since it was last kept alive.
    ///
    /// # Errors
    ///
    /// As [`MetaStore::get`].
    fn lease(&self, ttl: Duration) -> ResultFuture<'_, LeaseId, MetaError>;

    /// Keeps a lease alive for its time once more.
    ///
    /// # Errors
    ///
    /// [`MetaError::LeaseEnded`] if it has ended; else as [`MetaStore::get`].
    fn keep_alive(&self, lease: LeaseId) -> ResultFuture<'_, (), MetaError>;

    /// Ends a lease now, and with it its keys.
    ///
    /// # Errors
    ///
    /// As [`MetaStore::get`].
    fn revoke(&self, lease: LeaseId) -> ResultFuture<'_, (), MetaError>;

    /// Reports every change of keys that begin with `prefix`, after the revision `after`.
    ///
    /// # Errors
    ///
    /// As [`MetaStore::get`].
    fn watch<'a>(
        &'a self,
        prefix: &'a str,
        after: Revision,
    ) -> ResultFuture<'a, Box<dyn Watch>, MetaError>;
}

/// The changes of some keys, in the order of their revisions.
pub trait Watch: Send {
    /// Waits for the next changes, and returns them, at least one. Nothing is lost if the caller
    /// drops the future. After an error the watch is over: list again, and watch from there.
    ///
    /// # Errors
    ///
    /// [`MetaError::Compacted`] if the store does not keep all changes since then any more;
    /// [`MetaError::Unavailable`] if it does not answer, or ends the watch.
    fn next(&mut self)
    -> Pin<Box<dyn Future<Output = Result<Vec<Change>, MetaError>> + Send + '_>>;
}

/// See [`MetaStore::list`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// The revision at which this holds: watch after it.
    pub revision: Revision,
    /// In the order of their keys.
    pub entries: Vec<Entry>,
}

/// Why the store did not answer as it should.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetaError {
    /// It does not answer, or not in time; whether a transaction was done is not known.
    #[error("the metadata store {store} cannot {what}: {cause}")]
    Unavailable {
        /// The store's name.
        store: &'static str,
        /// `write "queues/prices"`.
        what: String,
        /// What happened.
        cause: String,
    },
    /// The lease has ended: its keys are gone, and may be somebody else's.
    #[error("the lease {} has ended", .0.0)]
    LeaseEnded(LeaseId),
    /// What the watch should report first is not kept any more: list again.
    #[error("the store does not keep changes as old as revision {} any more", .0.0)]
    Compacted(Revision),
}
