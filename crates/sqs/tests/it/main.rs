//! The service as clients see it.

mod signatures;
