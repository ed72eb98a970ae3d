//! The tokio shell: listeners, connections, timers, and the log's threads.
mod authenticator;
mod clock;
mod password;

pub use authenticator::{Authenticator, Busy, Credentials};
pub use clock::Clock;
pub use password::{HashError, hash_password, verify_password};
