//! Which directory owns what, against a store of a few lines that answers when the test says so.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use quelea_elastic_core::directory::{Input as DirectoryInput, SaveError};
use quelea_elastic_core::ownership::keys::{self, Shard};
use quelea_elastic_core::ownership::meta::{
    Change, Compare, Entry, LeaseId, Op, Revision, Txn, TxnOutcome,
};
use quelea_elastic_core::ownership::{
    Answer, Call, Effect, Input, LEASE_TTL_MS, Ownership, Request,
};
use quelea_elastic_proto::{Fence, Time};

const QUEUE: &str = "prices";
const HERE: &str = "10.0.0.1:5670";
const THERE: &str = "10.0.0.2:5670";

struct OwnershipWorld {
    ownership: Ownership,
    now: Time,
    entries: BTreeMap<String, Entry>,
    revision: u64,
    leases: u64,
    asked: VecDeque<(Call, Request)>,
    notified: Vec<DirectoryInput>,
    lost: Vec<(Shard, Option<String>)>,
    warned: Vec<String>,
}

impl OwnershipWorld {
    fn new() -> Self {
        Self::with([])
    }

    /// Creates a world with what the store has already.
    fn with<const COUNT: usize>(entries: [(String, &str); COUNT]) -> Self {
        let now = Time::from_micros(7);
        let mut world = Self {
            ownership: Ownership::new(HERE.to_owned(), "this life", now),
            now,
            entries: BTreeMap::new(),
            revision: 0,
            leases: 0,
            asked: VecDeque::new(),
            notified: Vec::new(),
            lost: Vec::new(),
            warned: Vec::new(),
        };
        for (key, value) in entries {
            world.put(key, value.to_owned().into());
        }
        world.ownership.tick(now);
        world.take_effects();
        world
    }

    /// Creates a world in which the queue is owned here. Returns it with the fence.
    fn owning() -> (Self, u64) {
        let mut world = Self::new();
        world.claim();
        world.pass_ms(1_000);
        let fence = world.entries[&shard().key()].created.0;
        assert_eq!(world.owned(), [fence]);
        assert_eq!(world.ownership.fence(QUEUE), Some(Fence(fence)));
        (world, fence)
    }

    /// Lets another one be faster when the shard's key goes. Returns its entry.
    fn let_another_take_it(&mut self) -> Entry {
        self.entries.remove(&shard().key());
        self.put(shard().key(), THERE.into());
        self.entries[&shard().key()].clone()
    }

    fn put(&mut self, key: String, value: Bytes) -> Revision {
        self.revision += 1;
        let modified = Revision(self.revision);
        let created = self.entries.get(&key).map_or(modified, |entry| entry.created);
        self.entries.insert(key.clone(), Entry { key, value, created, modified });
        modified
    }

    fn answer_of(&mut self, request: Request) -> Answer {
        match request {
            Request::ListAndWatch => Answer::Listed(self.entries.values().cloned().collect()),
            Request::Get(key) => Answer::Got(self.entries.get(&key).cloned()),
            Request::Txn(txn) => Answer::Txn(self.txn(txn)),
            Request::Lease => {
                self.leases += 1;
                Answer::Lease(LeaseId(self.leases))
            }
            Request::KeepAlive(_) => Answer::Alive,
            Request::Relays { .. } => Answer::Running(Vec::new()),
        }
    }

    fn txn(&mut self, txn: Txn) -> TxnOutcome {
        for compare in &txn.compares {
            let Compare::Created(key, at) = compare else { panic!("{compare:?}") };
            if self.entries.get(key).map_or(Revision(0), |entry| entry.created) != *at {
                return TxnOutcome::Refused;
            }
        }
        for change in txn.changes {
            match change {
                Op::Put { key, value, .. } => drop(self.put(key, value)),
                Op::Delete { key } => drop(self.entries.remove(&key)),
            }
        }
        TxnOutcome::Done(Revision(self.revision))
    }

