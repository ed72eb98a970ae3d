//! Where the service is: `http://host:port`.

use std::fmt;
use std::str::FromStr;

/// An SQS endpoint, reached in plain text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Host name or address, IPv6 without its brackets.
    pub host: String,
    /// TCP port; 80 if the URL names none.
    pub port: u16,
    /// What requests are posted to; `/` if the URL names none.
    pub path: String,
}

/// What is wrong with an endpoint's URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// Another scheme, or none.
    #[error("'{url}' does not begin with http:// (form: http://host:port)")]
    NotHttp {
        /// What was given.
        url: String,
    },
    /// `https`.
    #[error("https:// is not supported: put the client beside the service, or a TLS proxy between")]
    Tls,
    /// Nothing between `//` and the port.
    #[error("'{url}' names no host")]
    NoHost {
        /// What was given.
        url: String,
    },
    /// Not a number from 1 to 65535.
    #[error("'{port}' is not a TCP port")]
    Port {
        /// What stands in its place.
        port: String,
    },
    /// A blank, a control character, `?` or `#`.
    #[error("'{url}' has characters that an endpoint cannot have")]
    Characters {
        /// What was given.
        url: String,
    },
}

impl Endpoint {
    /// Returns host and port, as in a `Host` header.
    #[must_use]
    pub fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(url: &str) -> Result<Self, EndpointError> {
        if url.starts_with("https://") {
            return Err(EndpointError::Tls);
        }
        let rest = url
            .strip_prefix("http://")
            .ok_or_else(|| EndpointError::NotHttp { url: url.into() })?;
        // It goes into request heads as it is.
        if rest.chars().any(|c| !c.is_ascii_graphic() || matches!(c, '?' | '#' | '@')) {
            return Err(EndpointError::Characters { url: url.into() });
        }
        let (authority, path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
        let (host, port) = match authority.strip_prefix('[') {
            Some(bracketed) => bracketed
                .split_once(']')
                .map(|(host, port)| (host, port.strip_prefix(':')))
                .ok_or_else(|| EndpointError::NoHost { url: url.into() })?,
            None => authority
                .rsplit_once(':')
                .map_or((authority, None), |(host, port)| (host, Some(port))),
        };
        if host.is_empty() {
            return Err(EndpointError::NoHost { url: url.into() });
        }
        let port = match port.map(str::parse) {
            None => 80,
            Some(Ok(port)) if port > 0 => port,
            Some(_) => return Err(EndpointError::Port { port: port.unwrap_or_default().into() }),
        };
        Ok(Self { host: host.into(), port, path: path.into() })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path == "/" { "" } else { &self.path };
        write!(f, "http://{}{path}", self.authority())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_an_endpoint_are_found() {
        let cases = [
            ("http://localhost:9324", "localhost", 9324, "/"),
            ("http://127.0.0.1:9324/", "127.0.0.1", 9324, "/"),
            ("http://queue.example", "queue.example", 80, "/"),
            ("http://[::1]:4566/sqs", "::1", 4566, "/sqs"),
        ];
        for (url, host, port, path) in cases {
            let endpoint: Endpoint = url.parse().unwrap();
            let found = (endpoint.host.as_str(), endpoint.port, endpoint.path.as_str());
            assert_eq!(found, (host, port, path), "{url}");
            assert_eq!(endpoint.to_string().parse(), Ok(endpoint), "{url}");
        }
        assert_eq!("http://[::1]:4566".parse::<Endpoint>().unwrap().authority(), "[::1]:4566");
    }

    #[test]
    fn each_mistake_is_named() {
        let cases = [
            ("localhost:9324", "does not begin with http://"),
            ("https://sqs.example", "https:// is not supported"),
            ("http://", "names no host"),
            ("http://:9324", "names no host"),
            ("http://h:0", "'0' is not a TCP port"),
            ("http://h:port", "'port' is not a TCP port"),
            ("http://h:1/a b", "cannot have"),
            ("http://h\r\nX: y", "cannot have"),
        ];
        for (url, expected) in cases {
            let error = url.parse::<Endpoint>().unwrap_err().to_string();
            assert!(error.contains(expected), "{url}: {error}");
        }
    }
}
