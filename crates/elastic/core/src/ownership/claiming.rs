//! Shards: claimed for who asks, or because nobody owns them; gained and lost.

use quelea_elastic_proto::{Fence, Time};

use super::io::{Answer, Effect, Request};
use super::keys::Shard;
use super::meta::{Compare, Op, Revision, Txn, TxnOutcome};
use super::{Later, Ownership, RANK_MS, RETRY_MS, cause, keys};
use crate::directory::Input as DirectoryInput;

/// A claim under way.
#[derive(Debug)]
pub(super) struct Step {
    shard: Shard,
    /// The queue for which somebody asks; none: the shard is vacant.
    wanted: Option<String>,
    asked: Asked,
}

#[derive(Debug)]
enum Asked {
    /// The shard is taken if it is vacant.
    Take,
    /// Somebody has it: who?
    Whose,
    /// An earlier life or lease at this address has: that is deleted.
    DropOurs,
    /// Then it is taken, if nobody else was faster.
    TakeAgain,
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
        self.take_vacant(now, Step { shard, wanted, asked: Asked::Take });
    }

    fn take_vacant(&mut self, now: Time, step: Step) {
        let (Some(lease), Some(enlisted), true) = (self.lease.held(), self.enlisted, self.current)
        else {
            return self.not_yet(now, step);
        };
        let (key, value) = (step.shard.key(), self.address.clone().into());
        let compares = vec![self.is_enlisted(enlisted), Compare::Created(key.clone(), Revision(0))];
        let changes = vec![Op::Put { key, value, lease: Some(lease) }];
        self.ask(super::Step::Claim(step), Request::Txn(Txn { compares, changes }));
    }

    fn is_enlisted(&self, enlisted: Revision) -> Compare {
        Compare::Created(keys::directory(&self.address), enlisted)
    }

    pub(super) fn claiming(&mut self, now: Time, step: Step, answer: Answer) {
        match (&step.asked, answer) {
            (Asked::Take | Asked::TakeAgain, Answer::Txn(TxnOutcome::Done(revision))) => {
                self.gained(now, step.shard, Fence(revision.0));
                if let Some(queue) = step.wanted {
                    self.load(queue);
                }
            }
            (Asked::Take, Answer::Txn(TxnOutcome::Refused)) => {
                let request = Request::Get(step.shard.key());
                self.ask(super::Step::Claim(Step { asked: Asked::Whose, ..step }), request);
            }
            (Asked::Whose, Answer::Got(Some(entry))) => {
                let owner = String::from_utf8_lossy(&entry.value).into_owned();
                if owner != self.address {
                    if let Some(queue) = step.wanted {
                        self.tell(DirectoryInput::Disowned { queue, owner: Some(owner) });
                    }
                    return;
                }
                let Some(enlisted) = self.enlisted else { return self.not_yet(now, step) };
                // Of an earlier life or lease at this address, as long as that is ours: then those have ended.
                let created = Compare::Created(entry.key.clone(), entry.created);
                let compares = vec![self.is_enlisted(enlisted), created];
                let changes = vec![Op::Delete { key: entry.key }];
                let request = Request::Txn(Txn { compares, changes });
                self.ask(super::Step::Claim(Step { asked: Asked::DropOurs, ..step }), request);
            }
            (Asked::DropOurs, Answer::Txn(_)) => {
                self.take_vacant(now, Step { asked: Asked::TakeAgain, ..step });
            }
            // It has just gone, or our address is not ours any more.
            (_, Answer::Got(None) | Answer::Txn(_)) => self.not_yet(now, step),
            (_, answer) => {
                let shard = step.shard.key();
                self.warn(format!("{shard} cannot be claimed yet: {}", cause(answer)));
                self.not_yet(now, step);
            }
        }
    }

    /// Nobody can say yet: it is tried again.
    fn not_yet(&mut self, now: Time, step: Step) {
        let later = step.wanted.map_or(Later::Vacant(step.shard), Later::Claim);
        self.at(now, later, RETRY_MS);
    }

    fn gained(&mut self, now: Time, shard: Shard, fence: Fence) {
        self.effects.push_back(Effect::Inform(format!(
            "{} is claimed, fence {}",
            shard.key(),
            fence.0
        )));
        self.ours.insert(shard, fence);
        // What the watch has still to tell of earlier owners is older than this.
        self.picture.owned(shard, fence);
        self.later.remove(&Later::Vacant(shard));
        // One after the other, and whatever else there is to do between them.
        for queue in self.picture.queues(shard) {
            self.at(now, Later::Load(queue), 0);
        }
    }

    pub(super) fn lost(&mut self, now: Time, shard: Shard) {
        let Some(fence) = self.ours.remove(&shard) else { return };
        self.picture.disowned(shard, fence);
        let owner = self.picture.owner(shard).map(|(owner, _)| owner.to_owned());
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
        for (later, at) in &mut self.later {
            if matches!(later, Later::Claim(_)) {
                *at = now;
            }
        }
        for shard in self.picture.shards_with_queues() {
            self.claim_if_vacant(now, shard);
        }
    }

    /// Plans to claim a shard that has queues and no owner (or our own earlier life).
    pub(super) fn claim_if_vacant(&mut self, now: Time, shard: Shard) {
        let owner = self.picture.owner(shard);
        let vacant = owner.is_none_or(|(owner, _)| owner == self.address);
        if vacant && self.picture.has_queues(shard) && !self.ours.contains_key(&shard) {
            let rank = self.picture.rank(shard);
            self.at(now, Later::Vacant(shard), RANK_MS * u64::from(rank));
        }
    }
}
