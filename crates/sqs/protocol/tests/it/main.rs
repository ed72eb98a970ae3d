//! The service as clients see it.

mod policies;
mod signatures;
