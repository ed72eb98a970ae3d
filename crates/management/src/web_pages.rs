//! What web pages may do: those of another origin nothing, whatever the browser has of a user's password.

use std::net::IpAddr;

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, Method, header};
use quelea_net::{HostNames, WebHeaders};

/// The user whose password everybody knows.
pub(crate) const DEFAULT_USER: &str = "guest";

/// Which requests come from our own page, or from none.
pub(crate) struct WebPages {
    hosts: HostNames,
}

/// A request that is not let in.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) is_misdirected: bool,
    pub(crate) reason: String,
}

/// The request asks for a name that a page could have made up: [`DEFAULT_USER`] may not sign in with it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnknownHost;

impl WebPages {
    pub(crate) const fn new(hosts: HostNames) -> Self {
        Self { hosts }
    }

    /// Refuses what a page of another origin may have sent.
    pub(crate) fn check(&self, parts: &Parts, peer: IpAddr) -> Result<(), Refusal> {
        let web = web_headers(&parts.headers);
        // From elsewhere a page needs a password that is no default: it has none.
        if peer.to_canonical().is_loopback() && self.has_unknown_host(parts) {
            let host = web.host.unwrap_or_default();
            let reason = format!("Host is {host:?}, which is not in http.hosts");
            return Err(Refusal { is_misdirected: true, reason });
        }
        let reads = matches!(parts.method, Method::GET | Method::HEAD);
        match web.foreign() {
            // Who follows a link sees the answer; the page with the link does not.
            Some(_) if reads && web.is_navigation() => Ok(()),
            Some(name) => {
                let reason = format!("{name} says that a page of another origin sends this");
                Err(Refusal { is_misdirected: false, reason })
            }
            None => Ok(()),
        }
    }

    fn has_unknown_host(&self, parts: &Parts) -> bool {
        // Browsers always say which host they mean. A request line that names it counts more (RFC 9112, 3.2.2).
        let host = parts.uri.authority().map(|authority| authority.as_str());
        let host = host.or_else(|| web_headers(&parts.headers).host);
        host.is_some_and(|host| !self.hosts.is_known(host))
    }
}

/// Notes whether the host is known, for the sign-in.
pub(crate) fn mark(web_pages: &WebPages, parts: &mut Parts) {
    if web_pages.has_unknown_host(parts) {
        parts.extensions.insert(UnknownHost);
    }
}

/// Returns whether a browser sends this, for our own page or another one.
pub(crate) fn is_browser(headers: &HeaderMap) -> bool {
    web_headers(headers).is_browser()
}

/// Returns whether a browser says which page sends this: another origin's has been refused then.
pub(crate) fn says_its_origin(headers: &HeaderMap) -> bool {
    let web = web_headers(headers);
    web.origin.is_some() || web.fetch_site.is_some()
}

fn web_headers(headers: &HeaderMap) -> WebHeaders<'_> {
    // What is no text is there all the same, and is none of the harmless values.
    let text = |name: HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    WebHeaders {
        host: text(header::HOST),
        origin: text(header::ORIGIN),
        fetch_site: text(HeaderName::from_static("sec-fetch-site")),
        fetch_mode: text(HeaderName::from_static("sec-fetch-mode")),
        user_agent: text(header::USER_AGENT),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    fn checked(method: &str, headers: &[(&str, &str)], peer: &str) -> Result<bool, bool> {
        let pages = WebPages::new(HostNames::new(&["mq.example.com".to_owned()]));
        let mut request = Request::builder().method(method).uri("/api/overview");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        pages.check(&parts, peer.parse().unwrap()).map_err(|refusal| refusal.is_misdirected)?;
        mark(&pages, &mut parts);
        Ok(parts.extensions.get::<UnknownHost>().is_some())
    }

    #[test]
    fn a_name_that_a_page_could_have_is_refused_from_this_machine() {
        for host in ["localhost:15672", "127.0.0.1:15672", "[::1]", "quelea", "mq.example.com:80"] {
            assert_eq!(checked("PUT", &[("host", host)], "127.0.0.1"), Ok(false), "{host}");
        }
        assert_eq!(checked("GET", &[], "127.0.0.1"), Ok(false), "HTTP/1.0");
        assert_eq!(checked("GET", &[("host", "evil.example:15672")], "127.0.0.1"), Err(true));
        assert_eq!(checked("GET", &[("host", "evil.example")], "::1"), Err(true));
        // From elsewhere it is a cluster's or a proxy's name; guest may not use it.
        assert_eq!(
            checked("GET", &[("host", "quelea.ns.svc.cluster.local")], "10.0.0.9"),
            Ok(true)
        );
    }

    #[test]
    fn a_page_of_another_origin_changes_nothing_and_reads_nothing() {
        let here = ("host", "localhost:15672");
        for foreign in [
            ("origin", "http://evil.example"),
            ("origin", "null"),
            ("origin", "http://localhost:3000"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
        ] {
            for method in ["GET", "PUT", "POST", "DELETE"] {
                for peer in ["127.0.0.1", "192.0.2.1"] {
                    assert_eq!(checked(method, &[here, foreign], peer), Err(false), "{foreign:?}");
                }
            }
        }
        for own in [("origin", "http://localhost:15672"), ("sec-fetch-site", "same-origin")] {
            assert_eq!(checked("PUT", &[here, own], "127.0.0.1"), Ok(false), "{own:?}");
        }
        let link = [here, ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")];
        assert_eq!(checked("GET", &link, "127.0.0.1"), Ok(false));
        assert_eq!(checked("POST", &link, "127.0.0.1"), Err(false));
    }
}
