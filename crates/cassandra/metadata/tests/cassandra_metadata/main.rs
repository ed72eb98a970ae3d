//! The store against a real Cassandra, at `QUELEA_TEST_CASSANDRA`: the suite `elastic_cassandra` starts one and runs this.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../../../../elastic/directory/tests/it/store.rs"]
mod store;

mod together;
