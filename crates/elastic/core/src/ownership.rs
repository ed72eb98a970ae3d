//! Which directory controls which queue: holds this directory's lease, claims shards with it, and writes queues'
//! records under their fences. A state machine: what it asks of the store and of the provider are effects, what
//! they say comes in.
//!
//! The fence of a shard is the revision in which its key was made. Every write compares it, so a
//! directory that was cut off, or stopped for a while, cannot write what it does not own any more,
//! whatever it believes.
//!
//! An address has one directory: its life is written under the address with its lease, and a shard is
//! only claimed while that is there. Two that are told the same address take nothing from each
//! other: the second claims nothing.
//!
//! One thing is done after the other, each to its end. The lease is kept meanwhile, and writes that were taken go on; once
//! the lease has ended nothing is waited for before what was owned is given away.

mod claiming;
mod enlisting;
mod io;
pub mod keys;
mod lease;
pub mod meta;
mod picture;
mod saving;

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use quelea_elastic_proto::{Fence, Time};

pub use self::io::{Answer, Call, Effect, Input, Request};
use self::keys::Shard;
use self::lease::{Lease, Turn};
use self::meta::{Change, Entry, LeaseId, Revision};
pub use self::picture::Picture;
use self::saving::{Saved, Saving, Write};
use crate::directory::{Input as DirectoryInput, SaveError};

/// From a directory's last sign of life to others taking its queues, milliseconds. Longer than a machine is usually
/// paused, shorter than users wait.
pub const LEASE_TTL_MS: u64 = 5_000;
/// What a store may take to answer.
const ANSWER_MS_MAX: u64 = 3_000;
/// What it may take to list everything, and to begin to tell changes.
const LOOK_MS_MAX: u64 = 2 * ANSWER_MS_MAX;
/// What a provider may take to list a queue's relays.
const RELAYS_MS_MAX: u64 = 10_000;
/// Between tries, when the store or the provider does not answer.
const RETRY_MS: u64 = 500;
/// How much longer each next directory in a shard's order of preference waits before it claims it.
const RANK_MS: u64 = 300;

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

/// What is done one after the other.
#[derive(Debug)]
enum Job {
    Given(Input),
    /// All that the store has.
    All(Vec<Entry>),
    LeaseChanged,
    Saved(Saved),
}

/// What is under way, waiting for an answer.
#[derive(Debug)]
enum Step {
    Enlist(enlisting::Step),
    Claim(claiming::Step),
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
enum Following {
    /// It is to be looked at then.
    Backoff(Time),
    Looking(Call),
    Changes,
}

/// See the module.
pub struct Ownership {
    address: String,
    /// This process, and no earlier one at the same address.
    life: Bytes,
    lease: Lease,
    following: Following,
    /// When this directory was written under its address with the lease that it holds.
    enlisted: Option<Revision>,
    /// Somebody else was found there, and it was told.
    taken_told: bool,
    picture: Picture,
    /// The picture is followed: shards are only claimed by what is known to be so.
    current: bool,
    ours: BTreeMap<Shard, Fence>,
    /// Queues that the directory has been given, with their shards.
    loaded: BTreeMap<String, Shard>,
    later: BTreeMap<Later, Time>,
    saving: Saving,
    jobs: VecDeque<Job>,
    step: Option<(Call, Step)>,
    last_call: u64,
    effects: VecDeque<Effect>,
}

impl Ownership {
    /// Of the directory at this address, as others are told it (`host:port`); `life` is random. Begins with
    /// [`Self::tick`].
    #[must_use]
    pub fn new(address: String, life: impl Into<Bytes>, now: Time) -> Self {
        Self {
            life: life.into(),
            lease: Lease::new(now),
            following: Following::Backoff(now),
            enlisted: None,
            taken_told: false,
            picture: Picture::new(&address),
            address,
            current: false,
            ours: BTreeMap::new(),
            loaded: BTreeMap::new(),
            later: BTreeMap::new(),
            saving: Saving::default(),
            jobs: VecDeque::new(),
            step: None,
            last_call: 0,
            effects: VecDeque::new(),
        }
    }

    /// Takes what happened: now, or when what is under way is done. Who has more than can be kept waits until it is
    /// not [busy](Self::is_busy).
    pub fn handle(&mut self, now: Time, input: Input) {
        self.jobs.push_back(Job::Given(input));
        self.tick(now);
    }

