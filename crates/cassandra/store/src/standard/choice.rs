//! Which of the visible entries a front-end takes: BDQS §III-B.2. One at random of the K oldest makes it unlikely that two
//! front-ends take the same; K = 1 keeps order.

use rustc_hash::{FxHashMap, FxHashSet};
use uuid::Uuid;

use crate::bucket::Bucket;
use crate::entry::Entry;

/// Chooses `wanted` entries among `visible` ones, the oldest of which is the first. Returns their
/// places, ascending.
///
/// `random` is asked for a number below another. More are wanted than K: then the pool is as many, and all are taken.
pub(crate) fn choose(
    visible: usize,
    wanted: usize,
    k: usize,
    mut random: impl FnMut(usize) -> usize,
) -> Vec<usize> {
    let pool = visible.min(k.max(wanted));
    let wanted = wanted.min(pool);
    if wanted == pool {
        return (0..pool).collect();
    }
    // The first steps of a shuffle.
    let mut places: Vec<usize> = (0..pool).collect();
    for at in 0..wanted {
        places.swap(at, at + random(pool - at));
    }
    places.truncate(wanted);
    places.sort_unstable();
    places
}

/// Takes out all entries that lead to one body but the newest: whoever received the message when that one was written, or
/// changed its visibility, was broken off before the others went, or two did so at once. The newest knows of the others'
/// receptions. (Entries of one message may lead to different bodies after a dead letter was moved twice: each of those counts.)
pub(crate) fn take_leftovers(entries: &mut Vec<Entry>) -> Vec<Entry> {
    let mut seen: FxHashSet<(Uuid, Bucket)> = FxHashSet::default();
    // As nearly always, which is looked for first.
    if entries.iter().all(|entry| seen.insert((entry.message, entry.body))) {
        return Vec::new();
    }
    let mut newest: FxHashMap<(Uuid, Bucket), Entry> = FxHashMap::default();
    for entry in entries.iter() {
        let newest = newest.entry((entry.message, entry.body)).or_insert(*entry);
        *newest = newest.newer_of(entry);
    }
    let is_newest =
        |entry: &Entry| newest[&(entry.message, entry.body)].written_at_us == entry.written_at_us;
    let leftovers = entries.extract_if(.., |entry| !is_newest(entry)).collect();
    entries.iter_mut().for_each(|entry| *entry = newest[&(entry.message, entry.body)]);
    leftovers
}

#[cfg(test)]
mod tests {
    use crate::entry::entry_for_tests;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_chosen_is_among_the_k_oldest(visible in 0usize..60, wanted in 0usize..20, k in 1usize..50, seed: u64) {
            let mut rng = fastrand::Rng::with_seed(seed);
            let chosen = choose(visible, wanted, k, |below| rng.usize(..below));
            prop_assert_eq!(chosen.len(), wanted.min(visible));
            prop_assert!(chosen.windows(2).all(|pair| pair[0] < pair[1]));
            prop_assert!(chosen.iter().all(|place| *place < k.max(wanted).min(visible)));
        }
    }

    #[test]
    fn with_k_of_one_the_oldest_are_taken() {
        assert_eq!(choose(10, 1, 1, |_| unreachable!("nothing is drawn")), [0]);
        assert_eq!(choose(10, 3, 1, |_| unreachable!("nothing is drawn")), [0, 1, 2]);
    }

    #[test]
    fn every_one_of_the_k_oldest_has_the_same_chance() {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut counts = [0; 8];
        for _ in 0..8_000 {
            counts[choose(100, 1, 8, |below| rng.usize(..below))[0]] += 1;
        }
        assert!(counts.iter().all(|count| (800..1_200).contains(count)), "{counts:?}");
    }

    #[test]
    fn of_several_entries_of_a_body_the_newest_stays() {
        let entry = |message, written_at_us| Entry { written_at_us, ..entry_for_tests(9, message) };
        let received = Entry { receive_count: 2, first_received_at_ms: 4, ..entry(1, 5) };
        let mut entries = vec![received, entry(2, 5), entry(1, 7), entry(3, 5), entry(1, 6)];
        let leftovers = take_leftovers(&mut entries);
        assert_eq!(leftovers, [received, entry(1, 6)]);
        let kept = Entry { receive_count: 2, first_received_at_ms: 4, ..entry(1, 7) };
        assert_eq!(entries, [entry(2, 5), kept, entry(3, 5)]);
        assert!(take_leftovers(&mut entries).is_empty());
    }

    #[test]
    fn entries_of_a_message_that_lead_to_other_bodies_stay() {
        let entry = entry_for_tests(9, 1);
        let other = Entry { body: Bucket::holding(99_000_000, 0), written_at_us: 10, ..entry };
        let mut entries = vec![entry, other];
        assert!(take_leftovers(&mut entries).is_empty());
        assert_eq!(entries, [entry, other]);
    }
}
