//! What every front has to know of its peers, whatever it speaks: when a socket's other end counts as gone
//! (`socket.rs`), which addresses are one peer (`network.rs`), and whether a request may come from a web page
//! (`web.rs`). It must never own a socket or know a protocol beyond the headers that it is asked about.
//! Start with `web.rs`.

mod network;
mod socket;
mod web;

pub use network::network_of;
pub use socket::{KEEPALIVE_IDLE, STALLED_WRITE_MAX, allow_stalls, prepare_socket};
pub use web::{HostNames, WebHeaders};
