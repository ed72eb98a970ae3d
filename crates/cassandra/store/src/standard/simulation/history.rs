//! What clients saw, and what of it a standard queue cannot do.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use quelea_sqs_protocol::{Consistency, Fault};
use tokio::time::Instant;

use super::queue_rows::AGE;
use crate::standard::send::stopped;

/// A message that somebody received.
#[derive(Clone, Debug)]
pub(super) struct Reception {
    pub(super) began: Instant,
    pub(super) at: Instant,
    /// Until when nobody else should have it.
    pub(super) until: Instant,
    pub(super) is_dead_letter: bool,
}

/// A message whose sending was confirmed.
#[derive(Clone, Debug)]
struct Confirmed {
    body: Bytes,
    /// When its call began, and ended.
    began: Instant,
    at: Instant,
}

/// So long after a purge a call may begin at a front-end that has not heard of it: for as long as that trusts what it has heard last, which
/// was on its way for half a second.
const UNHEARD: Duration = AGE.saturating_add(Duration::from_millis(500));

#[derive(Debug, Default)]
pub(super) struct History {
    /// By their ids.
    confirmed: BTreeMap<String, Confirmed>,
    /// By their bodies, the ids with which they came: a move task makes new ones.
    ids: BTreeMap<Bytes, BTreeSet<String>>,
    /// When a purge was made.
    purges: Vec<Instant>,
    receptions: BTreeMap<String, Vec<Reception>>,
    /// Their deletion was asked for.
    deleting: BTreeSet<String>,
    /// And confirmed, where they had been sent.
    deleted: BTreeMap<String, Instant>,
    /// And confirmed, in the dead-letter queue.
    dead_and_deleted: BTreeMap<String, Instant>,
    pub(super) refused: u64,
    /// What was said in place of an answer by a task that ended before it had one.
    panics: u64,
}

impl History {
    /// A message is there, whose call began then.
    pub(super) fn confirmed(&mut self, message: String, body: Bytes, began: Instant) {
        self.confirmed.insert(message, Confirmed { body, began, at: Instant::now() });
    }

    /// The queue is purged now.
    pub(super) fn purged(&mut self) {
        self.purges.push(Instant::now());
    }

    pub(super) fn received(&mut self, message: String, body: &Bytes, reception: Reception) {
        self.ids.entry(body.clone()).or_default().insert(message.clone());
        self.receptions.entry(message).or_default().push(reception);
    }

    /// A call failed.
    pub(super) fn refused(&mut self, fault: Option<&Fault>) {
        self.refused += 1;
        // Nobody stops in order here.
        self.panics += u64::from(fault == Some(&stopped()));
    }

    /// A reception of it ends now: others may have it.
    pub(super) fn released(&mut self, message: &str) {
        if let Some(last) = self.receptions.get_mut(message).and_then(|all| all.last_mut()) {
            last.until = last.until.min(Instant::now());
        }
    }

    pub(super) fn deleting(&mut self, message: String) {
        self.deleting.insert(message);
    }

    /// Returns of how many messages the deletion was asked for.
    pub(super) fn deletions(&self) -> usize {
        self.deleting.len()
    }

    pub(super) fn deleted(&mut self, message: &str, is_dead_letter: bool) {
        let deleted = if is_dead_letter { &mut self.dead_and_deleted } else { &mut self.deleted };
        deleted.entry(message.to_owned()).or_insert_with(Instant::now);
    }

    /// Returns the confirmed messages that have to come.
    fn due(&self) -> impl Iterator<Item = (&String, &Confirmed)> {
        self.confirmed.iter().filter(|(_, one)| !self.may_be_purged(one))
    }

    /// Returns whether a message may be among those that a purge takes: who has sent it may not
    /// have known of the purge yet.
    fn may_be_purged(&self, message: &Confirmed) -> bool {
        self.purges.iter().any(|made_at| message.began < *made_at + UNHEARD)
    }

