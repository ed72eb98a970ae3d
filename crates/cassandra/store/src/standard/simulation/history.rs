//! What clients saw, and what of it a standard queue cannot do.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use quelea_sqs_protocol::{Consistency, Fault};
use tokio::time::Instant;

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

#[derive(Debug, Default)]
pub(super) struct History {
    /// Messages by their ids, and when they were confirmed.
    confirmed: BTreeMap<String, Instant>,
    receptions: BTreeMap<String, Vec<Reception>>,
    /// Their deletion was asked for.
    deleting: BTreeSet<String>,
    /// And confirmed.
    deleted: BTreeMap<String, Instant>,
    pub(super) refused: u64,
    /// What was said in place of an answer by a task that ended before it had one.
    panics: u64,
}

impl History {
    pub(super) fn confirmed(&mut self, message: String) {
        self.confirmed.insert(message, Instant::now());
    }

    pub(super) fn received(&mut self, message: String, reception: Reception) {
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

    pub(super) fn deleted(&mut self, message: &str) {
        self.deleted.entry(message.to_owned()).or_insert_with(Instant::now);
    }

    /// Confirmed messages that nobody has received.
    pub(super) fn missing(&self) -> Vec<&String> {
        self.confirmed.keys().filter(|message| !self.receptions.contains_key(*message)).collect()
    }

    /// Those that have to come still: nobody has asked for their deletion.
    pub(super) fn left(&self) -> Vec<String> {
        let is_left = |message: &&String| !self.deleting.contains(*message);
        self.confirmed.keys().filter(is_left).cloned().collect()
    }

    pub(super) fn counts(&self) -> (u64, u64, u64, u64) {
        let received = self.receptions.values().map(Vec::len).sum::<usize>();
        let dead = self.receptions.values().filter(|all| all.iter().any(|one| one.is_dead_letter));
        let counts = [self.confirmed.len(), received, self.deleted.len(), dead.count()];
        let [confirmed, received, deleted, dead] = counts.map(|count| count as u64);
        (confirmed, received, deleted, dead)
    }

    /// Receptions of messages that somebody else had at that time.
    pub(super) fn duplicates(&self) -> u64 {
        let overlaps = |all: &Vec<Reception>| {
            all.windows(2).filter(|pair| pair[1].at < pair[0].until).count() as u64
        };
        self.receptions.values().map(overlaps).sum()
    }

    /// What is wrong, in words, when all was received and deleted.
    pub(super) fn faults(&self, consistency: Consistency) -> Vec<String> {
        let mut faults = Vec::new();
        if self.panics > 0 {
            faults.push(format!("{} calls were given up by whoever carried them out", self.panics));
        }
        for message in self.missing() {
            faults.push(format!("{message} was confirmed and never received"));
        }
        if consistency == Consistency::One {
            // The replica that is asked may not have heard of a deletion.
            return faults;
        }
        for (message, deleted_at) in &self.deleted {
            let receptions = self.receptions.get(message).map(Vec::as_slice).unwrap_or_default();
            // What is on its way to the dead-letter queue when it is deleted may come there, and one that was moved there
            // twice comes twice. In the end that queue has to be empty, too.
            let late = receptions.iter().filter(|one| !one.is_dead_letter);
            for one in late.filter(|one| one.began > *deleted_at) {
                let after = one.began.saturating_duration_since(*deleted_at);
                faults.push(format!("{message} came to a call from {after:?} after its deletion"));
            }
        }
        faults
    }
}

#[test]
fn what_a_standard_queue_cannot_do_is_found() {
    let (now, second) = (Instant::now(), Duration::from_secs(1));
    let reception = |began: Instant| Reception {
        began,
        at: began + second / 10,
        until: began + 5 * second,
        is_dead_letter: false,
    };
    let mut history = History::default();
    history.confirmed("a".to_owned());
    assert_eq!(history.faults(Consistency::LocalQuorum).len(), 1, "it is lost");
    history.received("a".to_owned(), reception(now));
    assert!(history.faults(Consistency::LocalQuorum).is_empty());
    history.received("a".to_owned(), reception(now + 2 * second));
    assert_eq!(
        (history.duplicates(), history.faults(Consistency::LocalQuorum).len()),
        (1, 0),
        "it may come twice"
    );
    history.deleted.insert("a".to_owned(), now + 3 * second);
    assert!(history.faults(Consistency::LocalQuorum).is_empty());
    history.received("a".to_owned(), reception(now + 4 * second));
    assert_eq!(history.faults(Consistency::LocalQuorum).len(), 1, "it was deleted");
}
