//! A client of the SQS interface over HTTP/1.1: [`Client`] makes calls over one kept connection, and
//! [`Worker`] is the loop around it that receives, processes, extends visibility and deletes (BDQS
//! §III-A.2). It must never need a broker's crate, so that it works against any SQS endpoint.
//! Its HTTP/1.1 is its own, since `ureq` lets nobody end a long poll that waits ([`Canceller`]), nor lose a request or its answer on
//! purpose, as experiments do. Start with `client.rs`, then `worker.rs`.

mod cancel;
mod client;
mod connection;
mod credentials;
mod endpoint;
mod error;
mod loss;
mod message;
mod operations;
mod response;
mod retry;
mod worker;

pub use cancel::Canceller;
pub use client::Client;
pub use credentials::{Credentials, CredentialsError};
pub use endpoint::{Endpoint, EndpointError};
pub use error::{Error, ServiceError};
pub use loss::Loss;
pub use message::{BatchFailure, Message, OutgoingMessage, Receive, SentMessage};
pub use response::ResponseError;
pub use retry::Retry;
pub use worker::{Stop, Tally, Task, Verdict, Worker, WorkerError};

/// The page's examples compile.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/sqs/worker.md")]
mod page {}
