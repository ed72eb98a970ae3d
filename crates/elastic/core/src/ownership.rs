//! Which directory controls which queue: holds this directory's lease, claims shards with it, and writes queues'
//! records under their fences. A state machine: what it asks of the store and of the provider are effects, what
//! they say comes in.
//!
//! The fence of a shard is the revision in which its key was made. Every write compares it, so a
//! directory that was cut off, or stopped for a while, cannot write what it does not own any more,
//! whatever it believes.
//!
//! An address has one directory: its life is written under the address with its lease, and a shard is
//! only claimed while that is there. Two that have the same address take nothing from each
//! other: the second claims nothing.
//!
//! One thing is done after the other, each to its end. The lease is kept meanwhile, and writes that were taken go on; once
//! the lease has ended nothing is waited for before what was owned is given away.

mod claim;
mod cluster_view;
mod io;
pub mod keys;
mod lease;
mod membership;
pub mod meta;
mod write_queue;

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use quelea_elastic_proto::{Fence, Time};

pub use self::cluster_view::ClusterView;
pub use self::io::{Answer, Call, Effect, Input, Request};
use self::keys::Shard;
use self::lease::{Lease, LeaseAction};
use self::meta::{Change, Entry, LeaseId, Revision};
use self::write_queue::{Saved, Write, WriteQueue};
use crate::directory::{Input as DirectoryInput, SaveError};

/// From a directory's last sign of life to others taking its queues, milliseconds. Longer than a machine is usually
/// paused, shorter than users wait.
pub const LEASE_TTL_MS: u64 = 5_000;
/// What a store may take to answer.
const ANSWER_MS_MAX: u64 = 3_000;
/// What it may take to list everything, and to begin to report changes.
const LIST_MS_MAX: u64 = 2 * ANSWER_MS_MAX;
/// What a provider may take to list a queue's relays.
const RELAYS_MS_MAX: u64 = 10_000;
/// Between tries, when the store or the provider does not answer.
const RETRY_MS: u64 = 500;
/// How much longer each next directory in a shard's order of preference waits before it claims it.
const RANK_MS: u64 = 300;

/// What is done later: again, because it failed, or because another directory comes first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Deferred {
    /// Claim the shard of a queue that is needed.
    Claim(String),
    /// Claim a shard that nobody owns.
    Vacant(Shard),
    /// Read a queue that is owned.
    Load(String),
    /// Say that this directory lives.
    Join,
}

/// What is done one after the other.
#[derive(Debug)]
enum Job {
    Input(Input),
    /// All that the store has.
    Listed(Vec<Entry>),
    LeaseChanged,
    Saved(Saved),
}

/// What is under way, waiting for an answer.
#[derive(Debug)]
enum Step {
    Join(membership::Join),
    Claim(claim::Claim),
    /// A queue's record is read.
    Record {
        queue: String,
    },
    /// Then its relays are listed.
    Relays {
        queue: String,
        record: Option<Bytes>,
    },
    /// A write was refused: whose is the shard?
    Fenced(Saved),
}

/// How the store is followed.
#[derive(Debug)]
enum WatchState {
    /// It is to be looked at then.
    Paused(Time),
    Listing(Call),
    Watching,
}

/// The state machine of one directory.
pub struct Ownership {
    address: String,
    /// This process, and no earlier one at the same address.
    instance: Bytes,
    lease: Lease,
    watch: WatchState,
    /// When this directory was written under its address with the lease that it holds.
    joined: Option<Revision>,
    /// Another directory was found there, and that was logged.
    conflict_reported: bool,
    view: ClusterView,
    /// The view is followed: shards are only claimed by what is known to be so.
    view_is_current: bool,
    /// It was current once.
    was_listed: bool,
    ours: BTreeMap<Shard, Fence>,
    /// Queues that the directory has been given, with their shards.
    loaded: BTreeMap<String, Shard>,
    deferred: BTreeMap<Deferred, Time>,
    writes: WriteQueue,
    jobs: VecDeque<Job>,
    step: Option<(Call, Step)>,
    last_call: u64,
    effects: VecDeque<Effect>,
}

