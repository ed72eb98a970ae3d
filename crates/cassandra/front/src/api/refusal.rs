//! Why a request is not answered, and the HTTP answer that says so.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use quelea_openapi::refusal;
use quelea_sqs_protocol::Fault;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    /// This process speaks with no Cassandra.
    #[error("cassandra.nodes is empty: there are no replicated queues here")]
    NoCluster,
    /// No such queue.
    #[error("there is no replicated queue {name:?} in account {account:?}")]
    NoQueue {
        /// The account.
        account: String,
        /// The queue's name.
        name: String,
    },
    /// Cassandra does not answer as it should.
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = match self {
            Self::NoCluster | Self::NoQueue { .. } => StatusCode::NOT_FOUND,
            Self::Fault(_) => StatusCode::SERVICE_UNAVAILABLE,
        };
        refusal(status, self)
    }
}
