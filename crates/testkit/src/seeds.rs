//! A property that is tried with many seeds, and with one again after it failed.
//!
//! `QUELEA_SEED=n` tries seed n alone, `QUELEA_SEEDS=n` so many instead of as many as the test says; both
//! together so many from that one on. With `QUELEA_SEEDS_MAX=n` no test tries more of those that it says.

use std::ops::{Range, RangeInclusive};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::Seed;

/// The environment variable with the first seed to be tried, and the only one unless [`SEEDS`] is set.
pub const SEED: &str = "QUELEA_SEED";

/// The environment variable with the number of seeds to be tried.
pub const SEEDS: &str = "QUELEA_SEEDS";

/// The environment variable with the number of seeds beyond which no test goes by itself: some say fewer.
pub const SEEDS_MAX: &str = "QUELEA_SEEDS_MAX";

/// Tries the property with each of these seeds, or with those that the environment names. Of the first that
/// fails the line is printed that tries it again.
///
/// # Panics
/// As the property does, and if the environment's number is none.
pub fn for_each(seeds: Range<u64>, mut property: impl FnMut(Seed)) {
    let seeds = at_most(seeds, number(SEEDS_MAX));
    for seed in chosen(seeds, number(SEED), number(SEEDS)) {
        if let Err(cause) = catch_unwind(AssertUnwindSafe(|| property(Seed(seed)))) {
            let directory = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
            let thread = std::thread::current();
            eprintln!("{}", replay(seed, &directory, thread.name().unwrap_or_default()));
            resume_unwind(cause);
        }
    }
}

/// Returns a number that the environment holds.
///
/// # Panics
/// If it is none.
#[must_use]
pub fn number(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name}={value} is not a number")))
}

fn at_most(seeds: Range<u64>, max: Option<u64>) -> Range<u64> {
    let end = seeds.end.min(seeds.start.saturating_add(max.unwrap_or(u64::MAX)));
    seeds.start..end
}

fn chosen(seeds: Range<u64>, first: Option<u64>, count: Option<u64>) -> RangeInclusive<u64> {
    let all = if first.is_some() { 1 } else { seeds.end - seeds.start };
    let begin = first.unwrap_or(seeds.start);
    begin..=begin.saturating_add(count.unwrap_or(all).max(1) - 1)
}

/// Returns the line that tries a seed again. The test's thread has its name.
fn replay(seed: u64, directory: &str, test: &str) -> String {
    format!("replay with: {SEED}={seed} cargo test --manifest-path {directory}/Cargo.toml {test}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_chooses_the_seeds() {
        assert_eq!(chosen(1..26, None, None), 1..=25);
        assert_eq!(chosen(1..26, None, Some(3)), 1..=3);
        assert_eq!(chosen(1..26, Some(7), None), 7..=7);
        assert_eq!(chosen(1..26, Some(7), Some(3)), 7..=9);
        assert_eq!(chosen(0..9, Some(u64::MAX), Some(2)), u64::MAX..=u64::MAX);
    }

    #[test]
    fn a_maximum_leaves_tests_that_say_fewer_as_they_are() {
        assert_eq!(at_most(1..26, None), 1..26);
        assert_eq!(at_most(1..26, Some(3)), 1..4);
        assert_eq!(at_most(1..26, Some(100)), 1..26);
    }

    #[test]
    fn a_failure_ends_the_run_and_says_how_to_repeat_it() {
        let mut tried = Vec::new();
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            for_each(3..9, |seed| {
                tried.push(seed.0);
                assert!(seed.0 < 5, "as a test that fails");
            });
        }));
        assert!(outcome.is_err());
        assert_eq!(tried, [3, 4, 5]);
        let line = replay(5, "crates/a", "sim::it_holds");
        let expected = "QUELEA_SEED=5 cargo test --manifest-path crates/a/Cargo.toml sim::it_holds";
        assert_eq!(line, format!("replay with: {expected}"));
    }
}