impl Ownership {
    /// Creates what owns queues for the directory at this address, as others reach it
    /// (`host:port`); `instance` is random. Begins with [`Self::tick`].
    #[must_use]
    pub fn new(address: String, instance: impl Into<Bytes>, now: Time) -> Self {
        Self {
            instance: instance.into(),
            lease: Lease::new(now),
            watch: WatchState::Paused(now),
            joined: None,
            conflict_reported: false,
            view: ClusterView::new(&address),
            address,
            view_is_current: false,
            was_listed: false,
            ours: BTreeMap::new(),
            loaded: BTreeMap::new(),
            deferred: BTreeMap::new(),
            writes: WriteQueue::default(),
            jobs: VecDeque::new(),
            step: None,
            last_call: 0,
            effects: VecDeque::new(),
        }
    }

    /// Takes what happened: now, or when what is under way is done. Who has more than can be kept waits until it is
    /// not [busy](Self::is_busy).
    pub fn handle(&mut self, now: Time, input: Input) {
        self.jobs.push_back(Job::Input(input));
        self.tick(now);
    }

    /// Takes an answer. Nothing happens if it is not waited for any more.
    pub fn answered(&mut self, now: Time, call: Call, answer: Answer) {
        match self.lease.answered(now, call, answer) {
            Ok(outcome) => {
                if let Some(warning) = outcome.warning {
                    self.warn(warning);
                }
                if outcome.changed {
                    self.lease_changed(now);
                }
            }
            Err(answer) => self.other_answered(now, call, answer),
        }
        self.tick(now);
    }

    fn other_answered(&mut self, now: Time, call: Call, answer: Answer) {
        if matches!(self.watch, WatchState::Listing(of) if of == call) {
            if let Answer::Listed(entries) = answer {
                self.watch = WatchState::Watching;
                self.jobs.push_back(Job::Listed(entries));
            } else {
                self.warn(format!("the directory cannot read its metadata yet: {}", cause(answer)));
                self.watch = WatchState::Paused(now.plus_ms(RETRY_MS));
            }
            return;
        }
        match self.writes.answered(call, answer) {
            Ok((saved, warning)) => {
                if let Some(cause) = warning {
                    self.warn(format!(
                        "the record of queue {:?} is not saved yet: {cause}",
                        saved.queue
                    ));
                }
                self.jobs.push_back(Job::Saved(saved));
            }
            Err(answer) => {
                if let Some((_, step)) = self.step.take_if(|(of, _)| *of == call) {
                    self.continue_step(now, step, answer);
                }
            }
        }
    }

    /// Keeps the lease, and goes on with what is under way.
    pub fn tick(&mut self, now: Time) {
        let call = self.next_call();
        match self.lease.poll(now, call) {
            LeaseAction::Nothing => {}
            LeaseAction::Request(request, timeout_ms) => {
                self.send_request(call, request, timeout_ms);
            }
            LeaseAction::Expired(cause) => {
                self.warn(cause.to_owned());
                self.lease_changed(now);
            }
        }
        while self.step.is_none()
            && let Some(job) = self.jobs.pop_front()
        {
            self.run_job(now, job);
        }
        if matches!(self.watch, WatchState::Paused(at) if at <= now) {
            let call = self.next_call();
            self.watch = WatchState::Listing(call);
            self.send_request(call, Request::ListAndWatch, LIST_MS_MAX);
        }
        self.write();
    }

    /// One of the things that were put off, if one is due and nothing is under way: whatever else there is to do has its
    /// turn between them.
    pub fn run_deferred(&mut self, now: Time) {
        let first = self.deferred.iter().min_by_key(|(_, at)| **at);
        let first = first.filter(|(_, at)| **at <= now && self.step.is_none());
        let Some(deferred) = first.map(|(deferred, _)| deferred.clone()) else { return };
        self.deferred.remove(&deferred);
        match deferred {
            Deferred::Claim(queue) => self.claim_for(now, queue),
            Deferred::Load(queue) => self.load(queue),
            Deferred::Join => self.join(),
            // What cannot be claimed yet is planned again when it can.
            Deferred::Vacant(_) if self.joined.is_none() || !self.view_is_current => {}
            Deferred::Vacant(shard) if self.ours.contains_key(&shard) => {}
            Deferred::Vacant(shard) => self.claim(now, shard, None),
        }
    }

