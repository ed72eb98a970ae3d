//! The headers that a request is read by.

use hyper::HeaderMap;
use hyper::header::{self, HeaderName, HeaderValue};

use crate::limits::KEPT_HEADER_BYTES_MAX;

const TARGET: HeaderName = HeaderName::from_static("x-amz-target");
const TRACE: HeaderName = HeaderName::from_static("x-amzn-trace-id");

/// The first value of each of them, found in one pass: to look for each of them costs several times as much.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KnownHeaders<'a> {
    host: Option<&'a HeaderValue>,
    content_type: Option<&'a HeaderValue>,
    target: Option<&'a HeaderValue>,
    accept: Option<&'a HeaderValue>,
    user_agent: Option<&'a HeaderValue>,
    trace: Option<&'a HeaderValue>,
}

impl<'a> KnownHeaders<'a> {
    pub(crate) fn of(headers: &'a HeaderMap) -> Self {
        let mut known = Self::default();
        for (name, value) in headers {
            let place = if *name == header::HOST {
                &mut known.host
            } else if *name == header::CONTENT_TYPE {
                &mut known.content_type
            } else if *name == TARGET {
                &mut known.target
            } else if *name == header::ACCEPT {
                &mut known.accept
            } else if *name == header::USER_AGENT {
                &mut known.user_agent
            } else if *name == TRACE {
                &mut known.trace
            } else {
                continue;
            };
            place.get_or_insert(value);
        }
        known
    }

    pub(crate) fn host(&self) -> Option<&'a str> {
        text(self.host)
    }

    pub(crate) fn content_type(&self) -> Option<&'a str> {
        text(self.content_type)
    }

    pub(crate) fn target(&self) -> Option<&'a str> {
        text(self.target)
    }

    pub(crate) fn accepted(&self) -> Option<&'a str> {
        text(self.accept)
    }

    /// Returns the host, no longer than it may be for as long as the request is served.
    pub(crate) fn kept_host(&self) -> Option<&'a str> {
        self.host().map(cut)
    }

    /// Returns the user agent, for as long as the request is served.
    pub(crate) fn kept_user_agent(&self) -> Option<String> {
        text(self.user_agent).map(|text| cut(text).to_owned())
    }

    /// Returns the trace header, for as long as the request is served.
    pub(crate) fn kept_trace(&self) -> Option<String> {
        text(self.trace).map(|text| cut(text).to_owned())
    }
}

fn text(value: Option<&HeaderValue>) -> Option<&str> {
    value.and_then(|value| value.to_str().ok())
}

/// Cuts a header: nothing sensible is longer. Its text is ASCII, so that it may be cut anywhere.
fn cut(text: &str) -> &str {
    &text[..text.len().min(KEPT_HEADER_BYTES_MAX)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_found_by_its_name_and_the_first_of_several_counts() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            (header::HOST, "host"),
            (header::HOST, "another"),
            (header::CONTENT_TYPE, "type"),
            (TARGET, "target"),
            (header::ACCEPT, "accept"),
            (header::USER_AGENT, "agent"),
            (TRACE, "trace"),
            (header::RANGE, "none of them"),
        ] {
            headers.append(name, HeaderValue::from_static(value));
        }
        let known = KnownHeaders::of(&headers);
        assert_eq!((known.host(), known.kept_host()), (Some("host"), Some("host")));
        assert_eq!((known.content_type(), known.target()), (Some("type"), Some("target")));
        assert_eq!(known.accepted(), Some("accept"));
        let kept = (known.kept_user_agent().unwrap(), known.kept_trace().unwrap());
        assert_eq!((&*kept.0, &*kept.1), ("agent", "trace"));
    }

    #[test]
    fn what_is_not_there_or_no_text_is_none() {
        let mut headers = HeaderMap::new();
        assert_eq!(KnownHeaders::of(&headers).target(), None);
        headers.insert(TARGET, HeaderValue::from_bytes(b"\xff").unwrap());
        assert_eq!(KnownHeaders::of(&headers).target(), None);
    }

    #[test]
    fn of_a_header_only_so_much_is_kept() {
        let mut headers = HeaderMap::new();
        for (bytes, expected) in [(1023, 1023), (1024, 1024), (60_000, 1024)] {
            headers.insert(header::USER_AGENT, HeaderValue::try_from("a".repeat(bytes)).unwrap());
            let kept = KnownHeaders::of(&headers).kept_user_agent();
            assert_eq!(kept.unwrap().len(), expected);
        }
    }
}
