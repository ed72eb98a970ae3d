//! Values by key, from all sources, each checked against its key's type and limits.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::Value;

use super::key::{ENVIRONMENT_PREFIX, Field, KEYS, Key, Kind};
use super::{Config, byte_size};

/// Why a configuration is refused. Every message names where it came from, the key, the value and
/// what would be allowed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    #[error("cannot read {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("{origin}: {reason}")]
    Syntax { origin: String, reason: String },
    #[error("{origin}: there is no key {name:?}{}", suggest(name))]
    UnknownKey { origin: String, name: String },
    #[error("{origin}: {key} = {value} is not {expected}")]
    Type { origin: String, key: &'static str, value: String, expected: &'static str },
    #[error("{origin}: {key} = {value} is not within {min} to {max}")]
    Range { origin: String, key: &'static str, value: String, min: String, max: String },
    #[error("{origin}: {key} is empty")]
    Empty { origin: String, key: &'static str },
    #[error("{origin}: {key} has to be given")]
    Missing { origin: String, key: &'static str },
}

/// Checked values by dotted key; sizes are plain integers here.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    values: BTreeMap<&'static str, Value>,
}

impl Settings {
    /// The defaults.
    pub(crate) fn new() -> Self {
        let table = toml::Table::try_from(Config::default())
            .expect("the default configuration holds only types that TOML knows");
        let mut values = BTreeMap::new();
        for (name, value) in flatten(table) {
            let key = Key::find(&name).expect("every field of Config is listed in KEYS");
            values.insert(key.name, value);
        }
        Self { values }
    }

    /// Overlays a TOML file.
    pub(crate) fn file(&mut self, path: &Path) -> Result<(), ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Unreadable { path: path.to_owned(), source })?;
        self.toml(&text, &path.display().to_string())
    }

    fn toml(&mut self, text: &str, origin: &str) -> Result<(), ConfigError> {
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
            ConfigError::Syntax { origin: origin.to_owned(), reason: error.to_string() }
        })?;
        for (name, value) in flatten(table) {
            self.set(origin, &name, value)?;
        }
        Ok(())
    }

    /// Overlays every variable that starts with `QUELEA__`; lists are separated by commas.
    pub(crate) fn environment(
        &mut self,
        variables: impl Iterator<Item = (String, String)>,
    ) -> Result<(), ConfigError> {
        for (variable, text) in variables {
            let Some(name) = variable.strip_prefix(ENVIRONMENT_PREFIX) else { continue };
            let name = name.to_lowercase().replace("__", ".");
            self.text(&format!("environment variable {variable}"), &name, &text)?;
        }
        Ok(())
    }

    /// Overlays one `KEY=VALUE`, as given by `--set`.
    pub(crate) fn assignment(&mut self, assignment: &str) -> Result<(), ConfigError> {
        let origin = "--set".to_owned();
        let Some((name, text)) = assignment.split_once('=') else {
            let reason = format!("{assignment:?} is not KEY=VALUE");
            return Err(ConfigError::Syntax { origin, reason });
        };
        self.text(&origin, name.trim(), text.trim())
    }

    /// Overlays one key whose value was given as text, as in the environment.
    pub(crate) fn text(&mut self, origin: &str, name: &str, text: &str) -> Result<(), ConfigError> {
        let kind = find(origin, name)?.kind;
        let value = match kind {
            Kind::Text | Kind::Address | Kind::OptionalAddress | Kind::Size { .. } => {
                Value::String(text.to_owned())
            }
            Kind::TextList | Kind::AddressList => {
                let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
                Value::Array(items.map(|item| Value::String(item.to_owned())).collect())
            }
            Kind::Flag => text.parse().map_or_else(|_| text.into(), Value::Boolean),
            Kind::Integer { .. } => text.parse().map_or_else(|_| text.into(), Value::Integer),
            Kind::Tables(_) => inline(origin, text)?,
        };
        self.set(origin, name, value)
    }

    fn set(&mut self, origin: &str, name: &str, value: Value) -> Result<(), ConfigError> {
        let key = find(origin, name)?;
        self.values.insert(key.name, check(origin, key, value)?);
        Ok(())
    }

    /// The value of a key as the reference and `--show` print it: TOML, sizes with their unit.
    pub(crate) fn show(&self, key: &Key) -> String {
        let value = &self.values[key.name];
        match (key.kind, value) {
            (Kind::Size { .. }, Value::Integer(bytes)) => {
                format!("\"{}\"", byte_size::format(*bytes as u64))
            }
            _ => value.to_string(),
        }
    }

    /// The typed configuration.
    pub(crate) fn config(&self) -> Config {
        let mut root = toml::Table::new();
        for (name, value) in &self.values {
            match name.split_once('.') {
                Some((section, key)) => {
                    let section = root
                        .entry(section)
                        .or_insert_with(|| Value::Table(toml::Table::new()))
                        .as_table_mut()
                        .expect("no key has the name of a section");
                    section.insert(key.to_owned(), value.clone());
                }
                None => {
                    root.insert((*name).to_owned(), value.clone());
                }
            }
        }
        Config::deserialize(root).expect("every value was checked against its key's type and range")
    }
}

