//! The metadata store of several directories: etcd, whose revisions, transactions, leases and watches are
//! what [`MetaStore`] describes.

use std::pin::Pin;
use std::time::Duration;

use etcd_client::{
    Client, CompareOp, ConnectOptions, EventType, GetOptions, KeyValue, PutOptions, TxnOp,
    WatchOptions, WatchStream,
};

use super::{
    Change, Compare, Entry, LeaseId, Listing, MetaError, MetaStore, Op, Revision, Txn, TxnOutcome,
    Watch,
};
use crate::ResultFuture;

/// As in `elastic.metadata`.
const NAME: &str = "etcd";
/// How long etcd may take to answer one request.
const ANSWER_MAX: Duration = Duration::from_secs(3);
/// How large one answer may be: as large as etcd sends any. The records of all queues come in one.
const ANSWER_BYTES_MAX: usize = i32::MAX as usize;
/// How long a connection to one endpoint may take; then the next is tried.
const CONNECT_MAX: Duration = Duration::from_secs(2);
/// A watch without changes says nothing for long: what shows that its connection is gone.
const PING: Duration = Duration::from_secs(2);

/// The store.
#[derive(Clone)]
pub struct Etcd {
    client: Client,
}

impl Etcd {
    /// Creates a store at these endpoints; etcd need not answer yet.
    ///
    /// # Errors
    /// If an endpoint is no address.
    pub async fn connect(endpoints: &[String]) -> Result<Self, MetaError> {
        let options = ConnectOptions::new()
            .with_connect_timeout(CONNECT_MAX)
            .with_keep_alive(PING, ANSWER_MAX)
            .with_keep_alive_while_idle(true);
        let what = || format!("connect to {}", endpoints.join(", "));
        let client = Client::connect(endpoints, Some(options)).await;
        Ok(Self { client: client.map_err(|error| failed(what(), &error))? })
    }

    async fn range(&self, key: &str, prefix: bool) -> Result<Listing, MetaError> {
        let options = prefix.then(|| GetOptions::new().with_prefix());
        let mut client = self.client.kv_client().max_decoding_message_size(ANSWER_BYTES_MAX);
        let mut answer = timed(|| format!("read {key:?}"), client.get(key, options)).await?;
        let revision = answer.header().map_or(0, etcd_client::ResponseHeader::revision);
        let entries = answer.take_kvs().into_iter().filter_map(entry).collect();
        Ok(Listing { revision: revision_of(revision), entries })
    }

    async fn commit(&self, txn: Txn) -> Result<TxnOutcome, MetaError> {
        let compares = txn.compares.into_iter().map(|compare| match compare {
            Compare::Created(key, wanted) => {
                etcd_client::Compare::create_revision(key, CompareOp::Equal, number_of(wanted.0))
            }
            Compare::Modified(key, wanted) => {
                etcd_client::Compare::mod_revision(key, CompareOp::Equal, number_of(wanted.0))
            }
        });
        let changes = txn.changes.into_iter().map(|change| match change {
            Op::Put { key, value, lease } => {
                let options = lease.map(|lease| PutOptions::new().with_lease(number_of(lease.0)));
                TxnOp::put(key, value.to_vec(), options)
            }
            Op::Delete { key } => TxnOp::delete(key, None),
        });
        let (compares, changes): (Vec<_>, Vec<_>) = (compares.collect(), changes.collect());
        let txn = etcd_client::Txn::new().when(compares).and_then(changes);
        let what = || "commit a transaction".to_owned();
        let answer = timed(what, self.client.kv_client().txn(txn)).await?;
        let revision = answer.header().map_or(0, etcd_client::ResponseHeader::revision);
        Ok(match answer.succeeded() {
            true => TxnOutcome::Done(revision_of(revision)),
            false => TxnOutcome::Refused,
        })
    }

    async fn refresh(&self, lease: LeaseId) -> Result<(), MetaError> {
        let what = || format!("keep lease {} alive", lease.0);
        let mut leases = self.client.lease_client();
        let (mut keeper, mut answers) = timed(what, leases.keep_alive(number_of(lease.0))).await?;
        timed(what, keeper.keep_alive()).await?;
        match timed(what, answers.message()).await? {
            Some(answer) if answer.ttl() > 0 => Ok(()),
            _ => Err(MetaError::LeaseEnded(lease)),
        }
    }
}

