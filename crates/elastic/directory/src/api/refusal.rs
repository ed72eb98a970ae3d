//! Why a request is not answered, and the HTTP answer that says so.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use quelea_elastic_core::directory::DefinitionError;
use quelea_elastic_proto::limits::QUEUE_NAME_BYTES_MAX;
use quelea_openapi::refusal;

use super::CLUSTER_VIEW_MAX;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// This node has no directory.
    #[error("elastic.listen is empty: there is no directory here")]
    NoDirectory,
    /// No such queue, here or elsewhere.
    #[error("there is no elastic queue {0:?}")]
    NoQueue(String),
    /// Another directory controls it.
    #[error("elastic queue {queue:?} is controlled by the directory at {owner}: ask there")]
    Elsewhere {
        /// The queue.
        queue: String,
        /// That directory's address.
        owner: String,
    },
    /// It is known, but not read yet, or what was asked for is not written yet.
    #[error("elastic queue {0:?} is being taken over, or written: try again")]
    Claiming(String),
    /// A queue's name that is none.
    #[error("queue: a name has from 1 to {QUEUE_NAME_BYTES_MAX} bytes, this one {0}")]
    Name(usize),
    /// A definition that is none.
    #[error(transparent)]
    Definition(#[from] DefinitionError),
    /// What stands behind `?` does not go together.
    #[error("{0}")]
    Query(String),
    /// The body is not what it should be.
    #[error("{0}")]
    Body(String),
    /// It cannot be moved now.
    #[error("{0}")]
    Move(String),
    /// Who owns what could not be found out in time.
    #[error("the directory does not say within {} s who owns which queue: try again", CLUSTER_VIEW_MAX.as_secs())]
    Late,
    /// The directory has stopped.
    #[error("the directory is stopping")]
    Stopped,
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = match self {
            Self::NoDirectory | Self::NoQueue(_) => StatusCode::NOT_FOUND,
            Self::Name(_) | Self::Definition(_) | Self::Query(_) | Self::Body(_) => {
                StatusCode::BAD_REQUEST
            }
            Self::Elsewhere { .. } | Self::Move(_) => StatusCode::CONFLICT,
            Self::Claiming(_) | Self::Late | Self::Stopped => StatusCode::SERVICE_UNAVAILABLE,
        };
        refusal(status, self)
    }
}
