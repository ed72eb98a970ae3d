//! Whether a value is what its key may be, and what is said if it is not.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use quelea_model::byte_size;
use toml::Value;

use super::address::{is_address, is_origin};
use super::key::{Key, Kind};

/// Why a configuration is refused. Every message names where it came from, the key, the value and
/// what would be allowed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    #[error("cannot read {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("{origin}: {reason}")]
    Syntax { origin: String, reason: String },
    #[error("{origin}: there is no key {name:?}{}", suggestion(name))]
    UnknownKey { origin: String, name: String },
    #[error("environment variable {variable} sets nothing: it is written {meant}")]
    Underscores { variable: String, meant: String },
    #[error("{origin}: {key} {fault}")]
    Value { origin: String, key: &'static str, fault: Box<Fault> },
}

/// What is wrong with the value of a key.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    #[error("= {value} is not {expected}")]
    Type { value: Value, expected: &'static str },
    #[error("= {value} is none of {}", quoted(allowed))]
    Choice { value: Value, allowed: &'static [String] },
    #[error("= {value} is not within {min} to {max}")]
    Range { value: Value, min: String, max: String },
    #[error("= {value} has {bytes} bytes, and may have {} to {}", within.start(), within.end())]
    Length { value: Value, bytes: u64, within: &'static RangeInclusive<u64> },
    #[error("has {count} entries, and may have {} to {}", within.start(), within.end())]
    Count { count: u64, within: &'static RangeInclusive<u64> },
    #[error("is empty")]
    Empty,
    #[error("has to be given")]
    Missing,
}

impl Key {
    /// Checks type and limits; returns the value with sizes as integers.
    ///
    /// # Errors
    /// [`ConfigError`] with this origin.
    pub(super) fn check(&'static self, origin: &str, value: Value) -> Result<Value, ConfigError> {
        let refuse = |fault| {
            let (origin, key) = (origin.to_owned(), self.name.as_str());
            ConfigError::Value { origin, key, fault: Box::new(fault) }
        };
        match (&self.kind, value) {
            (Kind::Tables(fields), Value::Array(items)) => {
                let tables = items.into_iter().map(|item| match item {
                    Value::Table(table) => check_table(origin, &self.name, fields, table),
                    value => Err(refuse(Fault::Type { value, expected: "a table" })),
                });
                Ok(Value::Array(tables.collect::<Result<_, _>>()?))
            }
            (kind, value) => kind.check(value).map_err(refuse),
        }
    }
}

fn check_table(
    origin: &str,
    name: &str,
    fields: &'static [Key],
    table: toml::Table,
) -> Result<Value, ConfigError> {
    let mut checked = toml::Table::new();
    for (field, value) in table {
        let dotted = format!("{name}.{field}");
        let Some(key) = fields.iter().find(|key| key.name == dotted) else {
            return Err(ConfigError::UnknownKey { origin: origin.to_owned(), name: dotted });
        };
        checked.insert(field, key.check(origin, value)?);
    }
    let is_given =
        |key: &Key| key.name.rsplit_once('.').is_some_and(|(_, field)| checked.contains_key(field));
    match fields.iter().find(|key| key.default.is_none() && !is_given(key)) {
        Some(key) => {
            let (origin, key) = (origin.to_owned(), key.name.as_str());
            Err(ConfigError::Value { origin, key, fault: Box::new(Fault::Missing) })
        }
        None => Ok(Value::Table(checked)),
    }
}

impl Kind {
    fn check(&'static self, value: Value) -> Result<Value, Fault> {
        match (self, value) {
            (Self::Flag, value @ Value::Boolean(_)) => Ok(value),
            (Self::Integer(within), Value::Integer(number)) => {
                ranged(number, within, |number| number.to_string())
            }
            (Self::Size(within), Value::Integer(bytes)) => ranged(bytes, within, byte_size::format),
            (Self::Size(within), Value::String(text)) => match byte_size::parse(&text) {
                Ok(bytes) => {
                    ranged(i64::try_from(bytes).unwrap_or(i64::MAX), within, byte_size::format)
                }
                Err(_) => Err(self.is_expected_not(Value::String(text))),
            },
            (Self::List(item, within), Value::Array(items)) => {
                let count = items.len() as u64;
                match within.contains(&count) {
                    true => {
                        let items = items.into_iter().map(|value| item.check(value));
                        Ok(Value::Array(items.collect::<Result<_, _>>()?))
                    }
                    false if *within.end() == i64::MAX as u64 => Err(Fault::Empty),
                    false => Err(Fault::Count { count, within }),
                }
            }
            (kind, Value::String(text)) => kind.check_text(text),
            (kind, value) => Err(kind.is_expected_not(value)),
        }
    }

    fn check_text(&'static self, text: String) -> Result<Value, Fault> {
        let (bytes, value) = (text.len() as u64, Value::String(text.clone()));
        match self {
            Self::Text(within) if within.contains(&bytes) => Ok(value),
            Self::Text(within) => Err(Fault::Length { value, bytes, within }),
            Self::Choice(names) if names.contains(&text) => Ok(value),
            Self::Choice(allowed) => Err(Fault::Choice { value, allowed }),
            Self::Address if is_address(&text) => Ok(value),
            Self::OptionalAddress if text.is_empty() || is_address(&text) => Ok(value),
            Self::Origin if is_origin(&text) => Ok(value),
            _ => Err(self.is_expected_not(value)),
        }
    }

    const fn is_expected_not(&self, value: Value) -> Fault {
        let expected = match self {
            Self::Text(_) | Self::Choice(_) => "text",
            Self::Address => "an address HOST:PORT",
            Self::OptionalAddress => "an address HOST:PORT, or empty",
            Self::Origin => "an origin such as https://app.example.com",
            Self::Flag => "true or false",
            Self::Integer(_) => "an integer",
            Self::Size(_) => "a size such as 65536 or 64MiB",
            Self::List(item, _) => match **item {
                Self::Address => "a list of addresses HOST:PORT",
                _ => "a list of texts",
            },
            Self::Tables(_) => "a list of tables",
        };
        Fault::Type { value, expected }
    }
}

fn ranged(
    number: i64,
    within: &RangeInclusive<u64>,
    show: impl Fn(u64) -> String,
) -> Result<Value, Fault> {
    let value = Value::Integer(number);
    match u64::try_from(number) {
        Ok(unsigned) if within.contains(&unsigned) => Ok(value),
        _ => Err(Fault::Range { value, min: show(*within.start()), max: show(*within.end()) }),
    }
}

fn suggestion(name: &str) -> String {
    let nearest = Key::nearest(name);
    nearest.map_or_else(String::new, |key| format!(" (did you mean {:?}?)", key.name))
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ")
}