    /// Returns whether a purge may not have been known to whoever gave that reception: then a
    /// deletion through another, which knew of it, had nothing to delete.
    fn may_be_unheard(&self, message: &str, reception: &Reception) -> bool {
        let message = self.confirmed.get(message);
        self.purges.iter().any(|made_at| {
            let unheard_until = *made_at + UNHEARD;
            message.is_none_or(|message| message.began < unheard_until)
                && reception.began <= unheard_until
                && reception.at >= *made_at
        })
    }

    /// Returns what that message was called when it came: by its own id, and by those that move
    /// tasks have given it.
    fn names<'a>(&'a self, id: &'a String, body: &Bytes) -> impl Iterator<Item = &'a String> {
        std::iter::once(id).chain(self.ids.get(body).into_iter().flatten())
    }

    /// Returns the confirmed messages that nobody has received.
    fn missing(&self) -> Vec<&String> {
        let is_missing = |(id, one): &(&String, &Confirmed)| {
            self.names(id, &one.body).all(|name| !self.receptions.contains_key(name))
        };
        self.due().filter(is_missing).map(|(id, _)| id).collect()
    }

    /// Returns the messages that have to come still: nobody has asked for their deletion.
    pub(super) fn left(&self) -> Vec<String> {
        let is_left = |(id, one): &(&String, &Confirmed)| {
            self.names(id, &one.body).all(|name| !self.deleting.contains(name))
        };
        self.due().filter(is_left).map(|(id, _)| id.clone()).collect()
    }

    pub(super) fn purges(&self) -> u64 {
        self.purges.len() as u64
    }

    /// Returns how many messages came with another id than that with which they were sent.
    pub(super) fn copies(&self) -> u64 {
        let others = |(id, one): (&String, &Confirmed)| {
            self.ids.get(&one.body).is_some_and(|ids| ids.iter().any(|name| name != id))
        };
        self.confirmed.iter().filter(|one| others(*one)).count() as u64
    }

    /// Returns the messages that came to calls from after a purge that was done when they had been
    /// there before. What was on its way to the dead-letter queue may come from there.
    fn purged_and_received(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (id, message) in &self.confirmed {
            for made_at in self.purges.iter().filter(|made_at| message.at < **made_at) {
                let receptions = self.receptions.get(id).map(Vec::as_slice).unwrap_or_default();
                let is_late =
                    |one: &&Reception| !one.is_dead_letter && one.began > *made_at + UNHEARD;
                if let Some(late) = receptions.iter().find(is_late) {
                    let after = late.began.saturating_duration_since(*made_at);
                    found.push(format!("{id} came to a call from {after:?} after its purge"));
                }
            }
        }
        found
    }

    pub(super) fn counts(&self) -> (u64, u64, u64, u64) {
        let received = self.receptions.values().map(Vec::len).sum::<usize>();
        let dead = self.receptions.values().filter(|all| all.iter().any(|one| one.is_dead_letter));
        let deleted = self.deleted.len() + self.dead_and_deleted.len();
        let counts = [self.confirmed.len(), received, deleted, dead.count()];
        let [confirmed, received, deleted, dead] = counts.map(|count| count as u64);
        (confirmed, received, deleted, dead)
    }

    /// Counts the receptions of messages that somebody else had at that time.
    pub(super) fn duplicates(&self) -> u64 {
        let overlaps = |all: &Vec<Reception>| {
            all.windows(2).filter(|pair| pair[1].at < pair[0].until).count() as u64
        };
        self.receptions.values().map(overlaps).sum()
    }

