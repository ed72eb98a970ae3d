//! Many queues on all processors.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use super::figures::Figures;
use super::queue::play;
use super::scenario::Scenario;
use crate::Seed;

/// Plays that many queues, each from a seed of its own within `seed`, and sums their figures. The same on
/// any number of processors.
#[must_use]
pub fn play_all(seed: Seed, queues: u64, scenario: &Scenario) -> Figures {
    let workers =
        thread::available_parallelism().map_or(1, usize::from).min(queues.max(1) as usize);
    let next = AtomicU64::new(0);
    let work = || {
        let mut played = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= queues {
                return played;
            }
            played.push((index, play(seed.child("queue", index), scenario)));
        }
    };
    let mut played = thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let done =
            workers.into_iter().map(|worker| worker.join().expect("a queue's play panicked"));
        done.flatten().collect::<Vec<_>>()
    });
    // Sums of fractions depend on their order.
    played.sort_unstable_by_key(|(index, _)| *index);
    let mut sum = Figures::default();
    for (_, figures) in &played {
        sum += figures;
    }
    sum
}
