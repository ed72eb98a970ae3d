//! Owners of one FIFO queue over a model of Cassandra, in virtual time: front-ends that crash, stop for longer than their
//! leases and wake, with clocks that differ; writes that come late, answers that are lost. `QUELEA_SEED=n` repeats a run.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod clients;
mod effects;
mod fifo_simulation;
mod front_end;
mod front_ends;
mod happenings;
mod history;
mod replicas;
mod requests;

use fifo_simulation::FifoSimulation;
use happenings::{Chaos, Outcome};
use quelea_testkit::{Seed, seeds};

const SEEDS: u64 = 60;

fn play_all(chaos: Chaos) -> (u64, Outcome) {
    let (mut played, mut all) = (0, Outcome::default());
    seeds::for_each(0..SEEDS, |seed| {
        let outcome = FifoSimulation::new(seed, chaos).play();
        assert!(outcome.faults.is_empty(), "{:#?}", outcome.faults);
        played += 1;
        all.add(&outcome);
    });
    (played, all)
}

#[test]
fn order_holds_through_pauses_crashes_and_late_writes() {
    let (played, all) = play_all(Chaos::ALL);
    println!("{played} seeds: {all:?}");
    if played >= SEEDS / 2 {
        assert!(all.take_overs > played, "owners follow one another");
        assert!(all.late_writes > 0, "and earlier ones still write");
        assert!(all.refused > 0, "some messages are refused");
        assert!(all.releases > 0, "and some owners let go");
        assert!(all.received > all.sent && all.sent > 20 * played);
    }
}

#[test]
fn without_failures_everything_is_received_once() {
    let (_, all) = play_all(Chaos::NONE);
    assert_eq!(all.received, all.sent);
}

/// Returns whether one of the seeds has something wrong.
fn is_found_out(chaos: Chaos) -> bool {
    (0..SEEDS).any(|seed| !FifoSimulation::new(Seed(seed), chaos).play().faults.is_empty())
}

/// Without this fence (an owner always takes its lease to be valid) order breaks.
#[test]
fn owners_that_do_not_watch_their_leases_are_found_out() {
    assert!(is_found_out(Chaos { is_fenced: false, ..Chaos::ALL }));
}

/// Without this one (what comes late counts) it does, too.
#[test]
fn late_writes_that_count_are_found_out() {
    assert!(is_found_out(Chaos { is_sealed: false, ..Chaos::ALL }));
}

/// Without this one (what was refused is not deleted) what an earlier attempt stored is a second message of its id.
#[test]
fn refused_batches_that_are_not_discarded_are_found_out() {
    assert!(is_found_out(Chaos { discards: false, ..Chaos::ALL }));
}
