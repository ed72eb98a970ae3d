//! The two SASL mechanisms that carry a user name and a password.

use bytes::Bytes;
use quelea_model::{Table, Value};

/// What `connection.start` offers.
pub(crate) const MECHANISMS: &str = "PLAIN AMQPLAIN";

/// How a client sends its credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mechanism {
    /// RFC 4616: three texts, separated by NUL.
    Plain,
    /// RabbitMQ's own: a field table with `LOGIN` and `PASSWORD`.
    AmqPlain,
}

impl Mechanism {
    /// Returns the mechanism of a name that a client chose.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "PLAIN" => Some(Self::Plain),
            "AMQPLAIN" => Some(Self::AmqPlain),
            _ => None,
        }
    }

    /// Returns the mechanism's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "PLAIN",
            Self::AmqPlain => "AMQPLAIN",
        }
    }

    /// Returns the user and password of a response, or `None` if it is malformed.
    #[must_use]
    pub fn credentials(self, response: &[u8]) -> Option<(String, Bytes)> {
        match self {
            Self::Plain => plain(response),
            Self::AmqPlain => amqplain(response),
        }
    }
}

/// Parses a response of PLAIN. The authorization identity, the first of the three, is ignored;
/// RabbitMQ 3.10 wants it empty.
fn plain(response: &[u8]) -> Option<(String, Bytes)> {
    let mut parts = response.split(|octet| *octet == 0);
    let (_, user, password) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    let user = std::str::from_utf8(user).ok()?;
    Some((user.to_owned(), Bytes::copy_from_slice(password)))
}

fn amqplain(response: &[u8]) -> Option<(String, Bytes)> {
    let table = Table::decode(response).ok()?;
    let user = table.get("LOGIN")?.as_text()?.to_owned();
    match table.get("PASSWORD")? {
        Value::LongString(password) => Some((user, password.clone())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use super::*;

    #[test]
    fn plain_is_three_parts() {
        let credentials = Mechanism::Plain.credentials(b"\0guest\0secret");
        assert_eq!(credentials, Some(("guest".to_owned(), Bytes::from_static(b"secret"))));
        assert!(Mechanism::Plain.credentials(b"as\0guest\0secret").is_some());
        for malformed in [&b""[..], b"guest", b"\0guest", b"\0a\0b\0c", b"\0\xff\0b"] {
            assert_eq!(Mechanism::Plain.credentials(malformed), None);
        }
    }

    #[test]
    fn amqplain_is_a_table_without_its_length() {
        let mut table = Table::from_iter([("LOGIN", Value::text("guest"))]);
        let encoded = |table: &Table| {
            let mut out = BytesMut::new();
            table.encode(&mut out);
            out.split_off(4)
        };
        assert_eq!(Mechanism::AmqPlain.credentials(&encoded(&table)), None);
        table.set("PASSWORD", Value::text("secret"));
        let credentials = Mechanism::AmqPlain.credentials(&encoded(&table));
        assert_eq!(credentials, Some(("guest".to_owned(), Bytes::from_static(b"secret"))));
    }
}
