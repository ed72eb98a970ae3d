//! The elastic queue's directory over sockets: its listener, where it keeps what it knows, and who
//! starts its relays. All decisions are in `quelea-elastic`; this crate carries them out, and must
//! never decide anything about a queue itself.
//! Start with [`provider::Provider`] for who runs relays and [`meta::MetaStore`] for what is kept.

pub mod meta;
pub mod provider;

use std::pin::Pin;

/// What an object-safe asynchronous method gives back.
pub type Answer<'a, T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send + 'a>>;
