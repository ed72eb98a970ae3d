//! What stands behind `?`.

use axum::extract::{FromRequestParts, Query};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use serde::de::DeserializeOwned;

use crate::refusal::refusal;

/// The fields behind `?`. What is wrong with them is answered as every other error is.
#[derive(Debug)]
pub struct QueryFields<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for QueryFields<T> {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Response> {
        let query = Query::try_from_uri(&parts.uri);
        let bad = |reason: String| refusal(StatusCode::BAD_REQUEST, reason);
        query.map(|Query(query)| Self(query)).map_err(|wrong| bad(wrong.body_text()))
    }
}