fn find(origin: &str, name: &str) -> Result<&'static Key, ConfigError> {
    Key::find(name)
        .ok_or_else(|| ConfigError::UnknownKey { origin: origin.to_owned(), name: name.to_owned() })
}

/// Checks type and range; gives sizes as integers.
fn check(origin: &str, key: &'static Key, value: Value) -> Result<Value, ConfigError> {
    let wrong = |value: &Value, expected| {
        let (origin, value) = (origin.to_owned(), value.to_string());
        Err(ConfigError::Type { origin, key: key.name, value, expected })
    };
    match (key.kind, &value) {
        (Kind::Text, Value::String(_)) | (Kind::Flag, Value::Boolean(_)) => Ok(value),
        (Kind::Address, Value::String(text)) if is_address(text) => Ok(value),
        (Kind::OptionalAddress, Value::String(text)) if text.is_empty() || is_address(text) => {
            Ok(value)
        }
        (Kind::TextList, Value::Array(items)) if items.iter().all(Value::is_str) => Ok(value),
        (Kind::AddressList, Value::Array(items)) => {
            if items.is_empty() {
                return Err(ConfigError::Empty { origin: origin.to_owned(), key: key.name });
            }
            match items.iter().find(|item| !item.as_str().is_some_and(is_address)) {
                Some(item) => wrong(item, "an address HOST:PORT"),
                None => Ok(value),
            }
        }
        (Kind::Integer { min, max }, Value::Integer(number)) => {
            ranged(origin, key, *number, min, max, |number| number.to_string())
        }
        (Kind::Size { min, max }, Value::Integer(bytes)) => {
            ranged(origin, key, *bytes, min, max, byte_size::format)
        }
        (Kind::Size { min, max }, Value::String(text)) => match byte_size::parse(text) {
            Some(bytes) => {
                let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
                ranged(origin, key, bytes, min, max, byte_size::format)
            }
            None => wrong(&value, "a size such as 65536 or 64MiB"),
        },
        (Kind::Tables(fields), Value::Array(items)) => {
            let tables = items.iter().map(|item| match item {
                Value::Table(table) => check_table(origin, key, fields, table),
                other => wrong(other, "a table"),
            });
            Ok(Value::Array(tables.collect::<Result<_, _>>()?))
        }
        (kind, _) => wrong(&value, kind.expected()),
    }
}

/// Checks a table of a list; gives it with the defaults of what it lacks.
fn check_table(
    origin: &str,
    key: &'static Key,
    fields: &'static [Field],
    table: &toml::Table,
) -> Result<Value, ConfigError> {
    let mut checked = toml::Table::new();
    for (name, value) in table {
        let dotted = format!("{}.{name}", key.name);
        let Some(field) = fields.iter().find(|field| field.key.name == dotted) else {
            return Err(ConfigError::UnknownKey { origin: origin.to_owned(), name: dotted });
        };
        checked.insert(name.clone(), check(origin, &field.key, value.clone())?);
    }
    for Field { key: field, default } in fields {
        let (_, name) = field.name.rsplit_once('.').expect("a field's name begins with its list's");
        if checked.contains_key(name) {
            continue;
        }
        let Some(default) = default else {
            return Err(ConfigError::Missing { origin: origin.to_owned(), key: field.name });
        };
        checked.insert(name.to_owned(), inline("default", default)?);
    }
    Ok(Value::Table(checked))
}

/// A value that is written as in a TOML file.
fn inline(origin: &str, text: &str) -> Result<Value, ConfigError> {
    let parsed = format!("value = {text}").parse::<toml::Table>();
    let syntax = |reason| ConfigError::Syntax { origin: origin.to_owned(), reason };
    let mut table = parsed.map_err(|error| syntax(error.to_string()))?;
    table.remove("value").ok_or_else(|| syntax(format!("{text:?} is no value")))
}

