//! This directory takes its address: others see that it lives, and it can claim shards.

use quelea_elastic_proto::Time;

use super::io::{Answer, Request};
use super::meta::{Compare, Op, Revision, Txn, TxnOutcome};
use super::{Deferred, Ownership, RETRY_MS, Step, cause, keys};

#[derive(Debug)]
pub(super) enum Join {
    /// The address is taken if it is free.
    Acquire,
    /// Somebody has it: who?
    ReadOwner,
    /// This life has, with an earlier lease: it is put again.
    Renew { created: Revision },
}

impl Ownership {
    pub(super) fn join(&mut self) {
        self.put_member(Join::Acquire, Revision(0));
    }

    fn put_member(&mut self, step: Join, created: Revision) {
        let Some(lease) = self.lease.held() else { return };
        let (key, value) = (keys::directory(&self.address), self.instance.clone());
        let compares = vec![Compare::Created(key.clone(), created)];
        let changes = vec![Op::Put { key, value, lease: Some(lease) }];
        self.request(Step::Join(step), Request::Txn(Txn { compares, changes }));
    }

    pub(super) fn join_answered(&mut self, now: Time, step: Join, answer: Answer) {
        match (step, answer) {
            (Join::Acquire, Answer::Txn(TxnOutcome::Done(revision))) => self.joined(now, revision),
            (Join::Acquire, Answer::Txn(TxnOutcome::Refused)) => {
                let key = keys::directory(&self.address);
                self.request(Step::Join(Join::ReadOwner), Request::Get(key));
            }
            (Join::ReadOwner, Answer::Got(Some(entry))) if entry.value == self.instance => {
                self.put_member(Join::Renew { created: entry.created }, entry.created);
            }
            (Join::Renew { created }, Answer::Txn(TxnOutcome::Done(_))) => {
                self.joined(now, created);
            }
            (_, Answer::Got(_) | Answer::Txn(_)) => self.address_taken(now),
            (_, answer) => {
                self.warn(format!("this directory cannot be announced yet: {}", cause(answer)));
                self.defer(now, Deferred::Join, RETRY_MS);
            }
        }
    }

    fn joined(&mut self, now: Time, revision: Revision) {
        self.joined = Some(revision);
        self.conflict_reported = false;
        self.claim_all(now);
    }

    fn address_taken(&mut self, now: Time) {
        if !std::mem::replace(&mut self.conflict_reported, true) {
            self.warn(format!(
                "another directory, or this one's last life, has the address {}: this one waits until the \
                 other's lease has ended; elastic.advertise has to be another one for each directory",
                self.address
            ));
        }
        self.defer(now, Deferred::Join, RETRY_MS);
    }
}
