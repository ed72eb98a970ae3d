//! Web pages of other origins: which may ask, and what their browser is told (CORS, of the Fetch standard).

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{self, HeaderValue};
use hyper::{HeaderMap, Response, StatusCode};

/// Response headers that a page may read beside those that any may: what the AWS SDKs look at.
const EXPOSED: HeaderValue = HeaderValue::from_static("x-amzn-requestid, x-amzn-query-error");
/// What a page may send. A browser's GET carries out nothing here.
const METHODS: HeaderValue = HeaderValue::from_static("POST");
/// How long a browser need not ask again, in seconds.
const MAX_AGE_S: HeaderValue = HeaderValue::from_static("600");

/// The origins whose pages may send requests, which they have to sign with a known key all the same.
#[derive(Clone, Debug, Default)]
pub struct AllowedOrigins(Arc<[String]>);

impl AllowedOrigins {
    /// Allows these origins, as a browser writes them, `https://app.example.com`, without a path.
    #[must_use]
    pub fn new(origins: &[String]) -> Self {
        Self(origins.into())
    }

    pub(crate) fn has(&self, origin: &str) -> bool {
        self.0.iter().any(|allowed| allowed.eq_ignore_ascii_case(origin))
    }

    /// Returns the origin of a request, if its pages may ask.
    pub(crate) fn of(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let origin = headers.get(header::ORIGIN)?;
        origin.to_str().is_ok_and(|text| self.has(text)).then(|| origin.clone())
    }
}

/// Lets an allowed page read a response.
pub(crate) fn let_read(response: &mut Response<Full<Bytes>>, origin: HeaderValue) {
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    headers.insert(header::VARY, HeaderValue::from_static("origin"));
}

/// Answers the question that a browser asks before it sends a request of an allowed page.
pub(crate) fn preflight(asked: &HeaderMap) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::new()));
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, MAX_AGE_S);
    // Whatever an SDK signs; no header gives a page more than its key does.
    if let Some(names) = asked.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, names.clone());
    }
    response
}
