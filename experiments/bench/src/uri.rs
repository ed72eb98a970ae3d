//! `amqp://user:password@host:port/vhost`, with clear words for what is wrong with one.

use std::fmt;
use std::str::FromStr;

/// Where a broker is and who we are there. `Display` leaves the password out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerUri {
    /// User name, default `guest`.
    pub user: String,
    /// Password, default `guest`.
    pub password: String,
    /// Host name or address, IPv6 without its brackets.
    pub host: String,
    /// TCP port, default 5672.
    pub port: u16,
    /// Virtual host, default `/`. A bare trailing slash means `/` too, as nearly everybody who
    /// writes it intends, although the specification of the scheme reads it as the empty name.
    pub vhost: String,
}

/// What is wrong with a URI.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UriError {
    /// Another scheme, or none.
    #[error("'{uri}' does not begin with amqp:// (form: amqp://user:password@host:port/vhost)")]
    NotAmqp {
        /// What was given.
        uri: String,
    },
    /// `amqps`.
    #[error("amqps:// (TLS) is not supported by the load generator; measure over a plain listener")]
    Tls,
    /// Nothing between `//` and the port.
    #[error("the URI names no host")]
    NoHost,
    /// Not a number from 1 to 65535.
    #[error("'{port}' is not a TCP port")]
    Port {
        /// What stands in its place.
        port: String,
    },
    /// `%` without two hexadecimal digits, or bytes that are not UTF-8.
    #[error("'{part}' is not validly percent-encoded")]
    Encoding {
        /// The part of the URI.
        part: String,
    },
    /// A second slash in the path.
    #[error("the virtual host '{path}' has a slash in it; write it as %2f")]
    Slash {
        /// The path without its first slash.
        path: String,
    },
}

impl FromStr for BrokerUri {
    type Err = UriError;

    fn from_str(uri: &str) -> Result<Self, UriError> {
        if uri.starts_with("amqps://") {
            return Err(UriError::Tls);
        }
        let rest =
            uri.strip_prefix("amqp://").ok_or_else(|| UriError::NotAmqp { uri: uri.to_owned() })?;
        // Connection options of client libraries (?heartbeat=…) mean nothing here.
        let rest = rest.split_once('?').map_or(rest, |(before, _)| before);
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, address) = match authority.rsplit_once('@') {
            Some((login, address)) => (login, address),
            None => ("guest:guest", authority),
        };
        let (user, password) = login.split_once(':').unwrap_or((login, ""));
        let (host, port) = split_port(address)?;
        if path.contains('/') {
            return Err(UriError::Slash { path: path.to_owned() });
        }
        Ok(Self {
            user: decode(user)?,
            password: decode(password)?,
            host: decode(host)?,
            port,
            vhost: if path.is_empty() { "/".to_owned() } else { decode(path)? },
        })
    }
}

impl BrokerUri {
    /// Returns the whole URI, for another process: `Display` is for people.
    #[must_use]
    pub fn with_password(&self) -> String {
        let host =
            if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let [user, password, vhost] =
            [&self.user, &self.password, &self.vhost].map(|text| percent_encoded(text));
        format!("amqp://{user}:{password}@{host}:{}/{vhost}", self.port)
    }
}

/// Returns a text with every byte that could mean something in a URI replaced by its number.
#[must_use]
pub fn percent_encoded(text: &str) -> String {
    let encode = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}

impl fmt::Display for BrokerUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let vhost = self.vhost.replace('%', "%25").replace('/', "%2f");
        if self.host.contains(':') {
            write!(f, "amqp://{}@[{}]:{}/{vhost}", self.user, self.host, self.port)
        } else {
            write!(f, "amqp://{}@{}:{}/{vhost}", self.user, self.host, self.port)
        }
    }
}

fn split_port(address: &str) -> Result<(&str, u16), UriError> {
    let (host, port) = if let Some(rest) = address.strip_prefix('[') {
        let (host, port) = rest.split_once(']').ok_or(UriError::NoHost)?;
        (host, port.strip_prefix(':'))
    } else {
        match address.rsplit_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (address, None),
        }
    };
    if host.is_empty() {
        return Err(UriError::NoHost);
    }
    let port = match port {
        None => 5672,
        Some(text) => match text.parse() {
            Ok(0) | Err(_) => return Err(UriError::Port { port: text.to_owned() }),
            Ok(port) => port,
        },
    };
    Ok((host, port))
}

fn decode(part: &str) -> Result<String, UriError> {
    let error = || UriError::Encoding { part: part.to_owned() };
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|b| char::from(b).to_digit(16)).ok_or_else(error);
        let value = digit()? * 16 + digit()?;
        bytes.push(u8::try_from(value).map_err(|_| error())?);
    }
    String::from_utf8(bytes).map_err(|_| error())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(uri: &str) -> Result<BrokerUri, UriError> {
        uri.parse()
    }

    #[test]
    fn every_part_of_a_full_uri_is_found() {
        let uri = parse("amqp://al%40ice:p%3Aw@broker.example:5673/%2fprod?heartbeat=5").unwrap();
        assert_eq!(uri.user, "al@ice");
        assert_eq!(uri.password, "p:w");
        assert_eq!((uri.host.as_str(), uri.port), ("broker.example", 5673));
        assert_eq!(uri.vhost, "/prod");
    }

    #[test]
    fn what_is_left_out_has_the_usual_defaults() {
        for text in ["amqp://h", "amqp://h/", "amqp://guest:guest@h:5672/%2f", "amqp://h:5672/%2F"]
        {
            let uri = parse(text).unwrap();
            let expected = ("guest", "guest", "h", 5672, "/");
            let found = (&*uri.user, &*uri.password, &*uri.host, uri.port, &*uri.vhost);
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn an_ipv6_address_stands_in_brackets() {
        let uri = parse("amqp://[::1]:5673/x").unwrap();
        assert_eq!((uri.host.as_str(), uri.port), ("::1", 5673));
        assert_eq!(uri.to_string(), "amqp://guest@[::1]:5673/x");
        assert_eq!(parse("amqp://[::1]").unwrap().port, 5672);
    }

    #[test]
    fn the_password_is_not_shown() {
        let uri = parse("amqp://u:secret@h/%2f").unwrap();
        assert_eq!(uri.to_string(), "amqp://u@h:5672/%2f");
    }

    #[test]
    fn each_mistake_is_named() {
        let cases = [
            ("localhost:5672", "does not begin with amqp://"),
            ("http://h", "does not begin with amqp://"),
            ("amqps://h", "TLS"),
            ("amqp://", "no host"),
            ("amqp://:5672/", "no host"),
            ("amqp://h:port", "'port' is not a TCP port"),
            ("amqp://h:70000", "'70000' is not a TCP port"),
            ("amqp://h:0", "'0' is not a TCP port"),
            ("amqp://h/a%2", "'a%2' is not validly percent-encoded"),
            ("amqp://%ff@h/", "'%ff' is not validly percent-encoded"),
            ("amqp://h/a/b", "write it as %2f"),
        ];
        for (uri, expected) in cases {
            let error = parse(uri).unwrap_err().to_string();
            assert!(error.contains(expected), "{uri}: {error}");
        }
    }

    #[test]
    fn the_whole_uri_is_read_back_as_it_was() {
        for uri in ["amqp://me:s%40c%2Fret@[::1]:7/a%2Fb", "amqp://h", "amqp://%C3%A9:%25@h:1/"] {
            let parsed: BrokerUri = uri.parse().unwrap();
            assert_eq!(parsed.with_password().parse::<BrokerUri>().unwrap(), parsed, "{uri}");
        }
    }
}
