//! Which directory controls which queue: a task beside the driver that holds this directory's lease,
//! claims shards with it, and writes queues' records under their fences.
//!
//! The fence of a shard is the revision in which its key was made. Every write compares it, so a
//! directory that was cut off, or stopped for a while, cannot write what it does not own any more,
//! whatever it believes.

mod lease;
mod picture;
mod saving;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use quelea_elastic::directory::{Input, RelayHandle};
use quelea_elastic_proto::Fence;
use tokio::sync::mpsc::{Sender, UnboundedReceiver};
use tokio::time::{Instant, sleep_until, timeout};

use self::lease::LeaseKeeper;
pub(crate) use self::picture::Picture;
use self::saving::Saving;
use crate::driver::Message;
use crate::keys::{self, Shard};
use crate::meta::{
    Change, Compare, LeaseId, MetaError, MetaStore, Op, Revision, Txn, TxnOutcome, Watch,
};
use crate::provider::{Directories, Provider};

/// From a directory's last sign of life to others taking its queues. Longer than a machine is usually
/// paused, shorter than users wait.
const LEASE_TTL: Duration = Duration::from_secs(5);
/// What a store may take to answer.
const ANSWER_MAX: Duration = Duration::from_secs(3);
/// Between tries, when the store or the provider does not answer.
const RETRY: Duration = Duration::from_millis(500);
/// How much longer each next directory in a shard's order of preference waits before it claims it.
const RANK_DELAY: Duration = Duration::from_millis(300);

/// What the driver wants.
pub(crate) enum Command {
    /// See `Effect::Claim`.
    Claim { queue: String },
    /// See `Effect::Save` (and `Effect::Remove`, without a record: not answered).
    Write { queue: String, save: u64, fence: Fence, record: Option<Bytes> },
    /// Somebody wants to know who has what.
    Look(Box<dyn FnOnce(&Picture) + Send>),
    /// The directory stops: others may take its queues at once.
    Stop,
}

/// What the task works with.
pub(crate) struct Ownership {
    pub(crate) meta: Arc<dyn MetaStore>,
    pub(crate) provider: Arc<dyn Provider>,
    /// This directory's address, as others are told.
    pub(crate) advertise: String,
    /// What relays are told.
    pub(crate) directories: Directories,
    pub(crate) inbox: Sender<Message>,
}

/// What is done later: again, because it failed, or because another directory comes first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Later {
    /// Claim a queue's shard for somebody who asks.
    Claim(String),
    /// Claim a shard that nobody owns.
    Vacant(Shard),
    /// Read a queue that is owned.
    Load(String),
    /// Say that this directory lives.
    Enlist,
}

struct State {
    with: Ownership,
    lease: LeaseKeeper,
    picture: Picture,
    ours: BTreeMap<Shard, Fence>,
    /// Queues that the driver has been given.
    loaded: BTreeSet<String>,
    later: BTreeMap<Later, Instant>,
    saving: Saving,
}

impl Ownership {
    /// Runs until [`Command::Stop`], or the driver's end.
    pub(crate) async fn run(self, mut commands: UnboundedReceiver<Command>) {
        let mut state = State {
            lease: LeaseKeeper::start(Arc::clone(&self.meta), LEASE_TTL),
            picture: Picture::new(&self.advertise),
            saving: Saving::new(Arc::clone(&self.meta)),
            with: self,
            ours: BTreeMap::new(),
            loaded: BTreeSet::new(),
            later: BTreeMap::new(),
        };
        loop {
            let mut watch = state.look().await;
            loop {
                let due = state.later.values().min().copied();
                tokio::select! {
                    command = commands.recv() => match command {
                        None | Some(Command::Stop) => return state.lease.stop().await,
                        Some(command) => state.obey(command).await,
                    },
                    held = state.lease.changed() => state.lease_changed(held).await,
                    changes = watch.next() => match changes {
                        Ok(changes) => state.take(changes).await,
                        Err(error) => {
                            tracing::warn!(%error, "changes of metadata are not seen: looking again");
                            break;
                        }
                    },
                    saved = state.saving.next() => state.saved(saved).await,
                    () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                        state.do_due().await;
                    }
                }
            }
        }
    }
}

