//! Whether a request may come from a web page that is not ours. A browser sends requests for any page to any
//! address that it reaches, loopback included, and says so in its headers; a page whose own name is made to point
//! at us (DNS rebinding) gives itself away by that name, which stands in `Host`.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

/// Where this machine's name is (proc(5)).
const HOST_NAME_FILE: &str = "/proc/sys/kernel/hostname";

/// By which names a front may be asked for. No page can have these: addresses, `localhost` and names below it, names
/// without a dot (of containers, say, which no public name is), this machine's own name, and those that are
/// configured.
#[derive(Clone, Debug, Default)]
pub struct HostNames {
    configured: Arc<[String]>,
    own: Arc<str>,
}

impl HostNames {
    /// Returns the names of this server. `configured` are names without port; a leading `*.` stands
    /// for all names below.
    #[must_use]
    pub fn new(configured: &[String]) -> Self {
        let configured = configured.iter().map(|name| plain(name)).collect();
        // Without a name of its own there is one name less.
        let own = std::fs::read_to_string(HOST_NAME_FILE).unwrap_or_default();
        Self { configured, own: plain(own.trim()).into() }
    }

    /// Returns whether the value of a header `Host` names this server for sure.
    #[must_use]
    pub fn is_known(&self, host: &str) -> bool {
        let name = plain(name_of(host));
        if is_address(&name) || is_label(&name) {
            return true;
        }
        let is = |known: &str| match known.strip_prefix("*.") {
            Some(above) => name.strip_suffix(above).is_some_and(|below| below.ends_with('.')),
            None => name == known,
        };
        is("*.localhost") || *self.own == *name || self.configured.iter().any(|known| is(known))
    }
}

/// Returns the host without its port.
fn name_of(host: &str) -> &str {
    // Colons of an address of IPv6 stand within brackets.
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

/// Returns a name in small letters, without the dot that ends a whole name.
fn plain(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

fn is_label(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    !name.is_empty() && name.bytes().all(is_part)
}

fn is_address(name: &str) -> bool {
    let inner = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    match inner {
        Some(inner) => inner.parse::<Ipv6Addr>().is_ok(),
        None => name.parse::<IpAddr>().is_ok(),
    }
}

/// What a request's headers say of the page that sends it.
#[derive(Clone, Copy, Debug, Default)]
pub struct WebHeaders<'a> {
    /// `Host`.
    pub host: Option<&'a str>,
    /// `Origin`; a value that is no text is given as an empty one.
    pub origin: Option<&'a str>,
    /// `Sec-Fetch-Site`, as `Origin`.
    pub fetch_site: Option<&'a str>,
    /// `Sec-Fetch-Mode`, as `Origin`.
    pub fetch_mode: Option<&'a str>,
    /// `User-Agent`.
    pub user_agent: Option<&'a str>,
}

impl<'a> WebHeaders<'a> {
    /// Returns the header by which a page of another origin gives itself away. That the host of the
    /// origin is the one that is asked for proves something only if that
    /// [is known](HostNames::is_known).
    #[must_use]
    pub fn foreign(&self) -> Option<&'static str> {
        // The user has entered the address, or the page came from here.
        if self.fetch_site.is_some_and(|site| site != "none" && site != "same-origin") {
            return Some("Sec-Fetch-Site");
        }
        let is_foreign = |origin: &str| match origin.split_once("://") {
            Some((_, authority)) => {
                self.host.is_none_or(|host| !authority.eq_ignore_ascii_case(host))
            }
            None => true,
        };
        self.origin.is_some_and(is_foreign).then_some("Origin")
    }

    /// Returns whether a browser sends it: browsers have had `Sec-Fetch-…` since 2023, and this
    /// beginning of their name since 1994.
    #[must_use]
    pub fn is_browser(&self) -> bool {
        self.origin.is_some()
            || self.fetch_site.is_some()
            || self.fetch_mode.is_some()
            || self.user_agent.is_some_and(|agent| agent.starts_with("Mozilla/"))
    }

    /// Returns whether the user follows a link or enters an address, so that no page learns the
    /// answer.
    #[must_use]
    pub fn is_navigation(&self) -> bool {
        self.origin.is_none() && self.fetch_mode == Some("navigate")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_page_can_have_the_name_of_a_known_host() {
        let mut hosts =
            HostNames::new(&["Queue.Example.com".to_owned(), "*.corp.example".to_owned()]);
        hosts.own = "box.lan".into();
        for known in [
            "127.0.0.1",
            "127.0.0.1:15672",
            "10.1.2.3:80",
            "[::1]:15672",
            "[2001:db8::1]",
            "localhost",
            "LocalHost:9324",
            "localhost.",
            "sqs.localhost:9324",
            "quelea",
            "rabbitmq:15672",
            "queue.example.com:15672",
            "queue.example.com.",
            "a.corp.example",
            "box.lan:9324",
        ] {
            assert!(hosts.is_known(known), "{known}");
        }
        for unknown in [
            "",
            ":80",
            "evil.example",
            "evil.example:15672",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "xlocalhost.com",
            "evil.example.",
            "corp.example",
            "evilcorp.example",
            "example.com",
            "[::1].evil.example",
        ] {
            assert!(!hosts.is_known(unknown), "{unknown}");
        }
    }

    #[test]
    fn a_page_of_another_origin_gives_itself_away() {
        let here = WebHeaders { host: Some("localhost:15672"), ..WebHeaders::default() };
        assert_eq!(here.foreign(), None);
        for (site, foreign) in [
            ("none", None),
            ("same-origin", None),
            ("same-site", Some("Sec-Fetch-Site")),
            ("cross-site", Some("Sec-Fetch-Site")),
            ("", Some("Sec-Fetch-Site")),
        ] {
            assert_eq!(WebHeaders { fetch_site: Some(site), ..here }.foreign(), foreign, "{site}");
        }
        for (origin, foreign) in [
            ("http://localhost:15672", None),
            ("http://localhost:3000", Some("Origin")),
            ("https://evil.example", Some("Origin")),
            ("null", Some("Origin")),
            ("", Some("Origin")),
        ] {
            assert_eq!(WebHeaders { origin: Some(origin), ..here }.foreign(), foreign, "{origin}");
        }
    }

    #[test]
    fn a_browser_is_known_by_its_name_or_its_headers() {
        let none = WebHeaders::default();
        assert!(!none.is_browser());
        assert!(!WebHeaders { user_agent: Some("curl/8.9.1"), ..none }.is_browser());
        assert!(!WebHeaders { user_agent: Some("Boto3/1.40 md/Botocore"), ..none }.is_browser());
        assert!(WebHeaders { user_agent: Some("Mozilla/5.0 (X11)"), ..none }.is_browser());
        assert!(WebHeaders { fetch_mode: Some("no-cors"), ..none }.is_browser());
        let link = WebHeaders { fetch_site: Some("cross-site"), ..none };
        assert!(!link.is_navigation());
        assert!(WebHeaders { fetch_mode: Some("navigate"), ..link }.is_navigation());
    }
}
