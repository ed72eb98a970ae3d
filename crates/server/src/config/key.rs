//! Every configuration key with its kind, limits, default and meaning, read from the schema of
//! [`Config`]. Here is the one place that knows how a field's type and attributes look in it.

use std::ops::RangeInclusive;
use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::Config;
use super::address::{Address, OptionalAddress, Origin};
use super::byte_size::ByteSize;

/// One key.
#[derive(Debug)]
pub(super) struct Key {
    /// Dotted, as in `amqp.listen`.
    pub(super) name: String,
    pub(super) kind: Kind,
    /// For the reference, in one line.
    pub(super) meaning: String,
    /// `None`: it has to be given.
    pub(super) default: Option<toml::Value>,
}

/// What a value may be.
#[derive(Debug)]
pub(super) enum Kind {
    /// Of so many bytes.
    Text(RangeInclusive<u64>),
    /// One of these names.
    Choice(Vec<String>),
    /// `HOST:PORT`; port 0 takes a free one.
    Address,
    /// The same, or empty for none.
    OptionalAddress,
    /// `SCHEME://HOST[:PORT]`, of a web page.
    Origin,
    Flag,
    Integer(RangeInclusive<u64>),
    /// Bytes, with an optional unit.
    Size(RangeInclusive<u64>),
    /// So many of the same kind.
    List(Box<Self>, RangeInclusive<u64>),
    /// A list of tables, each with these keys: `[[section.key]]` in the file.
    Tables(Vec<Key>),
}

/// Returns all keys in the order of the reference: sections together.
pub(super) fn keys() -> &'static [Key] {
    static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| {
        // As it is written every field is required, which keeps the order of the source.
        let settings = SchemaSettings::default().for_serialize();
        let settings = settings.with(|settings| settings.inline_subschemas = true);
        let schema = settings.into_generator().into_root_schema_for::<Config>();
        Key::all("", schema.as_value())
    });
    &KEYS
}

impl Key {
    /// Returns the key of that dotted name.
    pub(super) fn find(name: &str) -> Option<&'static Self> {
        keys().iter().find(|key| key.name == name)
    }

    /// Returns the key that was probably meant: same last part, or the one that starts most alike.
    pub(super) fn nearest(name: &str) -> Option<&'static Self> {
        let last = |name: &str| name.rsplit('.').next().unwrap_or_default().to_owned();
        let same = keys().iter().find(|key| last(&key.name) == last(name));
        let fields = keys().iter().flat_map(|key| match &key.kind {
            Kind::Tables(fields) => fields.as_slice(),
            _ => &[],
        });
        let common =
            |key: &Self| key.name.bytes().zip(name.bytes()).take_while(|(a, b)| a == b).count();
        let alike = keys().iter().chain(fields).filter(|key| {
            let section = key.name.rfind('.').map_or(0, |dot| dot + 1);
            common(key) > section + 2
        });
        same.or_else(|| alike.max_by_key(|key| common(key)))
    }

    /// Returns the fields of a structure, and of the sections in it.
    fn all(prefix: &str, structure: &Value) -> Vec<Self> {
        let mut keys = Vec::new();
        for field in structure["required"].as_array().into_iter().flatten() {
            let field = field.as_str().unwrap_or_default();
            let (name, schema) = (format!("{prefix}{field}"), &structure["properties"][field]);
            if schema["type"] == "object" {
                keys.extend(Self::all(&format!("{name}."), schema));
                continue;
            }
            let default = schema.get("default").map(|default| {
                toml::Value::try_from(default).expect("no field is optional, so no value is null")
            });
            let meaning = schema["description"].as_str().unwrap_or_default().replace('\n', " ");
            keys.push(Self { kind: Kind::of(&name, schema), name, meaning, default });
        }
        keys
    }
}

impl Kind {
    fn of(name: &str, schema: &Value) -> Self {
        let within = |min: &str, max: &str| {
            let limit = |limit: &str| schema.get(limit).and_then(Value::as_u64);
            limit(min).unwrap_or(0)..=limit(max).unwrap_or(i64::MAX as u64)
        };
        let format = schema["format"].as_str().unwrap_or_default();
        match schema["type"].as_str().unwrap_or_default() {
            "boolean" => Self::Flag,
            "integer" if format == ByteSize::FORMAT => Self::Size(within("minimum", "maximum")),
            "integer" => Self::Integer(within("minimum", "maximum")),
            "array" if schema["items"]["type"] == "object" => {
                Self::Tables(Key::all(&format!("{name}."), &schema["items"]))
            }
            "array" => {
                let item = Self::of(name, &schema["items"]);
                Self::List(Box::new(item), within("minItems", "maxItems"))
            }
            "string" if format == Address::FORMAT => Self::Address,
            "string" if format == OptionalAddress::FORMAT => Self::OptionalAddress,
            "string" if format == Origin::FORMAT => Self::Origin,
            "string" => match schema["enum"].as_array() {
                Some(names) => {
                    let names = names.iter().filter_map(Value::as_str);
                    Self::Choice(names.map(str::to_owned).collect())
                }
                None => Self::Text(within("minLength", "maxLength")),
            },
            other => unreachable!("{name} has a type that no key has: {other:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_a_meaning_and_every_number_a_limit() {
        fn visit(keys: &[Key]) {
            for key in keys {
                assert!(key.meaning.ends_with('.'), "{key:?}");
                match &key.kind {
                    Kind::Integer(within) | Kind::Size(within) => {
                        assert!(*within.end() < i64::MAX as u64, "{key:?}");
                    }
                    Kind::Tables(fields) => visit(fields),
                    _ => {}
                }
            }
        }
        visit(keys());
        assert!(keys().len() > 60);
    }
}