impl MetaStore for Etcd {
    fn name(&self) -> &'static str {
        NAME
    }

    fn get<'a>(&'a self, key: &'a str) -> ResultFuture<'a, Option<Entry>, MetaError> {
        Box::pin(async move { Ok(self.range(key, false).await?.entries.pop()) })
    }

    fn list<'a>(&'a self, prefix: &'a str) -> ResultFuture<'a, Listing, MetaError> {
        Box::pin(self.range(prefix, true))
    }

    fn txn(&self, txn: Txn) -> ResultFuture<'_, TxnOutcome, MetaError> {
        Box::pin(self.commit(txn))
    }

    fn lease(&self, ttl: Duration) -> ResultFuture<'_, LeaseId, MetaError> {
        Box::pin(async move {
            let seconds = i64::try_from(ttl.as_secs().max(1)).unwrap_or(i64::MAX);
            let what = || "grant a lease".to_owned();
            let answer = timed(what, self.client.lease_client().grant(seconds, None)).await?;
            Ok(LeaseId(u64::try_from(answer.id()).unwrap_or_default()))
        })
    }

    fn keep_alive(&self, lease: LeaseId) -> ResultFuture<'_, (), MetaError> {
        Box::pin(self.refresh(lease))
    }

    fn revoke(&self, lease: LeaseId) -> ResultFuture<'_, (), MetaError> {
        Box::pin(async move {
            let what = || format!("revoke lease {}", lease.0);
            timed(what, self.client.lease_client().revoke(number_of(lease.0))).await.map(drop)
        })
    }

    fn watch<'a>(
        &'a self,
        prefix: &'a str,
        after: Revision,
    ) -> ResultFuture<'a, Box<dyn Watch>, MetaError> {
        Box::pin(async move {
            let options =
                WatchOptions::new().with_prefix().with_start_revision(number_of(after.0) + 1);
            let what = || format!("watch {prefix:?}");
            let mut client = self.client.watch_client().max_decoding_message_size(ANSWER_BYTES_MAX);
            let stream = timed(what, client.watch(prefix, Some(options))).await?;
            Ok(Box::new(EtcdWatch { stream, after }) as Box<dyn Watch>)
        })
    }
}

struct EtcdWatch {
    stream: WatchStream,
    after: Revision,
}

impl Watch for EtcdWatch {
    fn next(
        &mut self,
    ) -> Pin<Box<dyn Future<Output = Result<Vec<Change>, MetaError>> + Send + '_>> {
        Box::pin(async move {
            loop {
                let what = || "go on watching".to_owned();
                let answer = self.stream.message().await.map_err(|error| failed(what(), &error))?;
                let Some(answer) = answer else {
                    return Err(unavailable(what(), "etcd ended the stream".to_owned()));
                };
                if answer.compact_revision() > 0 {
                    return Err(MetaError::Compacted(self.after));
                }
                if answer.canceled() {
                    return Err(unavailable(what(), answer.cancel_reason().to_owned()));
                }
                let revision = answer.header().map_or(0, etcd_client::ResponseHeader::revision);
                self.after = revision_of(revision);
                let changes: Vec<_> = answer.events().iter().filter_map(change).collect();
                if !changes.is_empty() {
                    return Ok(changes);
                }
            }
        })
    }
}

fn change(event: &etcd_client::Event) -> Option<Change> {
    let pair = event.kv()?.clone();
    match event.event_type() {
        EventType::Put => entry(pair).map(Change::Put),
        EventType::Delete => Some(Change::Gone {
            key: String::from_utf8(pair.key().to_vec()).ok()?,
            revision: revision_of(pair.mod_revision()),
        }),
    }
}

/// Turns etcd's pair into an entry. `None` for keys that are no text: they are nobody's that we
/// know.
fn entry(pair: KeyValue) -> Option<Entry> {
    let (created, modified) = (pair.create_revision(), pair.mod_revision());
    let (key, value) = pair.into_key_value();
    Some(Entry {
        key: String::from_utf8(key).ok()?,
        value: value.into(),
        created: revision_of(created),
        modified: revision_of(modified),
    })
}

/// Returns the revision of this number: etcd's are signed and never negative.
fn revision_of(number: i64) -> Revision {
    Revision(u64::try_from(number).unwrap_or_default())
}

fn number_of(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Waits for what etcd says, for the time that it may take.
async fn timed<T>(
    what: impl Fn() -> String,
    asked: impl Future<Output = Result<T, etcd_client::Error>>,
) -> Result<T, MetaError> {
    match tokio::time::timeout(ANSWER_MAX, asked).await {
        Ok(answer) => answer.map_err(|error| failed(what(), &error)),
        Err(_) => Err(unavailable(what(), format!("no answer within {} s", ANSWER_MAX.as_secs()))),
    }
}

fn failed(what: String, error: &etcd_client::Error) -> MetaError {
    unavailable(what, error.to_string())
}

const fn unavailable(what: String, cause: String) -> MetaError {
    MetaError::Unavailable { store: NAME, what, cause }
}
