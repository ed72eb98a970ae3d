//! A queue of the experiment, with what its senders and receivers know of it together.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;

use crate::clock::now_ns;
use crate::sqs::order::{Disorder, provably_out_of_order};
use crate::sqs::payload::{self, Tag};

/// A queue.
#[derive(Debug)]
pub(crate) struct TrackedQueue {
    pub url: String,
    next_of_queue: AtomicU32,
    senders_left: AtomicU32,
    /// When something was last sent or received.
    moved_ns: AtomicU64,
    /// Answers without a message to calls that began when nothing had moved for long, since something last moved.
    empty_answers: AtomicU32,
    is_done: AtomicBool,
    ledger: Mutex<Ledger>,
}

#[derive(Debug, Default)]
struct Ledger {
    /// What the service said it has, by its MessageId. What it did not may have come all the same.
    confirmed: HashMap<Tag, Box<str>>,
    /// The messages in the order in which the answers that brought them were there.
    firsts: Vec<Reception>,
    /// Each message that came, with what became of it.
    known: HashMap<Tag, Fate>,
    /// Confirmed messages that are not deleted.
    undeleted: HashSet<Tag>,
    corrupted: u64,
}

/// What became of a message after its first delivery.
#[derive(Debug, Clone, Copy, Default)]
struct Fate {
    is_deleted: bool,
    /// Further deliveries.
    duplicates: u64,
}

/// A message's first delivery.
#[derive(Debug, Clone, Copy)]
struct Reception {
    tag: Tag,
    receiver: u32,
    begun_ns: u64,
    ended_ns: u64,
}

/// A confirmed message that never came whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct LostMessage {
    pub queue_url: String,
    pub message_id: Box<str>,
    /// The sending thread, counted within the queue, and the message, counted within the sender's.
    pub sender: u32,
    pub of_sender: u32,
}

/// What a queue's messages came to.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Outcome {
    /// Messages that the service said it has.
    pub sent: u64,
    /// Of them, those that never came whole.
    pub lost: u64,
    /// Messages whose sending was given up: they may be there or not.
    pub unconfirmed: u64,
    /// Of them, those that came.
    pub unconfirmed_received: u64,
    /// Their deliveries beyond each message's first.
    pub duplicates: u64,
    /// Deliveries whose checksum was wrong.
    pub corrupted: u64,
    /// The paper's: for each pair of a sending and a receiving thread, what the one received of the
    /// other, against the order in which it was sent. Both ends of a pair do one thing after the
    /// other, so this order is certain.
    pub of_pairs: Disorder,
    /// The whole queue: the order in which answers arrived against the one in which sending began.
    /// Calls that overlap make it look worse than it is.
    pub in_queue: Disorder,
    /// Of each sender's messages, over all receivers: those whose place no order of overlapping
    /// receive calls explains.
    pub provably_out_of_order: u64,
}

impl TrackedQueue {
    pub(crate) fn new(url: String, senders: u32) -> Self {
        Self {
            url,
            next_of_queue: AtomicU32::new(0),
            senders_left: AtomicU32::new(senders),
            moved_ns: AtomicU64::new(now_ns()),
            empty_answers: AtomicU32::new(0),
            is_done: AtomicBool::new(false),
            ledger: Mutex::default(),
        }
    }

    /// Returns the tag of the message that `sender` sends next as its `of_sender`th.
    pub(crate) fn tag(&self, sender: u32, of_sender: u32) -> Tag {
        let of_queue = self.next_of_queue.fetch_add(1, Ordering::Relaxed);
        Tag { sender, of_sender, of_queue }
    }

    /// The service said that it has a message.
    pub(crate) fn note_sent(&self, tag: Tag, message_id: Box<str>, now: u64) {
        self.moved_ns.fetch_max(now, Ordering::Relaxed);
        let mut ledger = self.ledger();
        ledger.confirmed.insert(tag, message_id);
        // The answer to the sender may be later than the receiver.
        if ledger.known.get(&tag).is_none_or(|fate| !fate.is_deleted) {
            ledger.undeleted.insert(tag);
        }
    }

    pub(crate) fn note_sender_gone(&self) {
        self.senders_left.fetch_sub(1, Ordering::Release);
    }

