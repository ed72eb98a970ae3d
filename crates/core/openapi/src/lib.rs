//! Routes of an HTTP interface together with what they take and answer, from which its OpenAPI 3.1 document is made: what
//! is routed is documented, with the schemas of the types that handlers read and write.
//! It must never know what is behind a route, verify who asks or open a socket: handlers and their state are those of the
//! crates whose routes they are, and who mounts them does the rest.
//! Start with [`Route`]; [`Document`] is made of routes.

mod body;
mod document;
mod limit;
mod operation;
mod query;
mod refusal;
mod route;

pub use body::{from_slice, from_value};
pub use document::{Document, Info};
pub use limit::Limit;
pub use operation::{Operation, SchemaOf};
pub use query::QueryFields;
pub use refusal::refusal;
pub use route::{Route, router, with_state};
