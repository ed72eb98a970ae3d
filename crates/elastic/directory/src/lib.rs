//! The elastic queue's directory over sockets: its listener, where it keeps what it knows, and who
//! starts its relays. All decisions are in `quelea-elastic-core`; this crate carries them out, and must
//! never decide anything about a queue itself.
//! Start with [`DirectoryServer`]; [`provider::Provider`] is who runs relays,
//! [`meta::MetaStore`] what is kept.

mod api;
mod connection;
mod counters;
mod driver;
mod event_log;
pub mod meta;
mod ownership;
mod ownership_command;
pub mod provider;
mod refusal;
mod relay_token;
mod server;

use std::pin::Pin;

pub use api::routes;
pub use counters::DirectoryCounters;
pub use relay_token::{TOKEN_VARIABLE, TokenSecret};
pub use server::{
    DirectoryHandle, DirectoryServer, DirectorySettings, DirectoryStartError, MetaSettings,
    OpenMeta, ProviderSettings,
};

/// What an object-safe asynchronous method returns.
pub type ResultFuture<'a, T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send + 'a>>;
