//! The store, as directories use it.

use std::sync::Arc;
use std::time::Duration;

use quelea_cassandra_store::{CassandraSettings, ConnectError};
use quelea_elastic_directory::ResultFuture;
use quelea_elastic_directory::meta::{
    Entry, LeaseId, Listing, MetaError, MetaStore, Revision, Txn, TxnOutcome, Watch,
};

use crate::entries;
use crate::fault::{NAME, timed};
use crate::leases;
use crate::shared::Shared;
use crate::tables::Tables;
use crate::watch::CassandraWatch;

/// The store. Cheap to clone; its tasks run on the runtime in which it connected, and end with the last clone.
#[derive(Clone)]
pub struct CassandraMetadata {
    shared: Arc<Shared>,
}

impl CassandraMetadata {
    /// Connects, and makes what is missing: the keyspace, its tables.
    ///
    /// # Errors
    /// What is wrong with the settings, the nodes, or the rights of the user.
    pub async fn connect(settings: &CassandraSettings) -> Result<Self, ConnectError> {
        let tables = Tables::connect(settings).await?;
        let shared = Arc::new(Shared::new(tables));
        leases::keep_ending(&shared);
        Ok(Self { shared })
    }
}

impl MetaStore for CassandraMetadata {
    fn name(&self) -> &'static str {
        NAME
    }

    fn get<'a>(&'a self, key: &'a str) -> ResultFuture<'a, Option<Entry>, MetaError> {
        Box::pin(async move {
            let read = entries::read(&self.shared.tables, vec![key.to_owned()]);
            let mut seen = timed("read an entry", read).await?;
            Ok(seen.entries.remove(key).map(|stored| stored.entry))
        })
    }

    fn list<'a>(&'a self, prefix: &'a str) -> ResultFuture<'a, Listing, MetaError> {
        Box::pin(async move {
            let seen = timed("list all entries", entries::list(&self.shared.tables)).await?;
            let entries = seen.entries.into_values().map(|stored| stored.entry);
            let entries = entries.filter(|entry| entry.key.starts_with(prefix)).collect();
            Ok(Listing { revision: Revision(seen.revision), entries })
        })
    }

    fn txn(&self, txn: Txn) -> ResultFuture<'_, TxnOutcome, MetaError> {
        Box::pin(async move { timed("commit a transaction", self.shared.commit(&txn)).await })
    }

    fn lease(&self, ttl: Duration) -> ResultFuture<'_, LeaseId, MetaError> {
        Box::pin(timed("grant a lease", leases::grant(&self.shared, ttl)))
    }

    fn keep_alive(&self, lease: LeaseId) -> ResultFuture<'_, (), MetaError> {
        Box::pin(timed("keep a lease alive", leases::keep_alive(&self.shared, lease)))
    }

    fn revoke(&self, lease: LeaseId) -> ResultFuture<'_, (), MetaError> {
        Box::pin(timed("revoke a lease", leases::revoke(&self.shared, lease)))
    }

    fn watch<'a>(
        &'a self,
        prefix: &'a str,
        after: Revision,
    ) -> ResultFuture<'a, Box<dyn Watch>, MetaError> {
        let watch = CassandraWatch::new(&self.shared, prefix, after);
        Box::pin(std::future::ready(Ok(Box::new(watch) as Box<dyn Watch>)))
    }
}
