//! Many queues on all processors.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::chance;
use super::figures::Figures;
use super::queue::play;
use super::scenario::Scenario;
use crate::Seed;

/// Queues that one processor plays before it asks for more. Their figures are summed at once, so that a
/// hundred thousand queues need no memory.
const BLOCK: usize = 4;
/// The largest queue of a fleet, in producers.
const QUEUE_MAX: f64 = 2_000.0;

/// A queue of a fleet: its number, which its seed comes from, and how many producers it has on average.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Which.
    pub number: u64,
    /// Producers, on average.
    pub producers: u32,
}

/// Returns so many queues with so many producers in sum, largest first: heavy-tailed (Pareto), up
/// to 2,000 producers. The largest tenth has about a third of all. Each has at least one.
#[must_use]
pub fn heavy_tailed(seed: Seed, queues: u64, producers: u64) -> Vec<Member> {
    let mut rng = seed.rng("sizes");
    let mean = producers as f64 / queues.max(1) as f64;
    let most = QUEUE_MAX.max(mean);
    let drawn: Vec<f64> =
        (0..queues).map(|_| f64::from(chance::rate(&mut rng, mean, most))).collect();
    let scale = producers as f64 / drawn.iter().sum::<f64>().max(1.0);
    let mut members: Vec<Member> = (0..queues)
        .zip(drawn)
        .map(|(number, size)| Member { number, producers: (size * scale).round().max(1.0) as u32 })
        .collect();
    members.sort_unstable_by_key(|member| (std::cmp::Reverse(member.producers), member.number));
    members
}

/// Plays that many equal queues, each from a seed of its own within `seed`, and sums their figures. The
/// same on any number of processors.
#[must_use]
pub fn play_all(seed: Seed, queues: u64, scenario: &Scenario) -> Figures {
    let member = |number| Member { number, producers: scenario.producers };
    play_fleet(seed, &(0..queues).map(member).collect::<Vec<_>>(), scenario)
}

/// Plays queues of different sizes, and sums their figures as [`play_all`] does.
#[must_use]
pub fn play_fleet(seed: Seed, members: &[Member], scenario: &Scenario) -> Figures {
    let blocks: Vec<&[Member]> = members.chunks(BLOCK).collect();
    let workers = thread::available_parallelism().map_or(1, usize::from).min(blocks.len().max(1));
    let next = AtomicUsize::new(0);
    let work = || {
        let mut played = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(block) = blocks.get(index) else { return played };
            played.push((index, play_block(seed, block, scenario)));
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

fn play_block(seed: Seed, block: &[Member], scenario: &Scenario) -> Figures {
    let mut sum = Figures::default();
    for member in block {
        let scenario = Scenario { producers: member.producers, ..scenario.clone() };
        sum += &play(seed.child("queue", member.number), &scenario);
    }
    sum
}
