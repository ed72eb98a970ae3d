//! Shards: claimed for a client that asks, or because nobody owns them; gained and lost.

use quelea_elastic_proto::{Fence, Time};

use super::io::{Answer, Effect, Request};
use super::keys::Shard;
use super::meta::{Compare, Op, Revision, Txn, TxnOutcome};
use super::{Deferred, Ownership, RANK_MS, RETRY_MS, Step, cause, keys};
use crate::directory::Input as DirectoryInput;

/// A claim under way.
#[derive(Debug)]
pub(super) struct Claim {
    shard: Shard,
    /// The queue that somebody needs; none: the shard is vacant.
    wanted: Option<String>,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    /// The shard is taken if it is vacant.
    Acquire,
    /// Somebody has it: who?
    ReadOwner,
    /// An earlier life or lease at this address has: that is deleted.
    DeleteStale,
    /// Then it is taken, if nobody else was faster.
    Reacquire,
}

impl Ownership {
    /// Somebody wants this queue.
    pub(super) fn claim_for(&mut self, now: Time, queue: String) {
        let shard = Shard::of(&queue);
        if self.ours.contains_key(&shard) {
            self.load(queue);
        } else {
            self.claim(now, shard, Some(queue));
        }
    }

    /// Takes a shard, unless somebody else has it.
    pub(super) fn claim(&mut self, now: Time, shard: Shard, wanted: Option<String>) {
        self.take_vacant(now, Claim { shard, wanted, phase: Phase::Acquire });
    }

    fn take_vacant(&mut self, now: Time, step: Claim) {
        let (Some(lease), Some(joined), true) =
            (self.lease.held(), self.joined, self.view_is_current)
        else {
            return self.claim_later(now, step);
        };
        let (key, value) = (step.shard.key(), self.address.clone().into());
        let compares = vec![self.still_joined(joined), Compare::Created(key.clone(), Revision(0))];
        let changes = vec![Op::Put { key, value, lease: Some(lease) }];
        self.request(Step::Claim(step), Request::Txn(Txn { compares, changes }));
    }

    fn still_joined(&self, joined: Revision) -> Compare {
        Compare::Created(keys::directory(&self.address), joined)
    }

    pub(super) fn claim_answered(&mut self, now: Time, step: Claim, answer: Answer) {
        match (&step.phase, answer) {
            (Phase::Acquire | Phase::Reacquire, Answer::Txn(TxnOutcome::Done(revision))) => {
                self.gained(now, step.shard, Fence(revision.0));
                if let Some(queue) = step.wanted {
                    self.load(queue);
                }
            }
            (Phase::Acquire, Answer::Txn(TxnOutcome::Refused)) => {
                let request = Request::Get(step.shard.key());
                self.request(Step::Claim(Claim { phase: Phase::ReadOwner, ..step }), request);
            }
            (Phase::ReadOwner, Answer::Got(Some(entry))) => {
                let owner = String::from_utf8_lossy(&entry.value).into_owned();
                if owner != self.address {
                    if let Some(queue) = step.wanted {
                        self.notify(DirectoryInput::Disowned { queue, owner: Some(owner) });
                    }
                    return;
                }
                let Some(joined) = self.joined else { return self.claim_later(now, step) };
                // Of an earlier life or lease at this address, as long as that is ours: then those have ended.
                let created = Compare::Created(entry.key.clone(), entry.created);
                let compares = vec![self.still_joined(joined), created];
                let changes = vec![Op::Delete { key: entry.key }];
                let request = Request::Txn(Txn { compares, changes });
                self.request(Step::Claim(Claim { phase: Phase::DeleteStale, ..step }), request);
            }
            (Phase::DeleteStale, Answer::Txn(_)) => {
                self.take_vacant(now, Claim { phase: Phase::Reacquire, ..step });
            }
            // It has just gone, or our address is not ours any more.
            (_, Answer::Got(None) | Answer::Txn(_)) => self.claim_later(now, step),
            (_, answer) => {
                let shard = step.shard.key();
                self.warn(format!("{shard} cannot be claimed yet: {}", cause(answer)));
                self.claim_later(now, step);
            }
        }
    }

    /// Nobody can say yet: it is tried again.
    fn claim_later(&mut self, now: Time, step: Claim) {
        let deferred = step.wanted.map_or(Deferred::Vacant(step.shard), Deferred::Claim);
        self.defer(now, deferred, RETRY_MS);
    }

    fn gained(&mut self, now: Time, shard: Shard, fence: Fence) {
        self.effects.push_back(Effect::Info(format!(
            "{} is claimed, fence {}",
            shard.key(),
            fence.0
        )));
        self.ours.insert(shard, fence);
        // What the watch has still to report of earlier owners is older than this.
        self.view.owned(shard, fence);
        self.deferred.remove(&Deferred::Vacant(shard));
        // One after the other, and whatever else there is to do between them.
        for queue in self.view.queues(shard) {
            self.defer(now, Deferred::Load(queue), 0);
        }
    }

    pub(super) fn lost(&mut self, now: Time, shard: Shard) {
        let Some(fence) = self.ours.remove(&shard) else { return };
        self.view.disowned(shard, fence);
        let owner = self.view.owner(shard).map(|(owner, _)| owner.to_owned());
        let owner = owner.filter(|owner| *owner != self.address);
        let to = owner.as_ref().map_or_else(String::new, |owner| format!(" to {owner}"));
        self.warn(format!("{}, fence {}, is lost{to}", shard.key(), fence.0));
        self.loaded.retain(|_, of| *of != shard);
        self.effects.push_back(Effect::ShardLost { shard, owner });
        self.claim_if_vacant(now, shard);
    }

    pub(super) fn lose_all(&mut self, now: Time) {
        let ours: Vec<_> = self.ours.keys().copied().collect();
        for shard in ours {
            self.lost(now, shard);
        }
    }

    /// Claims can be made now that could not be until now.
    pub(super) fn claim_all(&mut self, now: Time) {
        for (deferred, at) in &mut self.deferred {
            if matches!(deferred, Deferred::Claim(_)) {
                *at = now;
            }
        }
        for shard in self.view.shards_with_queues() {
            self.claim_if_vacant(now, shard);
        }
    }

    /// Plans to claim a shard that has queues and no owner (or our own earlier instance).
    pub(super) fn claim_if_vacant(&mut self, now: Time, shard: Shard) {
        let owner = self.view.owner(shard);
        let vacant = owner.is_none_or(|(owner, _)| owner == self.address);
        if vacant && self.view.has_queues(shard) && !self.ours.contains_key(&shard) {
            let rank = self.view.rank(shard);
            self.defer(now, Deferred::Vacant(shard), RANK_MS * u64::from(rank));
        }
    }
}
