//! A request of the API, taken apart in one place for all of its handlers: each of them is compiled for this
//! one argument instead of an extractor of its own for every part.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Json;
use axum::body::Bytes;
use axum::body::HttpBody as _;
use axum::extract::rejection::{JsonRejection, RawPathParamsRejection};
use axum::extract::{FromRequest, FromRequestParts, Query, RawPathParams, Request};
use axum::http::{Extensions, HeaderMap, Uri};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::authentication::ApiUser;
use crate::error::ApiError;
use crate::form;
use crate::state::{ApiState, SharedState};
use crate::web_pages::{is_browser, says_its_origin};

/// A request of a user who has signed in.
pub(crate) struct Call<S = ApiState> {
    api: S,
    user: ApiUser,
    /// The values of the route's parameters, in their order.
    path: Vec<String>,
    request: Request,
}

impl<S: SharedState> FromRequest<S> for Call<S> {
    type Rejection = ApiError;

    async fn from_request(request: Request, api: &S) -> Result<Self, ApiError> {
        let (mut parts, body) = request.into_parts();
        let user = ApiUser::from_request_parts(&mut parts, api).await?;
        let path = match RawPathParams::from_request_parts(&mut parts, api).await {
            Ok(path) => path.iter().map(|(_, value)| value.to_owned()).collect(),
            Err(RawPathParamsRejection::MissingPathParams(_)) => Vec::new(),
            Err(refused) => return Err(ApiError::Malformed(refused.status(), refused.body_text())),
        };
        Ok(Self { api: api.clone(), user, path, request: Request::from_parts(parts, body) })
    }
}

impl<S> Call<S> {
    /// Begins the call, and returns what a handler needs of a route with `N` parameters.
    pub(crate) fn parts<const N: usize>(self) -> (S, ApiUser, [String; N]) {
        self.begun().begin();
        (self.api, self.user, parameters(self.path))
    }

    /// Returns what a handler needs that looks at neither the user nor the route's parameters.
    pub(crate) fn api(self) -> S {
        self.api
    }

    /// Returns who asks.
    pub(crate) const fn user(&self) -> &ApiUser {
        &self.user
    }

    /// Returns what all handlers share.
    pub(crate) const fn state(&self) -> &S {
        &self.api
    }

    /// Returns what is known of the connection.
    pub(crate) fn extensions(&self) -> &Extensions {
        self.request.extensions()
    }

    /// Returns the server's mark; one that nobody looks at where there is none.
    fn begun(&self) -> Begun {
        self.extensions().get().cloned().unwrap_or_default()
    }

    /// Returns the values of the route's parameters.
    pub(crate) fn path(&self) -> &[String] {
        &self.path
    }

    /// Reads the body, an object, and returns it with what [`Self::parts`] returns: where there is
    /// no body, an object without fields.
    ///
    /// # Errors
    /// [`ApiError::Malformed`].
    pub(crate) async fn parts_and_body<const N: usize>(
        self,
    ) -> Result<(S, ApiUser, [String; N], Value), ApiError> {
        let begun = self.begun();
        let body = json(self.request).await?;
        begun.begin();
        Ok((self.api, self.user, parameters(self.path), body))
    }

    /// Reads a document as [`Self::parts_and_body`] reads a body. It may also come as the field
    /// `file` of a form (`multipart/form-data`), as RabbitMQ's pages send it. A browser has to say
    /// that its form is of our own page: else a page of any origin could send one.
    ///
    /// # Errors
    /// [`ApiError::Malformed`], [`ApiError::BadRequest`].
    pub(crate) async fn parts_and_document<const N: usize>(
        self,
    ) -> Result<(S, ApiUser, [String; N], Value), ApiError> {
        let headers = self.request.headers();
        let may_send_forms = !is_browser(headers) || says_its_origin(headers);
        let Some(boundary) = form::boundary(headers).filter(|_| may_send_forms) else {
            return self.parts_and_body().await;
        };
        let begun = self.begun();
        let bytes = Bytes::from_request(self.request, &()).await.map_err(JsonRejection::from)?;
        begun.begin();
        let file = form::field(&bytes, &boundary, "file").map_err(ApiError::bad)?;
        Ok((self.api, self.user, parameters(self.path), object(Json::from_bytes(file)?)?))
    }

    /// Parses the part of the address behind `?`.
    ///
    /// # Errors
    /// [`ApiError::Malformed`].
    pub(crate) fn query<T: DeserializeOwned>(&self) -> Result<T, ApiError> {
        Query::try_from_uri(self.request.uri())
            .map(|Query(query)| query)
            .map_err(|refused| ApiError::Malformed(refused.status(), refused.body_text()))
    }

    /// Returns the address that is asked for, as it was sent, without what stands before the API's
    /// own paths.
    pub(crate) fn uri(&self) -> &Uri {
        self.request.uri()
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        self.request.headers()
    }
}

/// Whether a request is whole, or another room reads it, and its user has signed in: from then on it is carried out though
/// its client leaves.
#[derive(Clone, Debug, Default)]
pub(crate) struct Begun(Arc<AtomicBool>);

impl Begun {
    pub(crate) fn begin(&self) {
        self.0.store(true, Ordering::Release);
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Reads a body, which is an object: of a list, say, every field would seem to be absent. As to
/// RabbitMQ it is JSON whatever `Content-Type` says. A browser has to say that it is: without that
/// header pages of any origin send what they like.
async fn json(request: Request) -> Result<Value, ApiError> {
    if request.body().is_end_stream() {
        return Ok(Value::Object(Map::new()));
    }
    let parsed = if is_browser(request.headers()) {
        Json::from_request(request, &()).await
    } else {
        let bytes = Bytes::from_request(request, &()).await;
        match bytes.map_err(JsonRejection::from)? {
            empty if empty.is_empty() => return Ok(Value::Object(Map::new())),
            bytes => Json::from_bytes(&bytes),
        }
    };
    object(parsed?)
}

fn object(parsed: Json<Value>) -> Result<Value, ApiError> {
    match parsed {
        Json(body @ Value::Object(_)) => Ok(body),
        Json(_) => Err(ApiError::bad("the body must be a JSON object")),
    }
}

fn parameters<const N: usize>(path: Vec<String>) -> [String; N] {
    path.try_into().expect("a handler takes as many parameters as its route has")
}