impl State {
    /// Reads everything, and watches from there. Tries until the store answers.
    async fn look(&mut self) -> Box<dyn Watch> {
        loop {
            match self.try_look().await {
                Ok(watch) => return watch,
                Err(error) => {
                    tracing::warn!(%error, "the directory cannot read its metadata yet");
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
    }

    async fn try_look(&mut self) -> Result<Box<dyn Watch>, MetaError> {
        let listing = answer(self.with.meta.list(keys::ROOT)).await?;
        let watch = answer(self.with.meta.watch(keys::ROOT, listing.revision)).await?;
        self.picture = Picture::of(&self.with.advertise, &listing.entries);
        self.show_directories();
        let lost: Vec<_> = self.ours.iter().map(|(shard, fence)| (*shard, *fence)).collect();
        for (shard, fence) in lost {
            if self.picture.owner(shard).is_none_or(|(_, found)| found != fence) {
                self.lost(shard).await;
            }
        }
        for shard in self.picture.shards_with_queues() {
            self.claim_if_vacant(shard);
        }
        Ok(watch)
    }

    async fn obey(&mut self, command: Command) {
        match command {
            Command::Claim { queue } => self.claim_for(queue).await,
            Command::Write { queue, save, fence, record } => {
                let shard = Shard::of(&queue);
                if record.is_none() {
                    self.loaded.remove(&queue);
                }
                self.saving.write(shard, queue, save, fence, record);
            }
            Command::Look(look) => look(&self.picture),
            Command::Stop => {}
        }
    }

    /// Somebody wants this queue.
    async fn claim_for(&mut self, queue: String) {
        let shard = Shard::of(&queue);
        if !self.ours.contains_key(&shard) {
            match self.claim(shard).await {
                Ok(None) => {}
                Ok(Some(owner)) => {
                    return self.tell(Input::Disowned { queue, owner: Some(owner) }).await;
                }
                Err(error) => {
                    tracing::warn!(queue, %error, "a queue cannot be claimed yet");
                    return self.at(Later::Claim(queue), RETRY);
                }
            }
        }
        self.load(queue).await;
    }

    /// Takes a shard, unless somebody else has it: then gives who.
    async fn claim(&mut self, shard: Shard) -> Result<Option<String>, MetaError> {
        let Some(lease) = self.lease.held() else {
            return Err(MetaError::Unavailable {
                store: self.with.meta.name(),
                what: format!("claim {}", shard.key()),
                cause: "this directory has no lease at present".to_owned(),
            });
        };
        if let Some(fence) = self.take_vacant(shard, lease).await? {
            self.gained(shard, fence).await;
            return Ok(None);
        }
        let Some(entry) = answer(self.with.meta.get(&shard.key())).await? else {
            // It has just gone: the next try takes it.
            return Box::pin(self.claim(shard)).await;
        };
        let owner = String::from_utf8_lossy(&entry.value).into_owned();
        if owner != self.with.advertise {
            return Ok(Some(owner));
        }
        // Our own, of an earlier life or lease: nobody else listens at this address.
        let compares = vec![Compare::Created(entry.key.clone(), entry.created)];
        let changes = vec![Op::Delete { key: entry.key }];
        answer(self.with.meta.txn(Txn { compares, changes })).await?;
        Box::pin(self.claim(shard)).await
    }

    async fn take_vacant(&self, shard: Shard, lease: LeaseId) -> Result<Option<Fence>, MetaError> {
        let (key, value) = (shard.key(), self.with.advertise.clone().into());
        let compares = vec![Compare::Created(key.clone(), Revision(0))];
        let changes = vec![Op::Put { key, value, lease: Some(lease) }];
        match answer(self.with.meta.txn(Txn { compares, changes })).await? {
            TxnOutcome::Done(revision) => Ok(Some(Fence(revision.0))),
            TxnOutcome::Refused => Ok(None),
        }
    }

    async fn gained(&mut self, shard: Shard, fence: Fence) {
        tracing::info!(shard = shard.key(), fence = fence.0, "shard claimed");
        self.ours.insert(shard, fence);
        // What the watch has still to tell of earlier owners is older than this.
        self.picture.owned(shard, fence);
        self.later.remove(&Later::Vacant(shard));
        for queue in self.picture.queues(shard) {
            self.load(queue).await;
        }
    }

    async fn lost(&mut self, shard: Shard) {
        let Some(fence) = self.ours.remove(&shard) else { return };
        let owner = self.picture.owner(shard).map(|(owner, _)| owner.to_owned());
        let owner = owner.filter(|owner| *owner != self.with.advertise);
        tracing::warn!(shard = shard.key(), fence = fence.0, owner, "shard lost");
        self.loaded.retain(|queue| Shard::of(queue) != shard);
        self.send(Message::ShardLost { shard, owner }).await;
        self.claim_if_vacant(shard);
    }

    /// Gives the driver a queue that is ours.
    async fn load(&mut self, queue: String) {
        let Some(fence) = self.ours.get(&Shard::of(&queue)).copied() else { return };
        if self.loaded.contains(&queue) {
            return;
        }
        match self.read(&queue).await {
            Ok((record, running)) => {
                self.loaded.insert(queue.clone());
                self.tell(Input::Owned { queue, fence, record, running }).await;
            }
            Err(cause) => {
                tracing::warn!(queue, cause, "a queue cannot be read yet");
                self.at(Later::Load(queue), RETRY);
            }
        }
    }

    async fn read(&self, queue: &str) -> Result<(Option<Bytes>, Vec<RelayHandle>), String> {
        let record = answer(self.with.meta.get(&keys::queue(queue))).await;
        let record = record.map_err(|error| error.to_string())?.map(|entry| entry.value);
        let running = self.with.provider.list(Some(queue)).await;
        let running = running.map_err(|error| error.to_string())?;
        Ok((record, running.into_iter().map(|running| running.handle).collect()))
    }

    async fn take(&mut self, changes: Vec<Change>) {
        for change in changes {
            let Some(shard) = self.picture.change(&change) else {
                self.show_directories();
                continue;
            };
            let ours = self.ours.get(&shard).copied();
            if ours.is_some() && self.picture.owner(shard).map(|(_, fence)| fence) != ours {
                self.lost(shard).await;
            }
            self.claim_if_vacant(shard);
        }
    }

    /// Plans to claim a shard that has queues and no owner (or our own earlier life).
    fn claim_if_vacant(&mut self, shard: Shard) {
        let owner = self.picture.owner(shard);
        let vacant = owner.is_none_or(|(owner, _)| owner == self.with.advertise);
        if vacant && self.picture.has_queues(shard) && !self.ours.contains_key(&shard) {
            let rank = self.picture.rank(shard, &self.with.advertise);
            self.at(Later::Vacant(shard), RANK_DELAY * rank);
        }
    }

    async fn lease_changed(&mut self, held: Option<LeaseId>) {
        let before: Vec<_> = self.ours.keys().copied().collect();
        for shard in before {
            self.lost(shard).await;
        }
        if held.is_some() {
            self.enlist().await;
            for shard in self.picture.shards_with_queues() {
                self.claim_if_vacant(shard);
            }
        }
    }

    /// Lets others know that this directory lives.
    async fn enlist(&mut self) {
        let Some(lease) = self.lease.held() else { return };
        let key = keys::directory(&self.with.advertise);
        let put = Op::Put { key, value: Bytes::new(), lease: Some(lease) };
        let txn = Txn { compares: Vec::new(), changes: vec![put] };
        if let Err(error) = answer(self.with.meta.txn(txn)).await {
            tracing::warn!(%error, "this directory cannot be announced yet");
            self.at(Later::Enlist, RETRY);
        }
    }

    async fn do_due(&mut self) {
        let now = Instant::now();
        let due = self.later.iter().filter(|(_, at)| **at <= now);
        let due: Vec<Later> = due.map(|(later, _)| later.clone()).collect();
        for later in due {
            self.later.remove(&later);
            match later {
                Later::Claim(queue) => self.claim_for(queue).await,
                Later::Load(queue) => self.load(queue).await,
                Later::Enlist => self.enlist().await,
                Later::Vacant(shard) => {
                    if !self.ours.contains_key(&shard)
                        && let Err(error) = self.claim(shard).await
                    {
                        tracing::warn!(shard = shard.key(), %error, "a shard cannot be claimed yet");
                        self.at(Later::Vacant(shard), RETRY);
                    }
                }
            }
        }
    }

    async fn saved(&mut self, saved: saving::Saved) {
        let saving::Saved { queue, save, result, answered } = saved;
        if result == Err(quelea_elastic::directory::SaveError::Fenced) {
            let shard = Shard::of(&queue);
            // The watch may not have told yet who has it now.
            if let Ok(Some(entry)) = answer(self.with.meta.get(&shard.key())).await {
                self.picture.change(&Change::Put(entry));
            }
            let (owner, ours) = (self.picture.owner(shard), self.ours.get(&shard));
            if owner.map(|(_, fence)| fence).as_ref() != ours {
                self.lost(shard).await;
            }
        }
        if answered {
            self.tell(Input::Saved { queue, save, result }).await;
        }
    }

    /// Relays are told this directory first.
    fn show_directories(&self) {
        let others = self.picture.directories().filter(|other| *other != self.with.advertise);
        let ours = std::iter::once(self.with.advertise.as_str());
        self.with.directories.set(ours.chain(others).map(str::to_owned).collect());
    }

    fn at(&mut self, later: Later, delay: Duration) {
        self.later.entry(later).or_insert_with(|| Instant::now() + delay);
    }

    async fn tell(&self, input: Input) {
        self.send(Message::Input(input)).await;
    }

    async fn send(&self, message: Message) {
        // The driver has stopped if it fails.
        let _ = self.with.inbox.send(message).await;
    }
}

/// What a store says, within the time that it may take.
async fn answer<T>(asked: crate::Answer<'_, T, MetaError>) -> Result<T, MetaError> {
    timeout(ANSWER_MAX, asked).await.unwrap_or_else(|_| {
        Err(MetaError::Unavailable {
            store: "of metadata",
            what: "answer".to_owned(),
            cause: format!("no answer within {} s", ANSWER_MAX.as_secs()),
        })
    })
}
