//! Which directory owns the queue: the shell of `quelea_directory::ownership`, one thing after the other
//! as there, against the model of the store. One queue, so one shard.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use quelea_elastic::directory::{Input, RelayHandle, SaveError};
use quelea_elastic_proto::{Fence, Time};

use crate::packets::cx::Cx;
use crate::packets::event::{ProviderAnswer, ProviderCall};
use crate::packets::lease::Lease;
use crate::packets::store::{Change, Entry, Op, StoreAnswer, StoreCall};

/// The queue of every run.
pub(super) const QUEUE: &str = "prices";
/// Whose value is the owner's address, and whose making is the fence.
pub(super) const SHARD: &str = "shards/prices";
/// The queue's record.
pub(super) const RECORD: &str = "queues/prices";
const DIRECTORIES: &str = "directories/";

/// As in the shell, milliseconds: what a store may take, pauses between tries, and how much longer each
/// next directory waits before it claims.
const ANSWER_MS_MAX: u64 = 3_000;
const RETRY_MS: u64 = 500;
const RANK_MS: u64 = 300;

/// What is done later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Later {
    Look,
    Claim,
    Vacant,
    Load,
    Enlist,
}

/// What is done one after the other.
#[derive(Debug)]
enum Job {
    Now(Later),
    Changes(Vec<Change>),
    LeaseChanged,
    Fenced { save: u64 },
}

/// The job under way, waiting for an answer.
#[derive(Debug)]
enum Step {
    Look,
    Enlist,
    Take { wanted: bool },
    WhoseIsIt { wanted: bool },
    DropOwn { wanted: bool },
    Record,
    Running { record: Option<Bytes> },
    WhoFenced { save: u64 },
}

#[derive(Debug)]
struct Write {
    save: u64,
    fence: Fence,
    record: Option<Bytes>,
}

/// See the module.
pub(super) struct Ownership {
    address: String,
    pub(super) lease: Lease,
    ours: Option<u64>,
    loaded: bool,
    owner: Option<(String, u64)>,
    has_queue: bool,
    directories: BTreeSet<String>,
    later: BTreeMap<Later, Time>,
    jobs: VecDeque<Job>,
    step: Option<(Step, u64, Time)>,
    writes: VecDeque<Write>,
    writing: Option<(u64, u64, bool, Time)>,
    calls: u64,
    /// For the state machine.
    pub(super) inputs: VecDeque<Input>,
}

impl Ownership {
    /// `calls` numbers what it asks: every second number is its own.
    pub(super) fn new(address: String, now: Time) -> Self {
        Self {
            address,
            lease: Lease::new(now),
            ours: None,
            loaded: false,
            owner: None,
            has_queue: false,
            directories: BTreeSet::new(),
            later: BTreeMap::new(),
            jobs: VecDeque::from([Job::Now(Later::Look)]),
            step: None,
            writes: VecDeque::new(),
            writing: None,
            calls: 0,
            inputs: VecDeque::new(),
        }
    }

    /// The fence, while it believes that the queue is its own.
    pub(super) fn fence(&self) -> Option<u64> {
        self.ours
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        let step = self.step.as_ref().map(|(_, _, at)| *at);
        let writing = self.writing.map(|(_, _, _, at)| at);
        let later = self.later.values().min().copied();
        let all = [step, writing, later, Some(self.lease.deadline())];
        all.into_iter().flatten().min()
    }

    /// `Effect::Claim`.
    pub(super) fn claim(&mut self) {
        self.jobs.push_back(Job::Now(Later::Claim));
    }

    /// `Effect::Save`, and `Effect::Remove` without a record.
    pub(super) fn write(&mut self, save: u64, fence: Fence, record: Option<Bytes>) {
        self.loaded &= record.is_some();
        self.writes.push_back(Write { save, fence, record });
    }

    /// The state machine has not taken the queue: nobody wants it any more. It may be wanted again.
    pub(super) const fn untaken(&mut self) {
        self.loaded = false;
    }

