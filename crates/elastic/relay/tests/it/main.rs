//! A relay over real sockets, with clients that speak the native protocol by hand.

mod client;
mod control;
mod fan_out;
mod handshake;
mod keeper;
mod library;
mod producers;
mod relay;
mod slow;
mod spill;
mod zmtp;
