//! Producers and listeners over moves and failures of relays.

mod chaos;
mod stories;
mod world;
