//! What the crate promises, told from outside: bytes and time go in, events and bytes come out.

mod closing;
mod content;
mod conversation;
mod golden;
mod handshake;
mod heartbeat;
mod large_bodies;
mod memory;
mod other_codec;
mod output;
mod refusals;
mod round_trip;
mod splits;
