//! Who polls which queue: what the front-ends announce of it, and what this one has announced. It ages out by itself.

use std::time::Duration;

use rustc_hash::FxHashMap;
use tokio::time::Instant;
use uuid::Uuid;

use crate::limits::{INTEREST_MS, INTERESTED_MAX, REMEMBERED_QUEUES_MAX};
use crate::peers::rendezvous::score;

/// How often a front-end says that it still polls a queue.
pub(crate) const SAID_EVERY: Duration = Duration::from_millis(INTEREST_MS / 10);

/// What is known of who polls.
#[derive(Debug, Default)]
pub(crate) struct Interest {
    said: FxHashMap<Uuid, Polled>,
    others: FxHashMap<Uuid, Vec<(Uuid, Instant)>>,
}

/// A queue that is polled here.
#[derive(Clone, Copy, Debug)]
struct Polled {
    /// Since when the others are notified so often that they do not forget it.
    since: Instant,
    said_at: Instant,
}

impl Interest {
    /// Notes that a queue is polled here at `now`. Returns whether it is time to say so.
    pub(crate) fn poll(&mut self, generation: Uuid, now: Instant) -> bool {
        let is_due = |polled: &Polled| now.saturating_duration_since(polled.said_at) >= SAID_EVERY;
        let before = self.said.get(&generation).copied();
        if before.is_some_and(|polled| !is_due(&polled)) {
            return false;
        }
        if self.said.len() >= REMEMBERED_QUEUES_MAX {
            self.said.retain(|_, polled| !is_due(polled));
        }
        // It would be said at each poll of a queue that is not remembered.
        let is_remembered = self.said.len() < REMEMBERED_QUEUES_MAX;
        if is_remembered {
            let known = before.filter(|polled| is_fresh(polled.said_at, now));
            let since = known.map_or(now, |polled| polled.since);
            self.said.insert(generation, Polled { since, said_at: now });
        }
        is_remembered
    }

    /// Returns whether the others were notified already then that a queue is polled here, and again
    /// ever since.
    pub(crate) fn polls_since(&self, generation: Uuid, then: Instant, now: Instant) -> bool {
        let polled = self.said.get(&generation);
        polled.is_some_and(|polled| polled.since <= then && is_fresh(polled.said_at, now))
    }

    /// Another front-end polls that queue.
    pub(crate) fn heard(&mut self, from: Uuid, generation: Uuid, now: Instant) {
        if self.others.len() >= REMEMBERED_QUEUES_MAX && !self.others.contains_key(&generation) {
            self.others.retain(|_, heard| heard.iter().any(|(_, at)| is_fresh(*at, now)));
            if self.others.len() >= REMEMBERED_QUEUES_MAX {
                return;
            }
        }
        let heard = self.others.entry(generation).or_default();
        match heard.iter_mut().find(|(id, _)| *id == from) {
            Some((_, at)) => *at = now,
            None => {
                heard.retain(|(_, at)| is_fresh(*at, now));
                if heard.len() < INTERESTED_MAX {
                    heard.push((from, now));
                }
            }
        }
    }

    /// Returns the others that poll a queue.
    pub(crate) fn interested(&self, generation: Uuid, now: Instant) -> Vec<Uuid> {
        let heard = self.others.get(&generation).map(Vec::as_slice).unwrap_or_default();
        heard.iter().filter(|(_, at)| is_fresh(*at, now)).map(|(id, _)| *id).collect()
    }
}

/// Returns those of the interested whom a message is announced to, at most so many: others for
/// another message.
pub(crate) fn some_of(mut interested: Vec<Uuid>, message: Uuid, most: usize) -> Vec<Uuid> {
    if interested.len() > most {
        interested.sort_by_key(|id| std::cmp::Reverse(score(message, *id)));
        interested.truncate(most);
    }
    interested
}

fn is_fresh(heard_at: Instant, now: Instant) -> bool {
    now.saturating_duration_since(heard_at) < Duration::from_millis(INTEREST_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUEUE: Uuid = Uuid::from_u128(100);
    const OTHER: Uuid = Uuid::from_u128(2);

    #[test]
    fn a_poll_is_announced_at_first_and_again_before_it_is_forgotten() {
        let (start, mut interest) = (Instant::now(), Interest::default());
        assert!(interest.poll(QUEUE, start));
        assert!(!interest.poll(QUEUE, start + SAID_EVERY / 2));
        assert!(interest.poll(QUEUE, start + SAID_EVERY));
        assert!(SAID_EVERY * 2 < Duration::from_millis(INTEREST_MS), "one may be lost");
    }

    #[test]
    fn who_polls_on_is_known_to_since_the_first_poll() {
        let (start, mut interest) = (Instant::now(), Interest::default());
        for times in 0..3 {
            interest.poll(QUEUE, start + SAID_EVERY * times);
        }
        let now = start + SAID_EVERY * 3;
        assert!(interest.polls_since(QUEUE, start, now));
        assert!(!interest.polls_since(QUEUE, start - SAID_EVERY, now));
        assert!(!interest.polls_since(OTHER, start, now));
        // Others have forgotten it, and are notified anew.
        let later = now + Duration::from_millis(INTEREST_MS);
        assert!(!interest.polls_since(QUEUE, start, later));
        interest.poll(QUEUE, later);
        assert!(!interest.polls_since(QUEUE, start, later));
        assert!(interest.polls_since(QUEUE, later, later));
    }

    #[test]
    fn whoever_does_not_say_so_any_more_polls_no_more() {
        let (start, mut interest) = (Instant::now(), Interest::default());
        interest.heard(OTHER, QUEUE, start);
        let end = start + Duration::from_millis(INTEREST_MS);
        assert_eq!(interest.interested(QUEUE, end - SAID_EVERY), [OTHER]);
        assert!(interest.interested(QUEUE, end).is_empty());
        assert!(interest.interested(OTHER, start).is_empty());
    }

    #[test]
    fn what_is_known_is_bounded_by_front_ends_and_by_queues() {
        let (start, mut interest) = (Instant::now(), Interest::default());
        for id in 0..10 * INTERESTED_MAX as u128 {
            interest.heard(Uuid::from_u128(id), QUEUE, start);
        }
        assert_eq!(interest.interested(QUEUE, start).len(), INTERESTED_MAX);
        for queue in 0..100 + REMEMBERED_QUEUES_MAX as u128 {
            interest.heard(OTHER, Uuid::from_u128(1_000 + queue), start);
            let is_said = interest.poll(Uuid::from_u128(1_000 + queue), start);
            assert_eq!(is_said, queue < REMEMBERED_QUEUES_MAX as u128);
        }
        assert!(interest.others.len() <= REMEMBERED_QUEUES_MAX);
        assert!(interest.said.len() <= REMEMBERED_QUEUES_MAX);
        // What is old makes room.
        let later = start + Duration::from_millis(INTEREST_MS);
        interest.heard(OTHER, Uuid::from_u128(1), later);
        assert_eq!(interest.interested(Uuid::from_u128(1), later), [OTHER]);
    }

    #[test]
    fn another_message_is_announced_to_others() {
        let all: Vec<Uuid> = (0..20).map(Uuid::from_u128).collect();
        let of = |message: u128| some_of(all.clone(), Uuid::from_u128(message), 8);
        assert_eq!(of(1).len(), 8);
        assert_ne!(of(1), of(2));
        assert_eq!(some_of(all[..3].to_vec(), QUEUE, 8), all[..3]);
    }
}