    /// Returns what is wrong, in words, when all was received and deleted. Where calls fail
    /// (`is_sure` is not true) a move whose outcome is not known leaves a message in both queues.
    pub(super) fn faults(&self, consistency: Consistency, is_sure: bool) -> Vec<String> {
        let mut faults = Vec::new();
        if self.panics > 0 {
            faults.push(format!("{} calls were given up by whoever carried them out", self.panics));
        }
        for message in self.missing() {
            faults.push(format!("{message} was confirmed and never received"));
        }
        faults.extend(self.purged_and_received());
        if consistency == Consistency::One {
            // The replica that is asked may not have heard of a deletion.
            return faults;
        }
        let there = self.dead_and_deleted.iter().filter(|_| is_sure);
        for (message, deleted_at) in self.deleted.iter().chain(there) {
            let receptions = self.receptions.get(message).map(Vec::as_slice).unwrap_or_default();
            // What is on its way to the dead-letter queue when it is deleted may come there, and one that was moved there
            // twice comes twice. In the end both queues have to be empty.
            let late = receptions.iter().filter(|one| !one.is_dead_letter);
            let late = late.filter(|one| !self.may_be_unheard(message, one));
            for one in late.filter(|one| one.began > *deleted_at) {
                let after = one.began.saturating_duration_since(*deleted_at);
                faults.push(format!("{message} came to a call from {after:?} after its deletion"));
            }
        }
        faults
    }
}

fn reception(began: Instant) -> Reception {
    let second = Duration::from_secs(1);
    Reception { began, at: began + second / 10, until: began + 5 * second, is_dead_letter: false }
}

#[test]
fn what_a_standard_queue_cannot_do_is_found() {
    let (now, second) = (Instant::now(), Duration::from_secs(1));
    let mut history = History::default();
    history.confirmed("a".to_owned(), "body".into(), now);
    assert_eq!(history.faults(Consistency::LocalQuorum, true).len(), 1, "it is lost");
    history.received("a".to_owned(), &"body".into(), reception(now));
    assert!(history.faults(Consistency::LocalQuorum, true).is_empty());
    history.received("a".to_owned(), &"body".into(), reception(now + 2 * second));
    assert_eq!(
        (history.duplicates(), history.faults(Consistency::LocalQuorum, true).len()),
        (1, 0),
        "it may come twice"
    );
    history.deleted.insert("a".to_owned(), now + 3 * second);
    assert!(history.faults(Consistency::LocalQuorum, true).is_empty());
    history.received("a".to_owned(), &"body".into(), reception(now + 4 * second));
    assert_eq!(history.faults(Consistency::LocalQuorum, true).len(), 1, "it was deleted");
}

#[test]
fn what_comes_after_a_purge_is_found() {
    let (now, second) = (Instant::now(), Duration::from_secs(1));
    let mut history = History::default();
    history.confirmed("a".to_owned(), "body".into(), now);
    history.purged();
    let made_at = history.purges[0];
    assert!(history.faults(Consistency::LocalQuorum, true).is_empty(), "it need not come");
    history.received("a".to_owned(), &"body".into(), reception(made_at + second));
    assert!(
        history.faults(Consistency::LocalQuorum, true).is_empty(),
        "who gave it had not heard of it"
    );
    history.received("a".to_owned(), &"body".into(), reception(made_at + 3 * second));
    assert_eq!(history.faults(Consistency::LocalQuorum, true).len(), 1);
    history.confirmed("b".to_owned(), "other".into(), made_at + 3 * second);
    assert_eq!(history.missing().len(), 1, "what is sent afterwards has to come");
    // A deletion at one that knows of the purge has nothing to delete.
    history.receptions.clear();
    history.deleted.insert("a".to_owned(), made_at);
    history.received("a".to_owned(), &"body".into(), reception(made_at + second));
    assert!(
        history
            .faults(Consistency::LocalQuorum, true)
            .iter()
            .all(|fault| !fault.contains("deletion"))
    );
}

#[test]
fn a_message_that_was_moved_back_is_the_same_one() {
    let now = Instant::now();
    let mut history = History::default();
    history.confirmed("a".to_owned(), "body".into(), now);
    history.received("a".to_owned(), &"body".into(), reception(now));
    history.received("b".to_owned(), &"body".into(), reception(now));
    assert_eq!((history.left().len(), history.copies()), (1, 1));
    history.deleting("b".to_owned());
    assert!(history.left().is_empty());
}