    /// Notes a delivery. Returns its tag, if it is whole.
    pub(crate) fn note_received(
        &self,
        receiver: u32,
        text: &str,
        (begun_ns, ended_ns): (u64, u64),
    ) -> Option<Tag> {
        self.moved_ns.fetch_max(ended_ns, Ordering::Relaxed);
        self.empty_answers.store(0, Ordering::Relaxed);
        let tag = payload::check(text);
        let mut ledger = self.ledger();
        match tag {
            None => ledger.corrupted += 1,
            Some(tag) => match ledger.known.entry(tag) {
                Entry::Occupied(mut known) => known.get_mut().duplicates += 1,
                Entry::Vacant(unknown) => {
                    unknown.insert(Fate::default());
                    ledger.firsts.push(Reception { tag, receiver, begun_ns, ended_ns });
                }
            },
        }
        tag
    }

    /// The service said that a message is deleted.
    pub(crate) fn note_deleted(&self, tag: Option<Tag>) {
        let mut ledger = self.ledger();
        let Some(tag) = tag else { return };
        if let Some(fate) = ledger.known.get_mut(&tag) {
            fate.is_deleted = true;
            ledger.undeleted.remove(&tag);
        }
    }

    /// Returns whether every message that the service has said it has was received and deleted, and
    /// no more will be sent.
    pub(crate) fn is_settled(&self) -> bool {
        let no_more = self.senders_left.load(Ordering::Acquire) == 0;
        no_more && self.ledger().undeleted.is_empty()
    }

    /// Returns the nanoseconds since something was sent or received, once nothing more will be
    /// sent.
    pub(crate) fn quiet_ns(&self, now: u64) -> u64 {
        if self.senders_left.load(Ordering::Acquire) > 0 {
            return 0;
        }
        now.saturating_sub(self.moved_ns.load(Ordering::Relaxed))
    }