    /// Returns the next thing to do, in order.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// Returns when [`Self::tick`] is due, if nothing else comes before.
    #[must_use]
    pub fn next_deadline(&self) -> Time {
        match self.watch {
            WatchState::Paused(at) => self.lease.deadline().min(at),
            WatchState::Listing(_) | WatchState::Watching => self.lease.deadline(),
        }
    }

    /// Returns when [`Self::run_deferred`] has something to do; not while something is under way.
    #[must_use]
    pub fn next_due(&self) -> Option<Time> {
        self.deferred.values().min().copied().filter(|_| self.step.is_none())
    }

    /// Returns whether something is under way: what comes is kept until it is done.
    #[must_use]
    pub const fn is_busy(&self) -> bool {
        self.step.is_some()
    }

    /// Returns what the store says at present, as far as it is known; `None` before it was read for the first time, when
    /// nothing follows from what is not there.
    #[must_use]
    pub fn view(&self) -> Option<&ClusterView> {
        self.was_listed.then_some(&self.view)
    }

    /// Returns the fence under which a queue is this directory's, as it believes.
    #[must_use]
    pub fn fence(&self, queue: &str) -> Option<Fence> {
        self.ours.get(&Shard::of(queue)).copied()
    }

    /// Returns the lease that is to be given back at the end: others may take the queues at once.
    #[must_use]
    pub const fn lease(&self) -> Option<LeaseId> {
        self.lease.held()
    }

    fn next_call(&mut self) -> Call {
        self.last_call += 1;
        Call(self.last_call)
    }

    fn request(&mut self, step: Step, request: Request) {
        let timeout_ms =
            if matches!(request, Request::Relays { .. }) { RELAYS_MS_MAX } else { ANSWER_MS_MAX };
        let call = self.next_call();
        self.step = Some((call, step));
        self.send_request(call, request, timeout_ms);
    }

    fn send_request(&mut self, call: Call, request: Request, timeout_ms: u64) {
        self.effects.push_back(Effect::Request { call, request, timeout_ms });
    }

    fn write(&mut self) {
        loop {
            let call = self.next_call();
            let Some(txn) = self.writes.begin(call) else { return };
            self.send_request(call, Request::Txn(txn), ANSWER_MS_MAX);
        }
    }

    fn run_job(&mut self, now: Time, job: Job) {
        match job {
            Job::Input(input) => self.apply_input(now, input),
            Job::Listed(entries) => self.listed(now, &entries),
            Job::LeaseChanged => {
                self.joined = None;
                self.lose_all(now);
                self.join();
            }
            Job::Saved(saved) if saved.result == Err(SaveError::Fenced) => {
                // The watch may not have reported yet who has it now.
                let shard = Shard::of(&saved.queue);
                self.request(Step::Fenced(saved), Request::Get(shard.key()));
            }
            Job::Saved(saved) => self.saved(saved),
        }
    }

    fn apply_input(&mut self, now: Time, input: Input) {
        match input {
            Input::Claim { queue } => self.claim_for(now, queue),
            Input::Write { queue, save, fence, record } => {
                if record.is_none() {
                    self.loaded.remove(&queue);
                }
                self.writes.write(queue, Write { save, fence, record });
            }
            Input::Declined { queue } => {
                self.loaded.remove(&queue);
            }
            Input::Changes(changes) => self.apply_changes(now, &changes),
            Input::WatchLost => {
                self.view_is_current = false;
                self.watch = WatchState::Paused(now);
            }
        }
    }