fn ranged(
    origin: &str,
    key: &'static Key,
    number: i64,
    min: u64,
    max: u64,
    show: impl Fn(u64) -> String,
) -> Result<Value, ConfigError> {
    match u64::try_from(number) {
        Ok(unsigned) if (min..=max).contains(&unsigned) => Ok(Value::Integer(number)),
        _ => Err(ConfigError::Range {
            origin: origin.to_owned(),
            key: key.name,
            value: number.to_string(),
            min: show(min),
            max: show(max),
        }),
    }
}

pub(crate) fn is_address(text: &str) -> bool {
    text.rsplit_once(':')
        .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
}

impl Kind {
    /// What a value of this kind is, in words.
    pub(crate) const fn expected(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::TextList => "a list of texts",
            Self::Address => "an address HOST:PORT",
            Self::OptionalAddress => "an address HOST:PORT, or empty",
            Self::AddressList => "a list of addresses HOST:PORT",
            Self::Flag => "true or false",
            Self::Integer { .. } => "an integer",
            Self::Size { .. } => "a size such as 65536 or 64MiB",
            Self::Tables(_) => "a list of tables",
        }
    }
}

/// Dotted names and their values, in order.
fn flatten(table: toml::Table) -> Vec<(String, Value)> {
    let mut flat = Vec::new();
    for (name, value) in table {
        match value {
            Value::Table(section) => {
                let inner = flatten(section);
                flat.extend(inner.into_iter().map(|(key, value)| (format!("{name}.{key}"), value)));
            }
            value => flat.push((name, value)),
        }
    }
    flat
}

