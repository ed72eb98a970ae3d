//! Values by key, from all sources, each checked against its key's kind and limits.

use std::path::Path;

use serde::Deserialize;
use toml::Value;

use super::key::{Key, Kind, keys};
use super::{Config, ConfigError};

/// What every environment variable of the configuration starts with.
const ENVIRONMENT_PREFIX: &str = "QUELEA__";

/// What was set, checked; sizes are plain integers here.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    table: toml::Table,
}

impl Settings {
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
            let Some(name) = variable.strip_prefix(ENVIRONMENT_PREFIX) else {
                match meant_by(&variable) {
                    Some(meant) => return Err(ConfigError::Underscores { variable, meant }),
                    None => continue,
                }
            };
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
        let value = match find(origin, name)?.kind {
            Kind::List(..) if text.starts_with('[') && text.ends_with(']') => inline(origin, text)?,
            Kind::List(..) => {
                let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
                Value::Array(items.map(Value::from).collect())
            }
            Kind::Flag => text.parse().map_or_else(|_| text.into(), Value::Boolean),
            Kind::Integer(_) => text.parse().map_or_else(|_| text.into(), Value::Integer),
            Kind::Tables(_) => inline(origin, text)?,
            _ => text.into(),
        };
        self.set(origin, name, value)
    }

    fn set(&mut self, origin: &str, name: &str, value: Value) -> Result<(), ConfigError> {
        let value = find(origin, name)?.check(origin, value)?;
        let (table, name) = match name.split_once('.') {
            Some((section, name)) => {
                let section =
                    self.table.entry(section).or_insert_with(|| toml::Table::new().into());
                (section.as_table_mut().expect("no key has the name of a section"), name)
            }
            None => (&mut self.table, name),
        };
        table.insert(name.to_owned(), value);
        Ok(())
    }

    /// Returns the typed configuration.
    pub(crate) fn config(&self) -> Config {
        Config::deserialize(self.table.clone())
            .expect("every value was checked against its key's kind and limits")
    }
}

fn find(origin: &str, name: &str) -> Result<&'static Key, ConfigError> {
    Key::find(name)
        .ok_or_else(|| ConfigError::UnknownKey { origin: origin.to_owned(), name: name.to_owned() })
}

/// Returns the variable that was meant by one that differs in its underscores only, such as
/// `QUELEA_AMQP_LISTEN`.
fn meant_by(variable: &str) -> Option<String> {
    let letters = |name: &str| name.replace(['_', '.'], "").to_lowercase();
    let wanted = letters(variable.strip_prefix("QUELEA_")?);
    let key = keys().iter().find(|key| letters(&key.name) == wanted)?;
    Some(format!("{ENVIRONMENT_PREFIX}{}", key.name.replace('.', "__").to_uppercase()))
}

/// Parses a value that is written as in a TOML file.
fn inline(origin: &str, text: &str) -> Result<Value, ConfigError> {
    let parsed = format!("value = {text}").parse::<toml::Table>();
    let syntax = |reason| ConfigError::Syntax { origin: origin.to_owned(), reason };
    let mut table = parsed.map_err(|error| syntax(error.to_string()))?;
    table.remove("value").ok_or_else(|| syntax(format!("{text:?} is no value")))
}

