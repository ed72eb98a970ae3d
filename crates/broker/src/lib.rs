//! broker

pub mod access;
pub mod binding;
pub mod exchange;
mod route_cache;
pub mod router;
pub mod topology;