    fn take_effects(&mut self) {
        while let Some(effect) = self.ownership.poll_effect() {
            match effect {
                Effect::Request { call, request, timeout_ms } => {
                    assert!((1..=10_000).contains(&timeout_ms), "{request:?}: {timeout_ms}");
                    self.asked.push_back((call, request));
                }
                Effect::Notify(input) => self.notified.push(input),
                Effect::ShardLost { shard, owner } => self.lost.push((shard, owner)),
                Effect::Info(_) => {}
                Effect::Warn(text) => self.warned.push(text),
            }
        }
    }

    fn give(&mut self, input: Input) {
        self.ownership.handle(self.now, input);
        self.take_effects();
    }

    fn answer(&mut self, call: Call, answer: Answer) {
        self.ownership.answered(self.now, call, answer);
        self.take_effects();
    }

    /// Answers all that is asked, and what is asked then.
    fn settle(&mut self) {
        while let Some((call, request)) = self.asked.pop_front() {
            let answer = self.answer_of(request);
            self.answer(call, answer);
        }
    }

    fn pass_ms(&mut self, ms: u64) {
        self.settle();
        let until = self.now.plus_ms(ms);
        while self.turn(until) {
            self.settle();
        }
        self.now = until;
    }

    /// Takes the next step that is due, if that is by then. Returns whether it was.
    fn turn(&mut self, until: Time) -> bool {
        let deadline = self.ownership.next_deadline();
        let next = self.ownership.next_due().map_or(deadline, |due| due.min(deadline));
        if next > until {
            return false;
        }
        self.now = self.now.max(next);
        self.ownership.tick(self.now);
        self.ownership.run_deferred(self.now);
        self.take_effects();
        true
    }

    /// As [`Self::pass_ms`], but nothing is answered.
    fn pass_in_silence(&mut self, ms: u64) {
        let until = self.now.plus_ms(ms);
        while self.turn(until) {}
        self.now = until;
    }

    fn claim(&mut self) {
        self.give(Input::Claim { queue: QUEUE.to_owned() });
    }

    /// Returns the fences under which the queue was given to the directory since it was last asked.
    fn owned(&mut self) -> Vec<u64> {
        let notified = std::mem::take(&mut self.notified);
        let owned = notified.into_iter().filter_map(|notified| match notified {
            DirectoryInput::Owned { queue, fence, .. } if queue == QUEUE => Some(fence.0),
            _ => None,
        });
        owned.collect()
    }

    /// Writes with this fence. Returns whether the store refused or did it.
    fn saved(&mut self, fence: u64) -> Option<Result<(), SaveError>> {
        self.notified.clear();
        let (queue, record) = (QUEUE.to_owned(), Some(Bytes::from_static(b"record")));
        self.give(Input::Write { queue, save: 9, fence: Fence(fence), record });
        self.settle();
        self.notified.iter().find_map(|notified| match notified {
            DirectoryInput::Saved { save: 9, result, .. } => Some(*result),
            _ => None,
        })
    }
}

fn shard() -> Shard {
    Shard::of(QUEUE)
}

#[test]
fn a_vacant_queue_is_claimed_read_and_written_under_its_fence() {
    let (mut world, fence) = OwnershipWorld::owning();
    world.claim();
    world.settle();
    assert_eq!(world.owned(), [0_u64; 0], "it has it");
    world.give(Input::Declined { queue: QUEUE.to_owned() });
    world.claim();
    world.settle();
    assert_eq!(world.owned(), [fence]);
    assert_eq!(world.saved(fence), Some(Ok(())));
    assert_eq!(world.saved(fence - 1), Some(Err(SaveError::Fenced)));
    assert_eq!(world.ownership.fence(QUEUE), Some(Fence(fence)), "an old write takes nothing away");
}

#[test]
fn what_another_owns_is_not_claimed_and_its_owner_is_reported() {
    let mut world = OwnershipWorld::with([(shard().key(), THERE)]);
    world.claim();
    world.pass_ms(5_000);
    let disowned = world
        .notified
        .iter()
        .any(|notified| matches!(notified, DirectoryInput::Disowned { owner: Some(owner), .. } if owner == THERE));
    assert!(disowned && world.ownership.fence(QUEUE).is_none());
}