/// Returns the dotted names and their values, in order.
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

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use quelea_elastic_proto::Named as _;
    use quelea_elastic_relay::ZmtpMechanism;
    use quelea_sqs_protocol::{Consistency, QueueClass};

    use super::*;
    use crate::config::cmq::ForwardMode;

    fn environment(variables: &[(&str, &str)]) -> Result<Config, ConfigError> {
        let mut settings = Settings::default();
        let owned = variables.iter().map(|(name, text)| ((*name).into(), (*text).into()));
        settings.environment(owned)?;
        Ok(settings.config())
    }

    fn toml(text: &str) -> Result<Config, ConfigError> {
        let mut settings = Settings::default();
        settings.toml(text, "quelea.toml")?;
        Ok(settings.config())
    }

    #[test]
    fn without_any_source_the_defaults_hold() {
        assert_eq!(Settings::default().config(), Config::default());
    }

    #[test]
    fn defaults_and_limits_are_values_of_their_keys() {
        for key in keys() {
            let default = key.default.clone().expect("the key of a section has a default");
            key.check("default", default).unwrap();
            if let Kind::Integer(within) | Kind::Size(within) = &key.kind {
                for limit in [within.start(), within.end()] {
                    let mut settings = Settings::default();
                    settings.text("limit", &key.name, &limit.to_string()).unwrap();
                    // Would panic if the field's type were narrower.
                    settings.config();
                }
            }
        }
    }

    #[test]
    fn classes_and_consistencies_have_the_names_of_their_attributes() {
        for class in QueueClass::ALL {
            let config = environment(&[("QUELEA__SQS__DEFAULT_CLASS", class.name())]).unwrap();
            assert_eq!(config.sqs.default_class, class);
        }
        for consistency in Consistency::ALL {
            let config =
                environment(&[("QUELEA__CASSANDRA__CONSISTENCY", consistency.name())]).unwrap();
            assert_eq!(config.cassandra.consistency, consistency);
        }
    }

    #[test]
    fn mechanisms_have_the_names_of_the_relays_option() {
        let entry = "[[elastic.entry]]\nqueue = 'q'";
        let mechanism = |text: &str| toml(text).unwrap().elastic.entry[0].zmtp_security;
        assert_eq!(mechanism(entry), ZmtpMechanism::Null);
        for (name, expected) in ZmtpMechanism::NAMES {
            assert_eq!(mechanism(&format!("{entry}\nzmtp_security = '{name}'")), *expected);
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
    fn a_variable_with_too_few_underscores_is_refused() {
        for variable in ["QUELEA_AMQP_LISTEN", "QUELEA_AMQP__LISTEN"] {
            let error = environment(&[(variable, "127.0.0.1:0")]).unwrap_err().to_string();
            assert!(error.contains(variable) && error.contains("QUELEA__AMQP__LISTEN"), "{error}");
        }
        assert!(environment(&[("QUELEA_CACHE", "not ours")]).is_ok());
    }

    #[test]
    fn a_list_may_be_written_as_in_a_file() {
        let mut settings = Settings::default();
        settings.assignment("amqp.listen=[\"127.0.0.1:0\", \"[::1]:0\"]").unwrap();
        assert_eq!(settings.config().amqp.listen, ["127.0.0.1:0", "[::1]:0"]);
        settings.assignment("amqp.listen=[::1]:0,127.0.0.1:0").unwrap();
        assert_eq!(settings.config().amqp.listen, ["[::1]:0", "127.0.0.1:0"]);
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
        for origin in ["*", "null", "app.example.com", "https://", "https://app.example.com/"] {
            assert_eq!(
                message(toml(&format!("[sqs]\norigins = ['{origin}']"))),
                format!(
                    "quelea.toml: sqs.origins = {origin:?} is not an origin such as \
                     https://app.example.com"
                )
            );
        }
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
        assert_eq!(config.cmq.forward[1].mode, ForwardMode::Lossy);
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
    fn names_lengths_and_counts_are_checked_too() {
        let feed = "[[bridge.feed]]\nexchange = 'x'\nqueue = 'q'\n";
        for (text, error) in [
            (
                "[elastic]\nprovider = 'cloud'",
                "elastic.provider = \"cloud\" is none of \"process\", \"kubernetes\"",
            ),
            (
                "[[cmq.forward]]\nqueue = 'q'\nto = 'h'\nmode = 'fast'",
                "cmq.forward.mode = \"fast\" is none of \"reliable\", \"unordered\", \"lossy\", \
                 \"latest\"",
            ),
            (
                "[[elastic.entry]]\nqueue = 'q'\nzmtp_security = 'gssapi'",
                "elastic.entry.zmtp_security = \"gssapi\" is none of \"null\", \"plain\", \"curve\"",
            ),
            ("[sqs]\nverify = 7", "sqs.verify = 7 is not text"),
            (
                "[[elastic.queue]]\nname = ''",
                "elastic.queue.name = \"\" has 0 bytes, and may have 1 to 255",
            ),
            (
                &format!("{feed}through = ''"),
                "bridge.feed.through = \"\" has 0 bytes, and may have 1 to 255",
            ),
            (
                &format!("{feed}through = 't'\nbinding_keys = []"),
                "bridge.feed.binding_keys has 0 entries, and may have 1 to 10000",
            ),
            (
                "[bridge]\ndirectories = ['here']",
                "bridge.directories = \"here\" is not an address HOST:PORT",
            ),
        ] {
            assert_eq!(toml(text).unwrap_err().to_string(), format!("quelea.toml: {error}"));
        }
        let long = format!("{feed}through = 't'\nbinding_keys = ['{}']", "k".repeat(256));
        let error = toml(&long).unwrap_err().to_string();
        assert!(error.ends_with(" has 256 bytes, and may have 0 to 255"), "{error}");
    }

    #[test]
    fn flags_win_over_the_environment_and_it_over_the_file() {
        let mut settings = Settings::default();
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
