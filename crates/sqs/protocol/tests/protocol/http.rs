//! HTTP requests for the tests.

use quelea_sqs_protocol::encoding::{EncodedRequest, Protocol, decode};
use quelea_sqs_protocol::{Action, Error, Request};

/// Returns a request in JSON, as SDKs send it.
pub(crate) fn json<'a>(target: &'a str, body: &'a str) -> EncodedRequest<'a> {
    EncodedRequest {
        method: "POST",
        path: "/",
        query: "",
        host: Some("localhost:9324"),
        content_type: Some("application/x-amz-json-1.0"),
        target: Some(target),
        accept: None,
        body: body.as_bytes(),
    }
}

/// Returns a form, as SDKs send it that speak Query.
pub(crate) fn form<'a>(path: &'a str, body: &'a str) -> EncodedRequest<'a> {
    EncodedRequest {
        method: "POST",
        path,
        query: "",
        host: Some("localhost:9324"),
        content_type: Some("application/x-www-form-urlencoded; charset=utf-8"),
        target: None,
        accept: None,
        body: body.as_bytes(),
    }
}

/// Returns the request of somebody who opens a URL.
pub(crate) fn get<'a>(path: &'a str, query: &'a str) -> EncodedRequest<'a> {
    EncodedRequest { method: "GET", query, content_type: None, ..form(path, "") }
}

/// Returns what was asked for, in the protocol that it was asked in.
pub(crate) fn understood(http: &EncodedRequest<'_>) -> (Protocol, Request) {
    let decoded = decode(http).unwrap_or_else(|refused| panic!("{http:?}: {refused:?}"));
    (decoded.protocol, decoded.request)
}

/// Returns why it was not understood, and how that is answered.
pub(crate) fn refused(http: &EncodedRequest<'_>) -> (Protocol, Error) {
    match decode(http) {
        Ok(decoded) => panic!("{http:?} is understood as {:?}", decoded.request),
        Err(refused) => (refused.protocol, refused.error),
    }
}

/// Returns what `X-Amz-Target` says.
pub(crate) fn target(action: Action) -> String {
    quelea_sqs_protocol::encoding::target(action)
}
