//! This directory takes its address: others see that it lives, and it can claim shards.

use quelea_elastic_proto::Time;

use super::io::{Answer, Request};
use super::meta::{Compare, Op, Revision, Txn, TxnOutcome};
use super::{Later, Ownership, RETRY_MS, cause, keys};

#[derive(Debug)]
pub(super) enum Step {
    /// The address is taken if it is free.
    Take,
    /// Somebody has it: who?
    Whose,
    /// This life has, with an earlier lease: it is put again.
    Again { created: Revision },
}

impl Ownership {
    pub(super) fn enlist(&mut self) {
        self.put_life(Step::Take, Revision(0));
    }

    fn put_life(&mut self, step: Step, created: Revision) {
        let Some(lease) = self.lease.held() else { return };
        let (key, value) = (keys::directory(&self.address), self.life.clone());
        let compares = vec![Compare::Created(key.clone(), created)];
        let changes = vec![Op::Put { key, value, lease: Some(lease) }];
        self.ask(super::Step::Enlist(step), Request::Txn(Txn { compares, changes }));
    }

    pub(super) fn enlisting(&mut self, now: Time, step: Step, answer: Answer) {
        match (step, answer) {
            (Step::Take, Answer::Txn(TxnOutcome::Done(revision))) => self.enlisted(now, revision),
            (Step::Take, Answer::Txn(TxnOutcome::Refused)) => {
                let key = keys::directory(&self.address);
                self.ask(super::Step::Enlist(Step::Whose), Request::Get(key));
            }
            (Step::Whose, Answer::Got(Some(entry))) if entry.value == self.life => {
                self.put_life(Step::Again { created: entry.created }, entry.created);
            }
            (Step::Again { created }, Answer::Txn(TxnOutcome::Done(_))) => {
                self.enlisted(now, created);
            }
            (_, Answer::Got(_) | Answer::Txn(_)) => self.address_taken(now),
            (_, answer) => {
                self.warn(format!("this directory cannot be announced yet: {}", cause(answer)));
                self.at(now, Later::Enlist, RETRY_MS);
            }
        }
    }

    fn enlisted(&mut self, now: Time, revision: Revision) {
        self.enlisted = Some(revision);
        self.taken_told = false;
        self.claim_all(now);
    }

    fn address_taken(&mut self, now: Time) {
        if !std::mem::replace(&mut self.taken_told, true) {
            self.warn(format!(
                "another directory, or this one's last life, has the address {}: this one waits until the \
                 other's lease has ended; elastic.advertise has to be another one for each directory",
                self.address
            ));
        }
        self.at(now, Later::Enlist, RETRY_MS);
    }
}
