//! The tokio shell around the sans-I/O core: it owns every socket, file, thread and clock of a node.
//! It must never decide what a method or a queue means; it moves bytes, time and jobs. Start with
//! [`Node`], then `turn.rs` (input, broker, jobs, output), `connection_task.rs` (one socket) and
//! `log_threads.rs`.
//!
//! # Threads
//! - **core**: the broker, all AMQP sockets and timers, on a single-threaded runtime.
//! - **log-write**, **log-read**, **log-background**: run the store's jobs, one after the other each.
//! - **auth**: password hashes; it ends when there were none for a while.
//!
//! Other threads reach the core through [`CoreHandle`]. What a panic does stands in `panics.rs`.

mod audit;
mod authenticator;
mod backoff;
mod client_counters;
mod clock;
mod coalescing;
mod connection;
mod connection_task;
mod connections;
mod core;
mod counters;
mod data_dir;
mod file_disk;
mod file_limit;
mod handle;
mod internal_connections;
mod local_core;
mod log_once;
mod log_threads;
mod logins;
mod name_check;
mod node;
mod other_store;
mod panics;
mod password;
mod promises;
mod rabbitmq_password;
mod schedule;
mod step_budget;
mod stop;
mod stop_signal;
mod thread_usage;
mod timers;
mod traffic;
mod turn;

pub use audit::AUDIT_LOG_TARGET;
pub use authenticator::{Authenticator, BetterHash, Credentials, Verdict, Verification};
pub use backoff::Backoff;
pub use clock::Clock;
pub use core::{Core, ReceiveAnswer};
pub use counters::NetCounters;
pub use data_dir::{DataDir, DataDirError, LOCK_FILE};
pub use file_disk::FileDisk;
pub use file_limit::{raise_file_limit, share_files};
pub use handle::{CoreHandle, CoreStopped, Promise};
pub use internal_connections::{InternalChannel, InternalClient};
pub use log_once::LogOnce;
pub use node::{Node, NodeConfig, StartError};
pub use other_store::{Adopt, OtherStore};
pub use panics::{PANIC_EXIT_CODE, install_panic_hook};
pub use password::{HashError, hash_password, verify_password};
pub use quelea_amqp_session::PublisherState;
pub use rabbitmq_password::{
    NoRabbitmqHash, RABBITMQ_DEFAULT_ALGORITHM, from_rabbitmq, hash_as_rabbitmq, to_rabbitmq,
};
pub use stop::Stopped;
pub use stop_signal::{stopped, stops_before_retry};
pub use traffic::Traffic;
