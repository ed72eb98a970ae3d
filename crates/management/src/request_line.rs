//! What every answer gets in RabbitMQ's dialect: the place of what was made, and why a method is refused.

use axum::body::Body;
use axum::http::header::{ALLOW, LOCATION};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, Response, StatusCode};
use axum::response::IntoResponse as _;

use crate::error::ApiError;

/// What is known of a request when it has been answered.
pub(crate) struct RequestLine {
    method: Method,
    path: String,
}

impl RequestLine {
    pub(crate) fn new(method: &Method, path: &str) -> Self {
        Self { method: method.clone(), path: path.to_owned() }
    }

    /// Returns method and path.
    pub(crate) fn what(&self) -> (&Method, &str) {
        (&self.method, &self.path)
    }

    /// Completes an answer. 201 to a PUT says where it is: where it was put. 405 says so as every
    /// other error does.
    pub(crate) fn complete(self, mut answer: Response<Body>) -> Response<Body> {
        match answer.status() {
            StatusCode::CREATED if self.method == Method::PUT => {
                if let Ok(path) = HeaderValue::from_str(&self.path) {
                    answer.headers_mut().entry(LOCATION).or_insert(path);
                }
                answer
            }
            StatusCode::METHOD_NOT_ALLOWED => {
                let allowed = answer.headers().get(ALLOW).cloned();
                let allowed = allowed.unwrap_or_else(|| HeaderValue::from_static(""));
                let methods = allowed.to_str().unwrap_or_default().to_owned();
                let refused = ApiError::MethodNotAllowed { method: self.method, allowed: methods };
                let mut answer = refused.into_response();
                answer.headers_mut().insert(ALLOW, allowed);
                answer
            }
            _ => answer,
        }
    }
}

/// Some of RabbitMQ's tools end a path with a slash: what they mean is what stands before it.
pub(crate) fn without_last_slash(parts: &mut Parts) {
    let path = parts.uri.path();
    let Some(shorter) = path.strip_suffix('/').filter(|shorter| shorter.starts_with("/api/"))
    else {
        return;
    };
    let shorter = match parts.uri.query() {
        Some(query) => format!("{shorter}?{query}"),
        None => shorter.to_owned(),
    };
    if let Ok(uri) = shorter.parse() {
        parts.uri = uri;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: StatusCode) -> Response<Body> {
        (status, [(ALLOW, "GET,HEAD")]).into_response()
    }

    #[test]
    fn what_was_put_is_where_it_was_put() {
        let put = RequestLine::new(&Method::PUT, "/api/vhosts/new");
        let made = put.complete(answer(StatusCode::CREATED));
        assert_eq!(made.headers()[LOCATION], "/api/vhosts/new");
        for (method, status) in
            [(Method::PUT, StatusCode::NO_CONTENT), (Method::POST, StatusCode::CREATED)]
        {
            let other = RequestLine::new(&method, "/x").complete(answer(status));
            assert!(!other.headers().contains_key(LOCATION), "{method} {status}");
        }
    }

    #[test]
    fn a_last_slash_means_nothing_below_api() {
        for (given, meant) in [
            ("/api/healthchecks/node/", "/api/healthchecks/node"),
            ("/api/queues/%2F/?page=1", "/api/queues/%2F?page=1"),
            ("/api/overview", "/api/overview"),
            ("/api/", "/api/"),
            ("/", "/"),
        ] {
            let request = axum::http::Request::get(given).body(()).unwrap();
            let (mut parts, ()) = request.into_parts();
            without_last_slash(&mut parts);
            assert_eq!(parts.uri.to_string(), meant);
        }
    }

    #[test]
    fn a_refused_method_leaves_the_list_of_those_allowed() {
        let refused = RequestLine::new(&Method::PATCH, "/api/overview");
        let refused = refused.complete(answer(StatusCode::METHOD_NOT_ALLOWED));
        assert_eq!(refused.status(), StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(refused.headers()[ALLOW], "GET,HEAD");
        assert_eq!(refused.headers()["content-type"], "application/json");
    }
}