    pub(crate) fn note_empty_answer(&self) {
        self.empty_answers.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn empty_answers(&self) -> u32 {
        self.empty_answers.load(Ordering::Relaxed)
    }

    /// The receivers begin now; what came before does not count as quiet.
    pub(crate) fn begin_receiving(&self) {
        self.moved_ns.fetch_max(now_ns(), Ordering::Relaxed);
    }

    pub(crate) fn finish(&self) {
        self.is_done.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_done(&self) -> bool {
        self.is_done.load(Ordering::Relaxed)
    }

    pub(crate) fn outcome(&self) -> Outcome {
        let ledger = self.ledger();
        // A message may also have come although its sending seemed to fail: it makes up for none
        // that was confirmed and did not come, and its repetitions are none of the confirmed ones'.
        let lost = ledger.lost().count();
        let confirmed = ledger.confirmed.len();
        let unconfirmed = u64::from(self.next_of_queue.load(Ordering::Relaxed)) - confirmed as u64;
        let unconfirmed_received = ledger.known.len() - (confirmed - lost);
        let fates = ledger.known.iter().filter(|(tag, _)| ledger.confirmed.contains_key(tag));
        let duplicates = fates.map(|(_, fate)| fate.duplicates).sum();
        let mut firsts = ledger.firsts.clone();
        // The ledger's lock is taken after the answer is there, perhaps in another order.
        firsts.sort_by_key(|first| first.ended_ns);
        let of_queue: Vec<u32> = firsts.iter().map(|first| first.tag.of_queue).collect();
        Outcome {
            sent: confirmed as u64,
            lost: lost as u64,
            unconfirmed,
            unconfirmed_received: unconfirmed_received as u64,
            duplicates,
            corrupted: ledger.corrupted,
            of_pairs: disorder_of_pairs(&firsts),
            in_queue: Disorder::of(&of_queue),
            provably_out_of_order: provably_out_of_order_of_senders(&firsts),
        }
    }

    /// Returns the messages that were lost, in the order in which they were sent.
    pub(crate) fn lost_messages(&self) -> Vec<LostMessage> {
        let ledger = self.ledger();
        let mut lost: Vec<_> = ledger.lost().collect();
        lost.sort_by_key(|(tag, _)| tag.of_queue);
        let message = |(tag, id): (&Tag, &str)| LostMessage {
            queue_url: self.url.clone(),
            message_id: id.into(),
            sender: tag.sender,
            of_sender: tag.of_sender,
        };
        lost.into_iter().map(message).collect()
    }

    /// Returns the ledger's guard. Each change to the ledger is complete before the lock is given
    /// back.
    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ledger {
    /// Returns what was confirmed and never came whole.
    fn lost(&self) -> impl Iterator<Item = (&Tag, &str)> {
        let missing = self.confirmed.iter().filter(|(tag, _)| !self.known.contains_key(tag));
        missing.map(|(tag, id)| (tag, &**id))
    }
}

fn disorder_of_pairs(firsts: &[Reception]) -> Disorder {
    let mut pairs: HashMap<(u32, u32), Vec<u32>> = HashMap::new();
    for first in firsts {
        pairs.entry((first.tag.sender, first.receiver)).or_default().push(first.tag.of_sender);
    }
    let each = pairs.values().map(|places| Disorder::of(places));
    each.fold(Disorder::default(), Disorder::plus)
}

fn provably_out_of_order_of_senders(firsts: &[Reception]) -> u64 {
    let mut in_order = firsts.to_vec();
    in_order.sort_by_key(|first| (first.tag.sender, first.tag.of_sender));
    let senders = in_order.chunk_by(|one, next| one.tag.sender == next.tag.sender);
    let calls = |sent: &[Reception]| -> Vec<(u64, u64)> {
        sent.iter().map(|first| (first.begun_ns, first.ended_ns)).collect()
    };
    senders.map(|sent| provably_out_of_order(&calls(sent))).sum()
}

impl Outcome {
    pub(crate) const fn plus(self, other: Self) -> Self {
        Self {
            sent: self.sent + other.sent,
            lost: self.lost + other.lost,
            unconfirmed: self.unconfirmed + other.unconfirmed,
            unconfirmed_received: self.unconfirmed_received + other.unconfirmed_received,
            duplicates: self.duplicates + other.duplicates,
            corrupted: self.corrupted + other.corrupted,
            of_pairs: self.of_pairs.plus(other.of_pairs),
            in_queue: self.in_queue.plus(other.in_queue),
            provably_out_of_order: self.provably_out_of_order + other.provably_out_of_order,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;

    struct Sent {
        queue: TrackedQueue,
        texts: Vec<String>,
        now: u64,
    }

    /// Returns a queue to which two senders sent that took turns.
    fn sent(count: u32) -> Sent {
        let queue = TrackedQueue::new("q".to_owned(), 2);
        let mut rng = Rng::with_seed(1);
        let text = |number| {
            let tag = queue.tag(number % 2, number / 2);
            queue.note_sent(tag, format!("id-{number}").into(), 0);
            payload::make(tag, payload::SIZE_MIN, &mut rng)
        };
        let texts = (0..count).map(text).collect();
        queue.note_sender_gone();
        queue.note_sender_gone();
        Sent { queue, texts, now: 0 }
    }

    impl Sent {
        /// Receives a message by one receiver, one call after the other.
        fn receive(&mut self, number: usize) -> Option<Tag> {
            self.receive_by(0, number)
        }

        fn receive_by(&mut self, receiver: u32, number: usize) -> Option<Tag> {
            self.now += 10;
            self.queue.note_received(receiver, &self.texts[number], (self.now, self.now + 5))
        }
    }

    #[test]
    fn a_lane_is_settled_when_all_that_was_sent_is_deleted() {
        let mut sent = sent(3);
        for number in 0..3 {
            assert!(!sent.queue.is_settled());
            let tag = sent.receive(number);
            sent.queue.note_deleted(tag);
            sent.queue.note_deleted(tag);
        }
        assert!(sent.queue.is_settled());
        let Outcome { sent, lost, duplicates, .. } = sent.queue.outcome();
        assert_eq!((sent, lost, duplicates), (3, 0, 0));
    }

    #[test]
    fn a_message_that_was_given_up_and_never_came_is_no_loss() {
        let sent = sent(2);
        sent.queue.tag(1, 1);
        let found = sent.queue.outcome();
        assert_eq!((found.sent, found.lost), (2, 2));
        assert_eq!((found.unconfirmed, found.unconfirmed_received), (1, 0));
    }

    #[test]
    fn losses_and_duplicates_are_counted_and_stay_out_of_the_order() {
        let mut sent = sent(6);
        for number in [0, 1, 0, 2, 0, 4, 1] {
            sent.receive(number);
        }
        sent.texts[5].replace_range(40..41, "#");
        assert_eq!(sent.receive(5), None);
        let found = sent.queue.outcome();
        assert_eq!((found.lost, found.duplicates, found.corrupted), (2, 3, 1));
        assert_eq!((found.in_queue.messages, found.in_queue.out_of_order), (4, 0));
        assert_eq!((found.of_pairs.messages, found.of_pairs.out_of_order), (4, 0));
    }

    #[test]
    fn lost_messages_are_named_as_the_service_calls_them() {
        let mut sent = sent(5);
        for number in [0, 3] {
            sent.receive(number);
        }
        // Nobody can look for one that was not confirmed.
        sent.queue.tag(0, 3);
        let lost = sent.queue.lost_messages();
        let ids: Vec<_> = lost.iter().map(|one| (&*one.message_id, one.sender)).collect();
        assert_eq!(ids, [("id-1", 1), ("id-2", 0), ("id-4", 0)]);
        assert!(lost.iter().all(|one| one.queue_url == "q"));
    }

    #[test]
    fn a_message_that_was_not_confirmed_makes_up_for_no_loss() {
        let mut sent = sent(2);
        let given_up = sent.queue.tag(0, 1);
        sent.texts.push(payload::make(given_up, payload::SIZE_MIN, &mut Rng::with_seed(2)));
        for number in [0, 2, 2] {
            let tag = sent.receive(number);
            sent.queue.note_deleted(tag);
        }
        let found = sent.queue.outcome();
        assert_eq!((found.sent, found.lost, found.duplicates), (2, 1, 0));
        assert_eq!((found.unconfirmed, found.unconfirmed_received), (1, 1));
        assert!(!sent.queue.is_settled(), "message 1 is not deleted");
        let tag = sent.receive(1);
        sent.queue.note_deleted(tag);
        assert!(sent.queue.is_settled());
        assert_eq!(sent.queue.outcome().lost, 0);
    }

    #[test]
    fn a_message_may_be_deleted_before_its_send_is_confirmed() {
        let queue = TrackedQueue::new("q".to_owned(), 1);
        let tag = queue.tag(0, 0);
        let text = payload::make(tag, payload::SIZE_MIN, &mut Rng::with_seed(1));
        queue.note_deleted(queue.note_received(0, &text, (0, 5)));
        queue.note_sent(tag, "id".into(), 6);
        queue.note_sender_gone();
        assert!(queue.is_settled());
        assert_eq!((queue.outcome().sent, queue.outcome().lost), (1, 0));
    }

    #[test]
    fn overlapping_senders_are_each_in_order_though_the_queue_is_not() {
        let mut sent = sent(4); // 0 and 2 of one sender, 1 and 3 of the other
        for number in [1, 0, 3, 2] {
            sent.receive(number);
        }
        let found = sent.queue.outcome();
        assert_eq!(found.in_queue.out_of_order, 2);
        assert_eq!((found.of_pairs.messages, found.of_pairs.out_of_order), (4, 0));
        assert_eq!(found.provably_out_of_order, 0);
    }

    #[test]
    fn a_pair_whose_messages_change_places_is_out_of_order() {
        let mut sent = sent(4);
        for number in [2, 0, 1, 3] {
            sent.receive(number);
        }
        let found = sent.queue.outcome();
        assert_eq!((found.of_pairs.out_of_order, found.of_pairs.displacement), (1, 2));
        assert_eq!(found.provably_out_of_order, 1);
    }

    #[test]
    fn an_inversion_between_two_receivers_is_proven_by_their_calls_only() {
        let mut sent = sent(4);
        for (receiver, number) in [(0, 2), (1, 0), (0, 1), (1, 3)] {
            sent.receive_by(receiver, number);
        }
        let found = sent.queue.outcome();
        assert_eq!((found.of_pairs.out_of_order, found.provably_out_of_order), (0, 1));
    }
}
