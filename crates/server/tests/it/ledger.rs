//! What a client may count on, kept by the clients of the kill test: which messages were confirmed,
//! which acknowledgements were sent, and which of them are known to be on the disk.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard};

use bytes::Bytes;

/// A message's number; it is the beginning of its body. Rising in the order of publication on a
/// queue.
pub(crate) type Id = u64;

#[derive(Default)]
pub(crate) struct Ledger {
    queues: Mutex<BTreeMap<&'static str, Account>>,
}

#[derive(Default)]
struct Account {
    published: BTreeSet<Id>,
    confirmed: BTreeSet<Id>,
    ack_sent: BTreeSet<Id>,
    ack_durable: BTreeSet<Id>,
}

impl Ledger {
    fn account<R>(&self, queue: &'static str, f: impl FnOnce(&mut Account) -> R) -> R {
        f(self.lock().entry(queue).or_default())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, Account>> {
        self.queues.lock().unwrap()
    }

    pub(crate) fn published(&self, queues: &[&'static str], id: Id) {
        for queue in queues {
            assert!(self.account(queue, |account| account.published.insert(id)));
        }
    }

    pub(crate) fn confirmed(&self, queues: &[&'static str], ids: impl Iterator<Item = Id> + Clone) {
        for queue in queues {
            self.account(queue, |account| account.confirmed.extend(ids.clone()));
        }
    }

    /// A message came: it was published, and its acknowledgement is not known to be on the disk.
    pub(crate) fn delivered(&self, queue: &'static str, id: Id) {
        self.account(queue, |account| {
            assert!(
                account.published.contains(&id),
                "{queue} delivers {id}, which nobody published"
            );
            assert!(
                !account.ack_durable.contains(&id),
                "{queue} delivers {id}, whose acknowledgement was on the disk"
            );
        });
    }

    pub(crate) fn ack_sent(&self, queue: &'static str, id: Id) {
        self.account(queue, |account| account.ack_sent.insert(id));
    }

    pub(crate) fn acks_durable(&self, queue: &'static str, ids: impl Iterator<Item = Id>) {
        self.account(queue, |account| account.ack_durable.extend(ids));
    }

    /// `left` is all that a queue still held at the end, in its order.
    pub(crate) fn settle(&self, queue: &'static str, left: &[Id]) {
        left.iter().for_each(|id| self.delivered(queue, *id));
        assert!(left.is_sorted_by(|a, b| a < b), "{queue} lost its order: {left:?}");
        let held: BTreeSet<Id> = left.iter().copied().collect();
        self.account(queue, |account| {
            let lost: Vec<_> = account
                .confirmed
                .iter()
                .filter(|id| !held.contains(id) && !account.ack_sent.contains(id))
                .collect();
            assert!(lost.is_empty(), "{queue} lost {} confirmed messages: {lost:?}", lost.len());
            println!(
                "{queue}: {} published, {} confirmed, {} acknowledged ({} surely), {} left",
                account.published.len(),
                account.confirmed.len(),
                account.ack_sent.len(),
                account.ack_durable.len(),
                held.len()
            );
        });
    }

    pub(crate) fn confirmed_count(&self) -> usize {
        self.lock().values().map(|account| account.confirmed.len()).sum()
    }
}

/// Returns a body that begins with the message's number.
pub(crate) fn body(id: Id, len: usize) -> Bytes {
    let mut body = vec![id as u8; len.max(8)];
    body[..8].copy_from_slice(&id.to_be_bytes());
    Bytes::from(body)
}

/// Returns the number, after a check of all the rest.
pub(crate) fn id(body: &[u8]) -> Id {
    let id = Id::from_be_bytes(body[..8].try_into().unwrap());
    assert!(body[8..].iter().all(|byte| *byte == id as u8), "the body of {id} is damaged");
    id
}