    /// Takes an answer. Nothing happens if it is not waited for any more.
    pub fn answered(&mut self, now: Time, call: Call, answer: Answer) {
        match self.lease.answered(now, call, answer) {
            Ok(outcome) => {
                if let Some(trouble) = outcome.trouble {
                    self.warn(trouble);
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
        if matches!(self.following, Following::Looking(of) if of == call) {
            if let Answer::Listed(entries) = answer {
                self.following = Following::Changes;
                self.jobs.push_back(Job::All(entries));
            } else {
                self.warn(format!("the directory cannot read its metadata yet: {}", cause(answer)));
                self.following = Following::Backoff(now.plus_ms(RETRY_MS));
            }
            return;
        }
        match self.saving.answered(call, answer) {
            Ok((saved, trouble)) => {
                if let Some(cause) = trouble {
                    self.warn(format!(
                        "the record of queue {:?} is not saved yet: {cause}",
                        saved.queue
                    ));
                }
                self.jobs.push_back(Job::Saved(saved));
            }
            Err(answer) => {
                if let Some((_, step)) = self.step.take_if(|(of, _)| *of == call) {
                    self.go_on(now, step, answer);
                }
            }
        }
    }

    /// Keeps the lease, and goes on with what is under way.
    pub fn tick(&mut self, now: Time) {
        let call = self.number();
        match self.lease.turn(now, call) {
            Turn::Nothing => {}
            Turn::Ask(request, patience_ms) => {
                self.ask_as(call, request, patience_ms);
            }
            Turn::Over(cause) => {
                self.warn(cause.to_owned());
                self.lease_changed(now);
            }
        }
        while self.step.is_none()
            && let Some(job) = self.jobs.pop_front()
        {
            self.begin(now, job);
        }
        if matches!(self.following, Following::Backoff(at) if at <= now) {
            let call = self.number();
            self.following = Following::Looking(call);
            self.ask_as(call, Request::Look, LOOK_MS_MAX);
        }
        self.write();
    }

    /// One of the things that were put off, if one is due and nothing is under way: whatever else there is to do has its
    /// turn between them.
    pub fn do_due(&mut self, now: Time) {
        let first = self.later.iter().min_by_key(|(_, at)| **at);
        let first = first.filter(|(_, at)| **at <= now && self.step.is_none());
        let Some(later) = first.map(|(later, _)| later.clone()) else { return };
        self.later.remove(&later);
        match later {
            Later::Claim(queue) => self.claim_for(now, queue),
            Later::Load(queue) => self.load(queue),
            Later::Enlist => self.enlist(),
            // What cannot be claimed yet is planned again when it can.
            Later::Vacant(_) if self.enlisted.is_none() || !self.current => {}
            Later::Vacant(shard) if self.ours.contains_key(&shard) => {}
            Later::Vacant(shard) => self.claim(now, shard, None),
        }
    }

    /// The next thing to do, in order.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// When [`Self::tick`] is due, if nothing else comes before.
    #[must_use]
    pub fn next_deadline(&self) -> Time {
        match self.following {
            Following::Backoff(at) => self.lease.deadline().min(at),
            Following::Looking(_) | Following::Changes => self.lease.deadline(),
        }
    }

    /// When [`Self::do_due`] has something to do; not while something is under way.
    #[must_use]
    pub fn next_due(&self) -> Option<Time> {
        self.later.values().min().copied().filter(|_| self.step.is_none())
    }

    /// Something is under way: what comes is kept until it is done.
    #[must_use]
    pub const fn is_busy(&self) -> bool {
        self.step.is_some()
    }

    /// What the store says at present, as far as it is known.
    #[must_use]
    pub const fn picture(&self) -> &Picture {
        &self.picture
    }

    /// Under which a queue is this directory's, as it believes.
    #[must_use]
    pub fn fence(&self, queue: &str) -> Option<Fence> {
        self.ours.get(&Shard::of(queue)).copied()
    }

    /// To be given back at the end: others may take the queues at once.
    #[must_use]
    pub const fn lease(&self) -> Option<LeaseId> {
        self.lease.held()
    }

    fn number(&mut self) -> Call {
        self.last_call += 1;
        Call(self.last_call)
    }

    fn ask(&mut self, step: Step, request: Request) {
        let patience_ms =
            if matches!(request, Request::Relays { .. }) { RELAYS_MS_MAX } else { ANSWER_MS_MAX };
        let call = self.number();
        self.step = Some((call, step));
        self.ask_as(call, request, patience_ms);
    }

    fn ask_as(&mut self, call: Call, request: Request, patience_ms: u64) {
        self.effects.push_back(Effect::Ask { call, request, patience_ms });
    }

    fn write(&mut self) {
        loop {
            let call = self.number();
            let Some(txn) = self.saving.begin(call) else { return };
            self.ask_as(call, Request::Txn(txn), ANSWER_MS_MAX);
        }
    }

    fn begin(&mut self, now: Time, job: Job) {
        match job {
            Job::Given(input) => self.take(now, input),
            Job::All(entries) => self.take_all(now, &entries),
            Job::LeaseChanged => {
                self.enlisted = None;
                self.lose_all(now);
                self.enlist();
            }
            Job::Saved(saved) if saved.result == Err(SaveError::Fenced) => {
                // The watch may not have told yet who has it now.
                let shard = Shard::of(&saved.queue);
                self.ask(Step::Fenced(saved), Request::Get(shard.key()));
            }
            Job::Saved(saved) => self.saved(saved),
        }
    }

    fn take(&mut self, now: Time, input: Input) {
        match input {
            Input::Claim { queue } => self.claim_for(now, queue),
            Input::Write { queue, save, fence, record } => {
                if record.is_none() {
                    self.loaded.remove(&queue);
                }
                self.saving.write(queue, Write { save, fence, record });
            }
            Input::Untaken { queue } => {
                self.loaded.remove(&queue);
            }
            Input::Changes(changes) => self.take_changes(now, &changes),
            Input::WatchLost => {
                self.current = false;
                self.following = Following::Backoff(now);
            }
        }
    }

    /// The answer to what is under way.
    fn go_on(&mut self, now: Time, step: Step, answer: Answer) {
        match step {
            Step::Enlist(step) => self.enlisting(now, step, answer),
            Step::Claim(step) => self.claiming(now, step, answer),
            Step::Record { queue } => match answer {
                Answer::Got(entry) => {
                    let record = entry.map(|entry| entry.value);
                    let request = Request::Relays { queue: queue.clone() };
                    self.ask(Step::Relays { queue, record }, request);
                }
                other => self.not_read(now, queue, other),
            },
            Step::Relays { queue, record } => match (answer, self.fence(&queue)) {
                (Answer::Running(running), Some(fence)) => {
                    self.loaded.insert(queue.clone(), Shard::of(&queue));
                    self.tell(DirectoryInput::Owned { queue, fence, record, running });
                }
                (other, _) => self.not_read(now, queue, other),
            },
            Step::Fenced(saved) => {
                let shard = Shard::of(&saved.queue);
                if let Answer::Got(Some(entry)) = answer {
                    self.picture.change(&Change::Put(entry));
                }
                if self.picture.fence(shard) != self.ours.get(&shard).copied() {
                    self.lost(now, shard);
                }
                self.saved(saved);
            }
        }
    }

    fn saved(&mut self, saved: Saved) {
        let Saved { queue, save, result, answered } = saved;
        if answered {
            self.tell(DirectoryInput::Saved { queue, save, result });
        }
    }

    /// Gives the directory a queue that is ours.
    fn load(&mut self, queue: String) {
        if self.fence(&queue).is_some() && !self.loaded.contains_key(&queue) {
            let key = keys::queue(&queue);
            self.ask(Step::Record { queue }, Request::Get(key));
        }
    }

    fn not_read(&mut self, now: Time, queue: String, answer: Answer) {
        self.warn(format!("queue {queue:?} cannot be read yet: {}", cause(answer)));
        self.at(now, Later::Load(queue), RETRY_MS);
    }

    fn take_all(&mut self, now: Time, entries: &[Entry]) {
        self.picture = Picture::of(&self.address, entries);
        self.current = true;
        self.tell_directories();
        let ours: Vec<_> = self.ours.iter().map(|(shard, fence)| (*shard, *fence)).collect();
        for (shard, fence) in ours {
            if self.picture.fence(shard) != Some(fence) {
                self.lost(now, shard);
            }
        }
        self.claim_all(now);
    }

    fn take_changes(&mut self, now: Time, changes: &[Change]) {
        let mut directories = false;
        for change in changes {
            let Some(shard) = self.picture.change(change) else {
                directories = true;
                continue;
            };
            let ours = self.ours.get(&shard).copied();
            if ours.is_some() && self.picture.fence(shard) != ours {
                self.lost(now, shard);
            }
            self.claim_if_vacant(now, shard);
        }
        if directories {
            self.tell_directories();
        }
    }

    /// The directory, and by it relays and clients, are told this one first.
    fn tell_directories(&mut self) {
        let others = self.picture.directories().filter(|other| *other != self.address);
        let ours = std::iter::once(self.address.as_str());
        let all = ours.chain(others).map(str::to_owned).collect();
        self.tell(DirectoryInput::Directories(all));
    }

    fn lease_changed(&mut self, now: Time) {
        // What is under way is not waited for: nothing is ours any more.
        if let Some((_, step)) = self.step.take() {
            let cause = "this directory has no lease at present".to_owned();
            self.go_on(now, step, Answer::Failed(cause));
        }
        self.jobs.push_front(Job::LeaseChanged);
    }

    fn at(&mut self, now: Time, later: Later, delay_ms: u64) {
        self.later.entry(later).or_insert_with(|| now.plus_ms(delay_ms));
    }

    fn tell(&mut self, input: DirectoryInput) {
        self.effects.push_back(Effect::Tell(input));
    }

    fn warn(&mut self, text: String) {
        self.effects.push_back(Effect::Warn(text));
    }
}

/// Why an answer is not what was asked for.
fn cause(answer: Answer) -> String {
    match answer {
        Answer::Failed(cause) => cause,
        Answer::LeaseEnded => "this directory's lease has ended".to_owned(),
        other => format!("an answer to something else: {other:?}"),
    }
}
