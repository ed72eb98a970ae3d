//! The wire layer as its clients see it, and as the service model that SDKs are made from has it.

mod errors;
mod http;
mod md5;
mod model;
mod mutations;
mod replies;
mod requests;
mod strictness;