    pub(super) fn changed(&mut self, changes: Vec<Change>) {
        self.jobs.push_back(Job::Changes(changes));
    }

    /// Does what is due, and begins what can be.
    pub(super) fn turn(&mut self, cx: &mut Cx<'_>) {
        if self.lease.turn(cx, &mut self.calls) {
            self.jobs.push_back(Job::LeaseChanged);
        }
        if let Some((step, _, _)) = self.step.take_if(|(_, _, at)| *at <= cx.now) {
            self.answered(cx, step, StoreAnswer::Unavailable);
        }
        if let Some((_, save, answered, _)) = self.writing.take_if(|(_, _, _, at)| *at <= cx.now) {
            self.written(save, answered, Err(SaveError::Unavailable));
        }
        let due: Vec<Later> =
            self.later.iter().filter(|(_, at)| **at <= cx.now).map(|(later, _)| *later).collect();
        for later in due {
            self.later.remove(&later);
            self.jobs.push_back(Job::Now(later));
        }
        self.begin_write(cx);
        while self.step.is_none()
            && let Some(job) = self.jobs.pop_front()
        {
            self.begin(cx, job);
        }
    }

    /// The store answers a call. Nothing happens if it is not waited for any more.
    pub(super) fn store_answers(&mut self, cx: &mut Cx<'_>, call: u64, answer: StoreAnswer) {
        if self.lease.answered(cx.now, call, &answer) {
            self.jobs.push_back(Job::LeaseChanged);
        } else if let Some((_, save, answered, _)) =
            self.writing.take_if(|(of, _, _, _)| *of == call)
        {
            let result = match answer {
                StoreAnswer::Txn(Some(_)) => Ok(()),
                StoreAnswer::Txn(None) => Err(SaveError::Fenced),
                _ => Err(SaveError::Unavailable),
            };
            self.written(save, answered, result);
        } else if let Some((step, _, _)) = self.step.take_if(|(_, of, _)| *of == call) {
            self.answered(cx, step, answer);
        }
    }

    /// The provider answers `list`. Gives back what is not for this.
    pub(super) fn provider_answers(&mut self, call: u64, answer: &ProviderAnswer) -> bool {
        let Some((step, _, _)) = self.step.take_if(|(_, of, _)| *of == call) else { return false };
        if let (Step::Running { record }, ProviderAnswer::Running(running)) = (step, answer) {
            self.load(record, running.clone());
        }
        true
    }

    fn load(&mut self, record: Option<Bytes>, running: Vec<RelayHandle>) {
        let Some(fence) = self.ours else { return };
        self.loaded = true;
        let queue = QUEUE.to_owned();
        self.inputs.push_back(Input::Owned { queue, fence: Fence(fence), record, running });
    }

    fn written(&mut self, save: u64, answered: bool, result: Result<(), SaveError>) {
        if result == Err(SaveError::Fenced) {
            self.jobs.push_back(Job::Fenced { save });
        } else if answered {
            self.inputs.push_back(Input::Saved { queue: QUEUE.to_owned(), save, result });
        }
    }

    fn begin_write(&mut self, cx: &mut Cx<'_>) {
        if self.writing.is_some() {
            return;
        }
        let Some(Write { save, fence, record }) = self.writes.pop_front() else { return };
        let (key, answered) = (RECORD.to_owned(), record.is_some());
        let change = match record {
            Some(value) => Op::Put { key, value, lease: None },
            None => Op::Delete { key },
        };
        let made = vec![(SHARD.to_owned(), fence.0)];
        self.calls += 1;
        self.writing = Some((self.calls, save, answered, cx.now.plus_ms(ANSWER_MS_MAX)));
        cx.ask_store(self.calls, StoreCall::Txn { made, change });
    }

    fn ask(&mut self, cx: &mut Cx<'_>, step: Step, call: StoreCall) {
        self.calls += 1;
        self.step = Some((step, self.calls, cx.now.plus_ms(ANSWER_MS_MAX)));
        cx.ask_store(self.calls, call);
    }

    fn at(&mut self, cx: &Cx<'_>, later: Later, ms: u64) {
        self.later.entry(later).or_insert_with(|| cx.now.plus_ms(ms));
    }

