//! The store against a real Cassandra, at `QUELEA_TEST_CASSANDRA`: the suites `cassandra` and `cassandra_faults` start one
//! and run this.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod conformance;
mod costs;
mod deleted_queues;
mod fifo;
mod front_ends;
mod held_way;
mod hub;
mod identity;
mod late_changes;
mod left_behind;
mod migrations;
mod moves;
mod peeks;
mod peers;
mod refusals;
mod shards;
mod site;
mod starting;