#[test]
fn the_shard_of_an_earlier_instance_is_taken_under_a_new_fence() {
    let mut world = OwnershipWorld::with([(shard().key(), HERE), (keys::queue(QUEUE), "record")]);
    let before = world.entries[&shard().key()].created.0;
    world.pass_ms(1_000);
    let owned = world.owned();
    assert!(matches!(owned[..], [fence] if fence > before), "{owned:?}");
}

#[test]
fn a_taken_address_claims_nothing_until_the_other_is_gone() {
    let mut world = OwnershipWorld::with([(keys::directory(HERE), "another life")]);
    world.claim();
    world.pass_ms(20_000);
    assert!(world.ownership.fence(QUEUE).is_none());
    let notified = world.warned.iter().filter(|text| text.contains("has the address")).count();
    assert_eq!(notified, 1, "{:?}", world.warned);
    world.entries.remove(&keys::directory(HERE));
    world.pass_ms(2_000);
    assert!(world.ownership.fence(QUEUE).is_some());
}

#[test]
fn an_unanswered_store_costs_the_lease_and_all_shards_in_time() {
    let (mut world, _) = OwnershipWorld::owning();
    // Something is under way that is never answered.
    world.give(Input::Claim { queue: "other".to_owned() });
    world.pass_in_silence(LEASE_TTL_MS);
    assert_eq!(world.lost, [(shard(), None)]);
    assert!(world.ownership.lease().is_none() && world.ownership.fence(QUEUE).is_none());
    // What was asked then is answered too late: it stands for nothing.
    let late = std::mem::take(&mut world.asked);
    for (call, _) in late.into_iter().filter(|(_, asked)| matches!(asked, Request::Txn(_))) {
        world.answer(call, Answer::Txn(TxnOutcome::Done(Revision(999))));
    }
    assert!(world.ownership.fence("other").is_none());
}

#[test]
fn a_lease_that_the_store_has_ended_is_followed_by_another() {
    let mut world = OwnershipWorld::new();
    world.claim();
    world.pass_ms(100);
    let fence = world.owned()[0];
    world.pass_in_silence(LEASE_TTL_MS / 4);
    world.entries.clear();
    let (call, request) = world.asked.pop_front().expect("a sign of life");
    assert!(matches!(request, Request::KeepAlive(_)));
    world.answer(call, Answer::LeaseEnded);
    world.settle();
    assert_eq!(world.lost, [(shard(), None)]);
    world.claim();
    world.pass_ms(1_000);
    assert!(world.owned()[0] > fence);
}

/// Returns the address of a directory that is meant for the queue's shard rather than this one, or
/// less.
fn another(meant_more: bool) -> String {
    let mut others = (2..).map(|number| format!("10.0.0.{number}:5670"));
    let here = shard().weight(HERE);
    others.find(|other| (shard().weight(other) > here) == meant_more).expect("there are many")
}

#[test]
fn a_vacant_shard_is_claimed_in_the_order_of_rank() {
    for (meant_more, waits) in [(false, false), (true, true)] {
        let (queue, other) = (keys::queue(QUEUE), keys::directory(&another(meant_more)));
        let mut world =
            OwnershipWorld::with([(queue, "record"), (other, "its life"), (shard().key(), THERE)]);
        world.pass_ms(1_000);
        assert_eq!(world.owned(), [0_u64; 0]);
        world.entries.remove(&shard().key()).expect("it is there");
        world.revision += 1;
        let revision = Revision(world.revision);
        world.give(Input::Changes(vec![Change::Gone { key: shard().key(), revision }]));
        world.pass_ms(250);
        assert_eq!(world.owned().is_empty(), waits, "{meant_more}");
        world.pass_ms(100);
        assert!(world.ownership.fence(QUEUE).is_some());
    }
}

#[test]
fn a_refused_write_finds_who_has_the_shard_before_the_watch_does() {
    let (mut world, fence) = OwnershipWorld::owning();
    world.let_another_take_it();
    assert_eq!(world.saved(fence), Some(Err(SaveError::Fenced)));
    assert_eq!(world.lost, [(shard(), Some(THERE.to_owned()))]);
    assert!(world.ownership.fence(QUEUE).is_none());
}

