//! Which directory controls which queue: a task beside the driver that holds this directory's lease,
//! claims shards with it, and writes queues' records under their fences.
//!
//! The fence of a shard is the revision in which its key was made. Every write compares it, so a
//! directory that was cut off, or stopped for a while, cannot write what it does not own any more,
//! whatever it believes.
//!
//! An address has one directory: its life is written under the address with its lease, and a shard is
//! only claimed while that is there. Two that are told the same `elastic.advertise` take nothing from each
//! other: the second claims nothing.

mod following;
mod lease;
mod picture;
mod saving;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use quelea_elastic::directory::{Input, RelayHandle};
use quelea_elastic_proto::Fence;
use tokio::sync::mpsc::{Sender, UnboundedReceiver};
use tokio::time::{Instant, sleep_until, timeout};

use self::following::{Following, News};
use self::lease::LeaseKeeper;
pub(crate) use self::picture::Picture;
use self::saving::Saving;
use crate::driver::Message;
use crate::keys::{self, Shard};
use crate::meta::{
    Change, Compare, Entry, LeaseId, MetaError, MetaStore, Op, Revision, Txn, TxnOutcome,
};
use crate::provider::{Directories, Provider};

/// From a directory's last sign of life to others taking its queues. Longer than a machine is usually
/// paused, shorter than users wait.
const LEASE_TTL: Duration = Duration::from_secs(5);
/// What a store may take to answer.
const ANSWER_MAX: Duration = Duration::from_secs(3);
/// What a provider may take to list a queue's relays.
const LIST_MAX: Duration = Duration::from_secs(10);
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
    /// The driver does not take the queue that it was given (nobody wants it, or its record cannot be read): it
    /// is given again when it is claimed again.
    Untaken { queue: String },
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
    /// This process, and no earlier one at the same address.
    life: String,
    /// When this directory was written under its address with the lease that it holds.
    enlisted: Option<Revision>,
    /// Somebody else was found there, and it was told.
    taken_told: bool,
    picture: Picture,
    /// The picture is followed: shards are only claimed by what is known to be so.
    current: bool,
    ours: BTreeMap<Shard, Fence>,
    /// Queues that the driver has been given.
    loaded: BTreeSet<String>,
    later: BTreeMap<Later, Instant>,
    saving: Saving,
}

/// How a claim went.
enum Claimed {
    Ours,
    /// Somebody else has it, at this address.
    Theirs(String),
    /// Nobody can say yet: it is tried again.
    NotYet,
}

impl Ownership {
    /// Runs until [`Command::Stop`], or the driver's end.
    pub(crate) async fn run(self, mut commands: UnboundedReceiver<Command>) {
        let mut following = Following::start(Arc::clone(&self.meta));
        let mut state = State {
            lease: LeaseKeeper::start(Arc::clone(&self.meta), LEASE_TTL),
            life: format!("{:016x}", RandomState::new().hash_one(std::process::id())),
            enlisted: None,
            taken_told: false,
            picture: Picture::new(&self.advertise),
            current: false,
            saving: Saving::new(Arc::clone(&self.meta)),
            with: self,
            ours: BTreeMap::new(),
            loaded: BTreeSet::new(),
            later: BTreeMap::new(),
        };
        loop {
            let due = state.later.values().min().copied();
            tokio::select! {
                command = commands.recv() => match command {
                    None | Some(Command::Stop) => return state.lease.stop().await,
                    Some(command) => state.obey(command).await,
                },
                held = state.lease.changed() => state.lease_changed(held).await,
                news = following.next() => state.take(news).await,
                saved = state.saving.next() => state.saved(saved).await,
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    state.do_due().await;
                }
            }
        }
    }
}