    fn begin(&mut self, cx: &mut Cx<'_>, job: Job) {
        match job {
            Job::Now(Later::Look) => self.ask(cx, Step::Look, StoreCall::ListAndWatch),
            Job::Now(Later::Claim) if self.ours.is_some() => self.read(cx),
            Job::Now(Later::Claim) => self.take(cx, true),
            Job::Now(Later::Vacant) if self.ours.is_some() => {}
            Job::Now(Later::Vacant) => self.take(cx, false),
            Job::Now(Later::Load) => self.read(cx),
            Job::Now(Later::Enlist) => self.enlist(cx),
            Job::Changes(changes) => {
                for change in changes {
                    self.see(&change);
                    self.tell_directories();
                    if self.ours.is_some()
                        && self.owner.as_ref().map(|(_, made)| *made) != self.ours
                    {
                        self.lost(cx);
                    }
                    self.claim_if_vacant(cx);
                }
            }
            Job::LeaseChanged => {
                self.lost(cx);
                if self.lease.held().is_some() {
                    self.claim_if_vacant(cx);
                    self.enlist(cx);
                }
            }
            Job::Fenced { save } => {
                self.ask(cx, Step::WhoFenced { save }, StoreCall::Get(SHARD));
            }
        }
    }

    fn enlist(&mut self, cx: &mut Cx<'_>) {
        let Some(lease) = self.lease.held() else { return };
        let key = format!("{DIRECTORIES}{}", self.address);
        let change = Op::Put { key, value: Bytes::new(), lease: Some(lease) };
        self.ask(cx, Step::Enlist, StoreCall::Txn { made: Vec::new(), change });
    }

    fn take(&mut self, cx: &mut Cx<'_>, wanted: bool) {
        let Some(lease) = self.lease.held() else { return self.try_again(cx, wanted) };
        let value = Bytes::from(self.address.clone());
        let change = Op::Put { key: SHARD.to_owned(), value, lease: Some(lease) };
        let made = vec![(SHARD.to_owned(), 0)];
        self.ask(cx, Step::Take { wanted }, StoreCall::Txn { made, change });
    }

    fn try_again(&mut self, cx: &Cx<'_>, wanted: bool) {
        self.at(cx, if wanted { Later::Claim } else { Later::Vacant }, RETRY_MS);
    }

    fn read(&mut self, cx: &mut Cx<'_>) {
        if self.ours.is_some() && !self.loaded {
            self.ask(cx, Step::Record, StoreCall::Get(RECORD));
        }
    }

    fn answered(&mut self, cx: &mut Cx<'_>, step: Step, answer: StoreAnswer) {
        match (step, answer) {
            (Step::Look, StoreAnswer::Listed(entries)) => self.looked(cx, entries),
            (Step::Look, _) => self.at(cx, Later::Look, RETRY_MS),
            (Step::Enlist, StoreAnswer::Txn(Some(_))) => {}
            (Step::Enlist, _) => self.at(cx, Later::Enlist, RETRY_MS),
            (Step::Take { wanted }, StoreAnswer::Txn(Some(made))) => {
                self.ours = Some(made);
                self.owner = Some((self.address.clone(), made));
                self.loaded = false;
                self.later.remove(&Later::Vacant);
                if wanted || self.has_queue {
                    self.read(cx);
                }
            }
            (Step::Take { wanted }, StoreAnswer::Txn(None)) => {
                self.ask(cx, Step::WhoseIsIt { wanted }, StoreCall::Get(SHARD));
            }
            (Step::WhoseIsIt { wanted }, StoreAnswer::Got(None))
            | (Step::DropOwn { wanted }, StoreAnswer::Txn(_)) => self.take(cx, wanted),
            (Step::WhoseIsIt { wanted }, StoreAnswer::Got(Some(entry))) => {
                let owner = String::from_utf8_lossy(&entry.value).into_owned();
                if owner == self.address {
                    let made = vec![(SHARD.to_owned(), entry.made)];
                    let change = Op::Delete { key: SHARD.to_owned() };
                    self.ask(cx, Step::DropOwn { wanted }, StoreCall::Txn { made, change });
                } else if wanted {
                    let (queue, owner) = (QUEUE.to_owned(), Some(owner));
                    self.inputs.push_back(Input::Disowned { queue, owner });
                }
            }
            (Step::Take { wanted } | Step::WhoseIsIt { wanted } | Step::DropOwn { wanted }, _) => {
                self.try_again(cx, wanted);
            }
            (Step::Record, StoreAnswer::Got(entry)) => {
                let record = entry.map(|entry| entry.value);
                self.calls += 1;
                let until = cx.now.plus_ms(ANSWER_MS_MAX);
                self.step = Some((Step::Running { record }, self.calls, until));
                cx.ask_provider(self.calls, ProviderCall::List);
            }
            (Step::Record | Step::Running { .. }, _) => self.at(cx, Later::Load, RETRY_MS),
            (Step::WhoFenced { save }, answer) => {
                if let StoreAnswer::Got(Some(entry)) = answer {
                    self.see(&Change::Put(entry));
                }
                if self.owner.as_ref().map(|(_, made)| *made) != self.ours {
                    self.lost(cx);
                }
                let (queue, result) = (QUEUE.to_owned(), Err(SaveError::Fenced));
                self.inputs.push_back(Input::Saved { queue, save, result });
            }
        }
    }