#[test]
fn the_outcome_of_a_removal_is_reported_as_that_of_a_write() {
    let (mut world, fence) = OwnershipWorld::owning();
    for (answer, outcome) in [
        (Answer::Failed("not now".to_owned()), Err(SaveError::Unavailable)),
        (Answer::Txn(TxnOutcome::Done(Revision(9))), Ok(())),
    ] {
        world.notified.clear();
        let (queue, record) = (QUEUE.to_owned(), None);
        world.give(Input::Write { queue, save: 0, fence: Fence(fence), record });
        let (call, _) = world.asked.pop_front().expect("a transaction");
        world.answer(call, answer);
        let saved = DirectoryInput::Saved { queue: QUEUE.to_owned(), save: 0, result: outcome };
        assert_eq!(world.notified, [saved]);
    }
}

#[test]
fn a_shard_that_another_one_has_by_now_is_given_away() {
    let (mut world, fence) = OwnershipWorld::owning();
    let entry = world.let_another_take_it();
    assert!(entry.created.0 > fence);
    world.give(Input::Changes(vec![Change::Put(entry)]));
    assert_eq!(world.lost, [(shard(), Some(THERE.to_owned()))]);
    assert_eq!(world.saved(fence), Some(Err(SaveError::Fenced)));
}

/// What is put off does not keep anybody who comes from his turn.
#[test]
fn answers_begin_nothing_that_was_put_off() {
    let mut world = OwnershipWorld::new();
    world.pass_ms(100);
    world.give(Input::Claim { queue: QUEUE.to_owned() });
    while let Some((call, request)) = world.asked.pop_front() {
        let answer = match request {
            Request::Relays { .. } => Answer::Failed("it is away".to_owned()),
            request => world.answer_of(request),
        };
        world.answer(call, answer);
    }
    let due = world.ownership.next_due().expect("it is tried again");
    world.now = due.plus_ms(1_000);
    world.ownership.tick(world.now);
    world.take_effects();
    world.settle();
    assert!(!world.ownership.is_busy() && world.ownership.next_due() == Some(due));
    world.ownership.run_deferred(world.now);
    assert!(world.ownership.is_busy() && world.ownership.next_due().is_none());
}

#[test]
fn nothing_is_claimed_by_a_stale_cluster_view() {
    let mut world = OwnershipWorld::new();
    world.pass_ms(100);
    world.give(Input::WatchLost);
    let look = world.asked.pop_front().expect("it looks again");
    assert_eq!(look.1, Request::ListAndWatch);
    world.claim();
    world.pass_ms(1_000);
    assert!(world.ownership.fence(QUEUE).is_none());
    world.answer(look.0, Answer::Failed("not now".to_owned()));
    world.pass_ms(1_000);
    assert!(world.ownership.fence(QUEUE).is_some());
}

#[test]
fn a_queue_has_one_write_under_way_and_all_together_64() {
    let mut world = OwnershipWorld::new();
    world.settle();
    let write = |queue: String, save| Input::Write {
        queue,
        save,
        fence: Fence(1),
        record: Some(Bytes::new()),
    };
    for save in 0..3 {
        world.give(write(QUEUE.to_owned(), save));
    }
    assert_eq!(world.asked.len(), 1);
    for number in 0..100 {
        world.give(write(format!("queue {number}"), number));
    }
    assert_eq!(world.asked.len(), 64);
    let mut most = 0;
    while let Some((call, _)) = world.asked.pop_front() {
        world.answer(call, Answer::Txn(TxnOutcome::Done(Revision(1))));
        most = most.max(world.asked.len());
    }
    assert_eq!(most, 64);
    let saves = world.notified.iter().filter_map(|notified| match notified {
        DirectoryInput::Saved { queue, save, result: Ok(()) } if queue == QUEUE => Some(*save),
        _ => None,
    });
    assert_eq!(saves.collect::<Vec<_>>(), [0, 1, 2]);
    let all = world
        .notified
        .iter()
        .filter(|notified| matches!(notified, DirectoryInput::Saved { .. }))
        .count();
    assert_eq!(all, 103);
}