    /// The answer to what is under way.
    fn continue_step(&mut self, now: Time, step: Step, answer: Answer) {
        match step {
            Step::Join(step) => self.join_answered(now, step, answer),
            Step::Claim(step) => self.claim_answered(now, step, answer),
            Step::Record { queue } => match answer {
                Answer::Got(entry) => {
                    let record = entry.map(|entry| entry.value);
                    let request = Request::Relays { queue: queue.clone() };
                    self.request(Step::Relays { queue, record }, request);
                }
                other => self.read_failed(now, queue, other),
            },
            Step::Relays { queue, record } => match (answer, self.fence(&queue)) {
                (Answer::Running(running), Some(fence)) => {
                    self.loaded.insert(queue.clone(), Shard::of(&queue));
                    self.notify(DirectoryInput::Owned { queue, fence, record, running });
                }
                (other, _) => self.read_failed(now, queue, other),
            },
            Step::Fenced(saved) => {
                let shard = Shard::of(&saved.queue);
                if let Answer::Got(Some(entry)) = answer {
                    self.view.change(&Change::Put(entry));
                }
                if self.view.fence(shard) != self.ours.get(&shard).copied() {
                    self.lost(now, shard);
                }
                self.saved(saved);
            }
        }
    }

    fn saved(&mut self, saved: Saved) {
        let Saved { queue, save, result } = saved;
        self.notify(DirectoryInput::Saved { queue, save, result });
    }

    /// Hands the directory a queue that is ours.
    fn load(&mut self, queue: String) {
        if self.fence(&queue).is_some() && !self.loaded.contains_key(&queue) {
            let key = keys::queue(&queue);
            self.request(Step::Record { queue }, Request::Get(key));
        }
    }

    fn read_failed(&mut self, now: Time, queue: String, answer: Answer) {
        self.warn(format!("queue {queue:?} cannot be read yet: {}", cause(answer)));
        self.defer(now, Deferred::Load(queue), RETRY_MS);
    }

    fn listed(&mut self, now: Time, entries: &[Entry]) {
        self.view = ClusterView::of(&self.address, entries);
        self.view_is_current = true;
        self.was_listed = true;
        self.announce_directories();
        let ours: Vec<_> = self.ours.iter().map(|(shard, fence)| (*shard, *fence)).collect();
        for (shard, fence) in ours {
            if self.view.fence(shard) != Some(fence) {
                self.lost(now, shard);
            }
        }
        self.claim_all(now);
    }

    fn apply_changes(&mut self, now: Time, changes: &[Change]) {
        let mut directories = false;
        for change in changes {
            let Some(shard) = self.view.change(change) else {
                directories = true;
                continue;
            };
            let ours = self.ours.get(&shard).copied();
            if ours.is_some() && self.view.fence(shard) != ours {
                self.lost(now, shard);
            }
            self.claim_if_vacant(now, shard);
        }
        if directories {
            self.announce_directories();
        }
    }

    /// This one stands first in what the directory, and by it relays and clients, get.
    fn announce_directories(&mut self) {
        let others = self.view.directories().filter(|other| *other != self.address);
        let ours = std::iter::once(self.address.as_str());
        let all = ours.chain(others).map(str::to_owned).collect();
        self.notify(DirectoryInput::Directories(all));
    }

    fn lease_changed(&mut self, now: Time) {
        // What is under way is not waited for: nothing is ours any more.
        if let Some((_, step)) = self.step.take() {
            let cause = "this directory has no lease at present".to_owned();
            self.continue_step(now, step, Answer::Failed(cause));
        }
        self.jobs.push_front(Job::LeaseChanged);
    }

    fn defer(&mut self, now: Time, deferred: Deferred, delay_ms: u64) {
        self.deferred.entry(deferred).or_insert_with(|| now.plus_ms(delay_ms));
    }

    fn notify(&mut self, input: DirectoryInput) {
        self.effects.push_back(Effect::Notify(input));
    }

    fn warn(&mut self, text: String) {
        self.effects.push_back(Effect::Warn(text));
    }
}

/// Returns why an answer is not what was asked for.
fn cause(answer: Answer) -> String {
    match answer {
        Answer::Failed(cause) => cause,
        Answer::LeaseEnded => "this directory's lease has ended".to_owned(),
        other => format!("an answer to something else: {other:?}"),
    }
}
