//! The directory in virtual time, with clients, relays, a provider and a metadata store that do as the test
//! says.

mod budget;
mod deletion;
mod drain;
mod dry_run;
mod failover;
mod first_use;
mod greedy;
mod host;
mod odd_frames;
mod record;
mod relocation;
mod takeover;
mod world;
