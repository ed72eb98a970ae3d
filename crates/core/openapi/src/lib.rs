//! Routes of an HTTP interface together with what they take and answer, from which its OpenAPI 3.1 document is made: what
//! is routed is documented, with the schemas of the types that handlers read and write.
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
