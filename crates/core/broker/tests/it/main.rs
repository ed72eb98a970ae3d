//! Behaviour of the broker, as stories (tests/stories/*.txt) and checked against a model.
#![expect(clippy::unwrap_used, reason = "a test ends where something unexpected happens")]

mod access_keys;
mod adoption;
mod broker_test;
mod browsing;
mod conservation;
mod damage;
mod exchange_counts;
mod expired_heads;
mod flow_control;
mod full_disk;
mod in_flight;
mod line;
mod listing;
mod model;
mod receipts;
mod receiving;
mod redriving;
mod removing;
mod returning;
mod served_in_between;
mod stage;
mod stories;
mod story;
