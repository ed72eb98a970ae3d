//! What goes in and out.

use bytes::Bytes;
use quelea_elastic_proto::Fence;

use crate::directory::{Input as DirectoryInput, RelayHandle};
use crate::ownership::keys::Shard;
use crate::ownership::meta::{Change, Entry, LeaseId, Txn, TxnOutcome};

/// Something that was asked, numbered upwards from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Call(pub u64);

/// What happened.
#[derive(Clone, Debug)]
pub enum Input {
    /// See [`Effect::Claim`](crate::directory::Effect::Claim).
    Claim {
        /// The queue.
        queue: String,
    },
    /// See [`Effect::Save`](crate::directory::Effect::Save), and, without a record,
    /// [`Effect::Remove`](crate::directory::Effect::Remove).
    Write {
        /// The queue.
        queue: String,
        /// Given back with the outcome.
        save: u64,
        /// Under which it may be written.
        fence: Fence,
        /// What is written.
        record: Option<Bytes>,
    },
    /// The directory does not take the queue that it was given (nobody wants it, or its record cannot be read): it
    /// is given again when it is claimed again.
    Declined {
        /// The queue.
        queue: String,
    },
    /// What has changed in the store since it was looked at, in order.
    Changes(Vec<Change>),
    /// Changes are not seen any more.
    WatchLost,
}

/// What is to be done about it.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Ask the store, or the provider, and give the answer to [`Ownership::answered`](super::Ownership::answered)
    /// within `timeout_ms`; after that [`Answer::Failed`].
    Request {
        /// Its number.
        call: Call,
        /// What.
        request: Request,
        /// Milliseconds that it may take.
        timeout_ms: u64,
    },
    /// Hand this to the directory.
    Notify(DirectoryInput),
    /// Report to the directory that all queues of this shard are not its own any more
    /// ([`Disowned`](DirectoryInput::Disowned)).
    ShardLost {
        /// Which queues.
        shard: Shard,
        /// Whose it is now, if that is known.
        owner: Option<String>,
    },
    /// For the log: all is well.
    Info(String),
    /// For the log: something does not go as it should.
    Warn(String),
}

/// What the store or the provider is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// All keys under [`ROOT`](super::keys::ROOT) at one revision; after the answer, [`Answer::Listed`],
    /// [`Input::Changes`] carries all that has changed there since, until [`Input::WatchLost`].
    ListAndWatch,
    /// One key. [`Answer::Got`].
    Get(String),
    /// [`Answer::Txn`].
    Txn(Txn),
    /// A new lease of [`LEASE_TTL_MS`](super::LEASE_TTL_MS). [`Answer::Lease`].
    Lease,
    /// Keeps it alive for its time once more. [`Answer::Alive`].
    KeepAlive(LeaseId),
    /// The provider's relays of this queue. [`Answer::Running`].
    Relays {
        /// The queue.
        queue: String,
    },
}

/// What the store or the provider says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// In the order of their keys.
    Listed(Vec<Entry>),
    /// The key, if there is one.
    Got(Option<Entry>),
    /// How the transaction went.
    Txn(TxnOutcome),
    /// The new lease.
    Lease(LeaseId),
    /// The lease goes on.
    Alive,
    /// There is no such lease any more.
    LeaseEnded,
    /// Relays that run.
    Running(Vec<RelayHandle>),
    /// No answer, or not in time, and why: whether a transaction was done is not known.
    Failed(String),
}
