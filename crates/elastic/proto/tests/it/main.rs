//! The frames on the wire.

mod any_frame;
mod buffer;
mod golden;
mod parts;
mod refusals;
mod round_trip;
mod sessions;