impl State {
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
            Command::Untaken { queue } => {
                self.loaded.remove(&queue);
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
                Ok(Claimed::Ours) => {}
                Ok(Claimed::Theirs(owner)) => {
                    return self.tell(Input::Disowned { queue, owner: Some(owner) }).await;
                }
                Ok(Claimed::NotYet) => return self.at(Later::Claim(queue), RETRY),
                Err(error) => {
                    tracing::warn!(queue, %error, "a queue cannot be claimed yet");
                    return self.at(Later::Claim(queue), RETRY);
                }
            }
        }
        self.load(queue).await;
    }

    /// Takes a shard, unless somebody else has it.
    async fn claim(&mut self, shard: Shard) -> Result<Claimed, MetaError> {
        let (Some(lease), Some(enlisted), true) = (self.lease.held(), self.enlisted, self.current)
        else {
            return Ok(Claimed::NotYet);
        };
        if let Some(fence) = self.take_vacant(shard, lease, enlisted).await? {
            self.gained(shard, fence);
            return Ok(Claimed::Ours);
        }
        let Some(entry) = self.asked(self.with.meta.get(&shard.key())).await? else {
            // It has just gone, or our address is not ours any more.
            return Ok(Claimed::NotYet);
        };
        let owner = String::from_utf8_lossy(&entry.value).into_owned();
        if owner != self.with.advertise {
            return Ok(Claimed::Theirs(owner));
        }
        // Of an earlier life or lease at this address, as long as that is ours: then those have ended.
        let ours = Compare::Created(keys::directory(&self.with.advertise), enlisted);
        let compares = vec![ours, Compare::Created(entry.key.clone(), entry.created)];
        let changes = vec![Op::Delete { key: entry.key }];
        self.asked(self.with.meta.txn(Txn { compares, changes })).await?;
        Ok(match self.take_vacant(shard, lease, enlisted).await? {
            Some(fence) => {
                self.gained(shard, fence);
                Claimed::Ours
            }
            None => Claimed::NotYet,
        })
    }

    async fn take_vacant(
        &self,
        shard: Shard,
        lease: LeaseId,
        enlisted: Revision,
    ) -> Result<Option<Fence>, MetaError> {
        let (key, value) = (shard.key(), self.with.advertise.clone().into());
        let compares = vec![
            Compare::Created(keys::directory(&self.with.advertise), enlisted),
            Compare::Created(key.clone(), Revision(0)),
        ];
        let changes = vec![Op::Put { key, value, lease: Some(lease) }];
        match self.asked(self.with.meta.txn(Txn { compares, changes })).await? {
            TxnOutcome::Done(revision) => Ok(Some(Fence(revision.0))),
            TxnOutcome::Refused => Ok(None),
        }
    }

    fn gained(&mut self, shard: Shard, fence: Fence) {
        tracing::info!(shard = shard.key(), fence = fence.0, "shard claimed");
        self.ours.insert(shard, fence);
        // What the watch has still to tell of earlier owners is older than this.
        self.picture.owned(shard, fence);
        self.later.remove(&Later::Vacant(shard));
        // One after the other, and whatever else there is to do between them.
        for queue in self.picture.queues(shard) {
            self.at(Later::Load(queue), Duration::ZERO);
        }
    }

    async fn lost(&mut self, shard: Shard) {
        let Some(fence) = self.ours.remove(&shard) else { return };
        self.picture.disowned(shard, fence);
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
        let record = self.asked(self.with.meta.get(&keys::queue(queue))).await;
        let record = record.map_err(|error| error.to_string())?.map(|entry| entry.value);
        let listed = self.lease.within(timeout(LIST_MAX, self.with.provider.list(Some(queue))));
        let running = match listed.await {
            Some(Ok(running)) => running.map_err(|error| error.to_string())?,
            Some(Err(_)) => return Err(format!("no list of relays in {} s", LIST_MAX.as_secs())),
            None => return Err(MetaError::NoLease.to_string()),
        };
        Ok((record, running.into_iter().map(|running| running.handle).collect()))
    }

    /// What the store says, within the time that it may take and while the lease lives: once that has
    /// ended the task waits for nothing before it gives away what it owned.
    async fn asked<T>(&self, asked: crate::Answer<'_, T, MetaError>) -> Result<T, MetaError> {
        self.lease.within(answer(asked)).await.unwrap_or(Err(MetaError::NoLease))
    }

    async fn take(&mut self, news: News) {
        match news {
            News::All(entries) => self.take_all(&entries).await,
            News::Changes(changes) => self.take_changes(changes).await,
            News::Lost => self.current = false,
        }
    }

    async fn take_all(&mut self, entries: &[Entry]) {
        self.picture = Picture::of(&self.with.advertise, entries);
        self.current = true;
        self.show_directories().await;
        let ours: Vec<_> = self.ours.iter().map(|(shard, fence)| (*shard, *fence)).collect();
        for (shard, fence) in ours {
            if self.picture.owner(shard).is_none_or(|(_, found)| found != fence) {
                self.lost(shard).await;
            }
        }
        self.claim_all();
    }

    /// Claims can be made now that could not be until now.
    fn claim_all(&mut self) {
        let now = Instant::now();
        for (later, at) in &mut self.later {
            if matches!(later, Later::Claim(_)) {
                *at = now;
            }
        }
        for shard in self.picture.shards_with_queues() {
            self.claim_if_vacant(shard);
        }
    }

    async fn take_changes(&mut self, changes: Vec<Change>) {
        let mut directories = false;
        for change in changes {
            let Some(shard) = self.picture.change(&change) else {
                directories = true;
                continue;
            };
            let ours = self.ours.get(&shard).copied();
            if ours.is_some() && self.picture.owner(shard).map(|(_, fence)| fence) != ours {
                self.lost(shard).await;
            }
            self.claim_if_vacant(shard);
        }
        if directories {
            self.show_directories().await;
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
        self.enlisted = None;
        let before: Vec<_> = self.ours.keys().copied().collect();
        for shard in before {
            self.lost(shard).await;
        }
        if held.is_some() {
            self.enlist().await;
        }
    }

    /// Takes this directory's address: others see that it lives, and it can claim shards.
    async fn enlist(&mut self) {
        let Some(lease) = self.lease.held() else { return };
        match self.try_enlist(lease).await {
            Ok(Some(enlisted)) => {
                self.enlisted = Some(enlisted);
                self.taken_told = false;
                return self.claim_all();
            }
            Ok(None) if self.taken_told => {}
            Ok(None) => {
                self.taken_told = true;
                tracing::warn!(
                    address = self.with.advertise,
                    "another directory, or this one's last life, has this address: this one waits until \
                     the other's lease has ended; elastic.advertise has to be another one for each directory"
                );
            }
            Err(error) => tracing::warn!(%error, "this directory cannot be announced yet"),
        }
        self.at(Later::Enlist, RETRY);
    }

    /// `None` if somebody else has the address.
    async fn try_enlist(&self, lease: LeaseId) -> Result<Option<Revision>, MetaError> {
        let key = keys::directory(&self.with.advertise);
        let put = |created| Txn {
            compares: vec![Compare::Created(key.clone(), created)],
            changes: vec![Op::Put {
                key: key.clone(),
                value: self.life.clone().into(),
                lease: Some(lease),
            }],
        };
        if let TxnOutcome::Done(revision) = self.asked(self.with.meta.txn(put(Revision(0)))).await?
        {
            return Ok(Some(revision));
        }
        let found = self.asked(self.with.meta.get(&key)).await?;
        let Some(entry) = found.filter(|entry| entry.value == self.life) else { return Ok(None) };
        // Ours, with an earlier lease.
        let again = self.asked(self.with.meta.txn(put(entry.created))).await?;
        Ok(matches!(again, TxnOutcome::Done(_)).then_some(entry.created))
    }

    /// One thing that is due, so that nothing else waits for all of them.
    async fn do_due(&mut self) {
        let first = self.later.iter().min_by_key(|(_, at)| **at).map(|(later, _)| later.clone());
        let Some(later) = first else { return };
        self.later.remove(&later);
        match later {
            Later::Claim(queue) => self.claim_for(queue).await,
            Later::Load(queue) => self.load(queue).await,
            Later::Enlist => self.enlist().await,
            // What cannot be claimed yet is planned again when it can.
            Later::Vacant(_) if self.enlisted.is_none() || !self.current => {}
            Later::Vacant(shard) if self.ours.contains_key(&shard) => {}
            Later::Vacant(shard) => match self.claim(shard).await {
                Ok(Claimed::NotYet) => self.at(Later::Vacant(shard), RETRY),
                Ok(Claimed::Ours | Claimed::Theirs(_)) => {}
                Err(error) => {
                    tracing::warn!(shard = shard.key(), %error, "a shard cannot be claimed yet");
                    self.at(Later::Vacant(shard), RETRY);
                }
            },
        }
    }

    async fn saved(&mut self, saved: saving::Saved) {
        let saving::Saved { queue, save, result, answered } = saved;
        if result == Err(quelea_elastic::directory::SaveError::Fenced) {
            let shard = Shard::of(&queue);
            // The watch may not have told yet who has it now.
            if let Ok(Some(entry)) = self.asked(self.with.meta.get(&shard.key())).await {
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

    /// Relays are told this directory first: those that are started, and those that run.
    async fn show_directories(&self) {
        let others = self.picture.directories().filter(|other| *other != self.with.advertise);
        let ours = std::iter::once(self.with.advertise.as_str());
        let all: Vec<_> = ours.chain(others).map(str::to_owned).collect();
        self.with.directories.set(all.clone());
        self.tell(Input::Directories(all)).await;
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

#[cfg(test)]
mod tests;
