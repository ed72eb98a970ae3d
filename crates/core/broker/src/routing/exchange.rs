//! Exchanges: what a client declares, and why that fails.
//!
//! Each type's rule stands in a file of its own; [`super::router`] joins them.

pub(crate) mod direct;
pub(crate) mod fanout;
pub(crate) mod headers;
pub(crate) mod targets;
pub(crate) mod topic;

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasherDefault, DefaultHasher};

use quelea_model::{ExchangeName, Table, Value, VhostName};

use crate::error::ExchangeError;
pub use crate::error::{RouteError, UnknownExchangeType};

/// The prefix that only the broker may give to new names (AMQP 0-9-1 §1.5, `amq.`).
pub const RESERVED_PREFIX: &str = "amq.";

/// The argument that names where an exchange sends what it cannot route.
pub const ALTERNATE_EXCHANGE: &str = "alternate-exchange";

/// A map by text that clients choose. Its hash (SipHash with a fixed key: no randomness here) is
/// slower than the one for our own numbers, but nobody makes names collide by the thousand.
pub(crate) type ByText<K, V> = HashMap<K, V, BuildHasherDefault<DefaultHasher>>;

/// How an exchange chooses among its bindings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ExchangeKind {
    /// The routing key equals the binding's.
    Direct,
    /// Every binding.
    Fanout,
    /// The routing key's words fit the binding's pattern of words, `*` and `#`.
    Topic,
    /// The message's headers fit the binding's arguments.
    Headers,
}

impl ExchangeKind {
    /// All types.
    pub const ALL: [Self; 4] = [Self::Direct, Self::Fanout, Self::Topic, Self::Headers];

    /// Finds a type by the name that `exchange.declare` carries.
    ///
    /// # Errors
    /// [`UnknownExchangeType`] with the name.
    pub fn parse(name: &str) -> Result<Self, UnknownExchangeType> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.as_str() == name)
            .ok_or_else(|| UnknownExchangeType { kind: Box::from(name) })
    }

    /// Returns the name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Fanout => "fanout",
            Self::Topic => "topic",
            Self::Headers => "headers",
        }
    }
}

impl fmt::Display for ExchangeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What makes an exchange: the content of `exchange.declare`.
#[derive(Clone, Debug, PartialEq)]
pub struct ExchangeSpec {
    /// Its name; empty for the default exchange alone.
    pub name: ExchangeName,
    /// Its type.
    pub kind: ExchangeKind,
    /// Whether it survives a restart.
    pub durable: bool,
    /// Whether it goes when its last binding as a source goes.
    pub auto_delete: bool,
    /// Whether only other exchanges may publish to it.
    pub internal: bool,
    /// Arguments as declared; [`ALTERNATE_EXCHANGE`] is the one that counts.
    pub arguments: Table,
}

impl ExchangeSpec {
    /// Returns the exchange that takes what this one cannot route; `None` too if the argument is no
    /// text, which [`ExchangeSpec::check_arguments`] refuses beforehand.
    #[must_use]
    pub fn alternate(&self) -> Option<&str> {
        self.arguments.get(ALTERNATE_EXCHANGE).and_then(Value::as_text)
    }

    /// Checks the types of the arguments that have a meaning.
    ///
    /// # Errors
    /// [`ExchangeError::ArgumentType`].
    pub fn check_arguments(&self, vhost: &VhostName) -> Result<(), ExchangeError> {
        match self.arguments.get(ALTERNATE_EXCHANGE) {
            None | Some(Value::LongString(_)) => Ok(()),
            Some(value) => Err(ExchangeError::ArgumentType {
                exchange: self.name.clone(),
                vhost: vhost.clone(),
                argument: ALTERNATE_EXCHANGE,
                found: value.type_name(),
            }),
        }
    }
}