/// The key that was probably meant: same last part, or the one that starts most alike.
fn suggest(name: &str) -> String {
    let last = |name: &str| name.rsplit('.').next().unwrap_or_default().to_owned();
    let same = KEYS.iter().find(|key| last(key.name) == last(name));
    let fields = KEYS.iter().flat_map(|key| match key.kind {
        Kind::Tables(fields) => fields,
        _ => &[],
    });
    let common = |key: &Key| key.name.bytes().zip(name.bytes()).take_while(|(a, b)| a == b).count();
    let alike = KEYS.iter().chain(fields.map(|field| &field.key)).filter(|key| {
        let section = key.name.rfind('.').map_or(0, |dot| dot + 1);
        common(key) > section + 2
    });
    let meant = same.or_else(|| alike.max_by_key(|key| common(key)));
    meant.map_or_else(String::new, |key| format!(" (did you mean {:?}?)", key.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(variables: &[(&str, &str)]) -> Result<Config, ConfigError> {
        let mut settings = Settings::new();
        let owned = variables.iter().map(|(name, text)| ((*name).into(), (*text).into()));
        settings.environment(owned)?;
        Ok(settings.config())
    }

    fn toml(text: &str) -> Result<Config, ConfigError> {
        let mut settings = Settings::new();
        settings.toml(text, "quelea.toml")?;
        Ok(settings.config())
    }

    #[test]
    fn without_any_source_the_defaults_hold() {
        assert_eq!(Settings::new().config(), Config::default());
        assert_eq!(Settings::new().values.len(), KEYS.len());
    }

    #[test]
    fn the_defaults_lie_within_their_own_limits() {
        let settings = Settings::new();
        for key in KEYS {
            check("default", key, settings.values[key.name].clone()).unwrap();
        }
    }

    #[test]
    fn a_file_sets_keys_by_section_and_leaves_the_rest() {
        let config = toml(
            "data_dir = '/srv/q'\n[amqp]\nlisten = ['0.0.0.0:5672', '[::1]:0']\n[log]\n\
             segment_bytes = '16 MiB'\n",
        )
        .unwrap();
        assert_eq!(config.data_dir, PathBuf::from("/srv/q"));
        assert_eq!(config.amqp.listen, ["0.0.0.0:5672", "[::1]:0"]);
        assert_eq!(config.log.segment_bytes, 16 << 20);
        assert_eq!(config.amqp.heartbeat_s, Config::default().amqp.heartbeat_s);
    }

    #[test]
    fn the_environment_sets_every_type() {
        let config = environment(&[
            ("QUELEA__DATA_DIR", "/tmp/x"),
            ("QUELEA__AMQP__LISTEN", "127.0.0.1:0, 127.0.0.2:0"),
            ("QUELEA__AMQP__HEARTBEAT_S", "5"),
            ("QUELEA__HTTP__ENABLED", "false"),
            ("QUELEA__LIMITS__RESIDENT_BYTES_MAX", "128MiB"),
            ("QUELEA__ACCESS__LOOPBACK_USERS", ""),
            ("QUELEA_KILL_CYCLES", "not ours"),
        ])
        .unwrap();
        assert_eq!(config.amqp.listen, ["127.0.0.1:0", "127.0.0.2:0"]);
        assert_eq!(config.amqp.heartbeat_s, 5);
        assert!(!config.http.enabled);
        assert_eq!(config.limits.resident_bytes_max, 128 << 20);
        assert!(config.access.loopback_users.is_empty());
    }

    #[test]
    fn an_error_names_the_source_the_key_the_value_and_the_limit() {
        let message = |result: Result<Config, ConfigError>| result.unwrap_err().to_string();
        assert_eq!(
            message(environment(&[("QUELEA__AMQP__FRAME_MAX", "100")])),
            "environment variable QUELEA__AMQP__FRAME_MAX: amqp.frame_max = 100 is not within 4KiB \
             to 16MiB"
        );
        assert_eq!(
            message(environment(&[("QUELEA__AMQP__HEARTBEAT_S", "soon")])),
            "environment variable QUELEA__AMQP__HEARTBEAT_S: amqp.heartbeat_s = \"soon\" is not an \
             integer"
        );
        assert_eq!(
            message(toml("[amqp]\nhearbeat_s = 1")),
            "quelea.toml: there is no key \"amqp.hearbeat_s\" (did you mean \"amqp.heartbeat_s\"?)"
        );
        assert_eq!(message(toml("[amqp]\nlisten = []")), "quelea.toml: amqp.listen is empty");
        assert_eq!(
            message(toml("[amqp]\nlisten = ['5672']")),
            "quelea.toml: amqp.listen = \"5672\" is not an address HOST:PORT"
        );
        assert_eq!(
            message(toml("[log]\nsegment_bytes = -1")),
            "quelea.toml: log.segment_bytes = -1 is not within 1MiB to 1GiB"
        );
        assert!(message(toml("[amqp")).starts_with("quelea.toml: TOML parse error"));
    }

    #[test]
    fn a_list_of_tables_is_checked_field_by_field() {
        let config = toml(
            "[cmq]\nlisten = '127.0.0.1:4711'\n[[cmq.route]]\nmailboxes = '7'\nexchange = 'x'\n\
             [[cmq.forward]]\nqueue = 'q'\nto = '[::1]:4711/3'\nprefetch = 5\n",
        )
        .unwrap();
        assert_eq!(config.cmq.route[0].mailboxes, "7");
        assert_eq!(config.cmq.route[0].exchange, "x");
        assert_eq!(config.cmq.route[0].routing_key, "cmq.{mailbox}");
        assert_eq!((config.cmq.forward[0].prefetch, config.cmq.forward[0].timeout_ms), (5, 10_000));
        let text = "[{queue='a',to='h'},{queue='b',to='h',mode='lossy'}]";
        let config = environment(&[("QUELEA__CMQ__FORWARD", text)]).unwrap();
        assert_eq!(config.cmq.forward[1].mode, "lossy");
        for (text, error) in [
            ("[[cmq.forward]]\nqueue = 'q'", "quelea.toml: cmq.forward.to has to be given"),
            (
                "[[cmq.forward]]\nqueue = 'q'\nto = 'h'\nprefetch = 0",
                "quelea.toml: cmq.forward.prefetch = 0 is not within 1 to 65535",
            ),
            (
                "[[cmq.route]]\nmailbox = '7'",
                "quelea.toml: there is no key \"cmq.route.mailbox\" (did you mean \
                 \"cmq.route.mailboxes\"?)",
            ),
            ("[cmq]\nroute = 7", "quelea.toml: cmq.route = 7 is not a list of tables"),
            ("[cmq]\nroute = [7]", "quelea.toml: cmq.route = 7 is not a table"),
        ] {
            assert_eq!(toml(text).unwrap_err().to_string(), error);
        }
    }

    #[test]
    fn flags_win_over_the_environment_and_it_over_the_file() {
        let mut settings = Settings::new();
        settings.toml("data_dir = 'file'\n[amqp]\nheartbeat_s = 1", "quelea.toml").unwrap();
        let variable = ("QUELEA__DATA_DIR".to_owned(), "environment".to_owned());
        settings.environment(std::iter::once(variable)).unwrap();
        assert_eq!(settings.config().data_dir, PathBuf::from("environment"));
        settings.assignment("data_dir = flag").unwrap();
        assert_eq!(settings.config().data_dir, PathBuf::from("flag"));
        assert_eq!(settings.config().amqp.heartbeat_s, 1);
        assert!(settings.assignment("nonsense").is_err());
    }
}
