//! What the programs of every run publish, and where.

/// The queue of every run.
pub(super) const QUEUE: &str = "prices";

/// Returns the topic of a message: what every third is about, and all others.
pub(super) fn topic(sequence: u64) -> &'static str {
    if sequence.is_multiple_of(3) { "usd.eur" } else { "eur.usd" }
}
