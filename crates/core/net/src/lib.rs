//! What every front has to know of its peers, whatever it speaks: how they are listened for and
//! accepted (`listen.rs`, `accept.rs`), when a socket's
//! other end counts as gone (`socket.rs`), which addresses are one peer (`network_of`), who has failed to sign in
//! (`sign_in_failures.rs`), what time it is there (`unix_time.rs`), and whether a request may come from a web page (`web.rs`). It must never keep a connection or
//! know a protocol beyond the headers that it is asked about.
//! Start with `web.rs`.

mod accept;
mod listen;
mod sign_in_failures;
mod socket;
mod unix_time;
mod web;

pub use accept::Acceptor;
pub use listen::{ListenError, is_every_address, listen};
pub use quelea_model::network_of;
pub use sign_in_failures::{Failed, Front, SignInFailures};
pub use socket::{KEEPALIVE_IDLE, STALLED_WRITE_MAX, allow_stalls, prepare_socket};
pub use unix_time::unix_ms;
pub use web::{HostNames, WebHeaders};