    fn looked(&mut self, cx: &Cx<'_>, entries: Vec<Entry>) {
        (self.owner, self.has_queue) = (None, false);
        self.directories.clear();
        for entry in entries {
            self.see(&Change::Put(entry));
        }
        self.tell_directories();
        if self.ours.is_some() && self.owner.as_ref().map(|(_, made)| *made) != self.ours {
            self.lost(cx);
        }
        self.claim_if_vacant(cx);
    }

    /// As `quelea_directory` tells its state machine, and that its relays.
    fn tell_directories(&mut self) {
        let others = self.directories.iter().filter(|other| **other != self.address);
        let all = std::iter::once(&self.address).chain(others).cloned();
        self.inputs.push_back(Input::Directories(all.collect()));
    }

    fn see(&mut self, change: &Change) {
        match change {
            Change::Put(entry) if entry.key == SHARD => {
                if self.owner.as_ref().is_none_or(|(_, known)| *known <= entry.made) {
                    let owner = String::from_utf8_lossy(&entry.value).into_owned();
                    self.owner = Some((owner, entry.made));
                }
            }
            Change::Put(entry) if entry.key == RECORD => self.has_queue = true,
            Change::Put(entry) => {
                let address = entry.key.strip_prefix(DIRECTORIES);
                self.directories.extend(address.map(str::to_owned));
            }
            Change::Gone { key, revision } if key == SHARD => {
                if self.owner.as_ref().is_some_and(|(_, known)| known < revision) {
                    self.owner = None;
                }
            }
            Change::Gone { key, .. } if key == RECORD => self.has_queue = false,
            Change::Gone { key, .. } => {
                if let Some(address) = key.strip_prefix(DIRECTORIES) {
                    self.directories.remove(address);
                }
            }
        }
    }

    fn claim_if_vacant(&mut self, cx: &Cx<'_>) {
        let vacant = self.owner.as_ref().is_none_or(|(owner, _)| *owner == self.address);
        if vacant && self.has_queue && self.ours.is_none() {
            let before = self.directories.iter().filter(|other| **other < self.address).count();
            self.at(cx, Later::Vacant, RANK_MS * before as u64);
        }
    }

    fn lost(&mut self, cx: &Cx<'_>) {
        if self.ours.take().is_none() {
            return;
        }
        self.loaded = false;
        let owner = self.owner.as_ref().map(|(owner, _)| owner.clone());
        let owner = owner.filter(|owner| *owner != self.address);
        self.inputs.push_back(Input::Disowned { queue: QUEUE.to_owned(), owner });
        self.claim_if_vacant(cx);
    }
}
