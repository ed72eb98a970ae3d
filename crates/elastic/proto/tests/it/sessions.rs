//! Producers and listeners over moves and failures of relays.

mod chaos;
mod seen;
mod stories;
mod world;
