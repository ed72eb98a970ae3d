//! Names that have been checked once, so that nothing behind them checks again.

use std::fmt;
use std::sync::Arc;

use crate::limits::SHORT_STRING_BYTES_MAX;

/// Why something is not a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Longer than a short string of AMQP.
    #[error("{what} is {len} bytes long, the limit is {SHORT_STRING_BYTES_MAX}")]
    TooLong {
        /// Which kind of name.
        what: &'static str,
        /// Its length in bytes.
        len: usize,
    },
    /// Holds a NUL or another control character that would break logs and clients.
    #[error("{what} holds a control character at byte {at}")]
    Control {
        /// Which kind of name.
        what: &'static str,
        /// Byte offset of the character.
        at: usize,
    },
    /// Empty where a name is needed.
    #[error("{what} is empty")]
    Empty {
        /// Which kind of name.
        what: &'static str,
    },
}

fn check(what: &'static str, name: &str) -> Result<(), NameError> {
    if name.len() > SHORT_STRING_BYTES_MAX {
        return Err(NameError::TooLong { what, len: name.len() });
    }
    match name.bytes().position(|b| b < 0x20 || b == 0x7f) {
        Some(at) => Err(NameError::Control { what, at }),
        None => Ok(()),
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $what:literal, empty: $empty:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks and takes a name.
            ///
            /// # Errors
            /// [`NameError`] if it is too long, holds control characters, or is empty where that
            /// is not allowed.
            pub fn parse(name: &str) -> Result<Self, NameError> {
                check($what, name)?;
                if name.is_empty() && !$empty {
                    return Err(NameError::Empty { what: $what });
                }
                Ok(Self(Arc::from(name)))
            }

            /// Returns the name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    };
}

name!(
    /// A queue's name: 1 to 255 bytes of UTF-8 without control characters.
    QueueName, "queue name", empty: false
);
name!(
    /// An exchange's name: up to 255 bytes; the empty name is the default exchange.
    ExchangeName, "exchange name", empty: true
);
name!(
    /// A virtual host's name: 1 to 255 bytes; `/` exists from the start.
    VhostName, "virtual host name", empty: false
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_empty_or_control_character_name_is_refused() {
        assert!(QueueName::parse("orders").is_ok());
        assert!(ExchangeName::parse("").is_ok());
        assert_eq!(QueueName::parse(""), Err(NameError::Empty { what: "queue name" }));
        assert!(QueueName::parse(&"x".repeat(255)).is_ok());
        assert!(matches!(
            QueueName::parse(&"x".repeat(256)),
            Err(NameError::TooLong { len: 256, .. })
        ));
        assert!(matches!(VhostName::parse("a\0b"), Err(NameError::Control { at: 1, .. })));
    }
}
