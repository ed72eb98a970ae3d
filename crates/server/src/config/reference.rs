//! The configuration's reference page, and the effective configuration, both as text.

use quelea_model::byte_size;
use toml::Value;

use super::Config;
use super::key::{Key, Kind, keys};

const INTRODUCTION: &str = "\
# Configuration

<!-- Written by `quelea config --markdown`; a test compares. Change crates/server/src/config.rs and the files beside it. -->

Nothing has to be configured. What is set later wins: the defaults; then `quelea.toml` in the working
directory, or the file of `--config FILE`; then environment variables; then flags (`--data-dir DIR`,
`--set KEY=VALUE`). A key that does not exist, or a value outside its range, is an error: the broker
does not start, and says which.

The environment variable of `amqp.listen` is `QUELEA__AMQP__LISTEN`: two underscores where the key has a
dot. There and in `--set` a list is separated by commas, or written as in the file; a list of tables is written in one line, as in
`QUELEA__CMQ__ROUTE=[{mailboxes='7', exchange='amq.topic'}]`. Sizes may have a unit: `65536`, `64MiB`, `1GiB`, `500kB`.

`quelea config --show` prints what is in force.
";

/// Returns the reference in Markdown: a table per section.
pub(crate) fn markdown() -> String {
    let mut page = INTRODUCTION.to_owned();
    let mut section = None;
    for key in keys() {
        let this = key.name.split_once('.').map_or("", |(section, _)| section);
        if section != Some(this) {
            section = Some(this);
            let title = if this.is_empty() { "The broker" } else { this };
            page.push_str(&format!(
                "\n## {title}\n\n| key | type | default | meaning |\n|---|---|---|---|\n"
            ));
        }
        page.push_str(&row(key));
        if let Kind::Tables(fields) = &key.kind {
            page.extend(fields.iter().map(row));
        }
    }
    page
}

fn row(key: &Key) -> String {
    let Key { name, kind, meaning, default } = key;
    let default = default.as_ref().map(|value| value_text(kind, value));
    let default = default.unwrap_or_else(|| "has to be given".to_owned());
    format!("| `{name}` | {} | `{default}` | {meaning} |\n", type_name(kind))
}

/// Returns what is in force, as a TOML file that would set exactly this. Passwords are not shown.
pub(crate) fn show(config: &Config) -> String {
    let table =
        toml::Table::try_from(config).expect("the configuration holds only types that TOML knows");
    let mut text = String::new();
    let mut section = "";
    for key in keys() {
        let (this, name) = key.name.split_once('.').unwrap_or(("", &key.name));
        if section != this {
            section = this;
            text.push_str(&format!("\n[{section}]\n"));
        }
        if is_secret(key) {
            text.push_str(&format!("# {name} is not shown\n"));
        } else {
            let value = if this.is_empty() { &table[name] } else { &table[this][name] };
            text.push_str(&format!("{name} = {}\n", value_text(&key.kind, value)));
        }
    }
    text
}

fn is_secret(key: &Key) -> bool {
    key.name.ends_with("password")
}

/// Returns a value as TOML, sizes with their unit.
fn value_text(kind: &Kind, value: &Value) -> String {
    match (kind, value.as_integer()) {
        (Kind::Size(_), Some(bytes)) => format!("\"{}\"", byte_size::format(bytes as u64)),
        _ => value.to_string(),
    }
}

fn type_name(kind: &Kind) -> String {
    match kind {
        Kind::Text(_) => "text".to_owned(),
        Kind::Choice(names) => {
            let names = names.iter().map(|name| match name.as_str() {
                "" => "empty".to_owned(),
                name => format!("`{name}`"),
            });
            names.collect::<Vec<_>>().join(" or ")
        }
        Kind::Address => "`HOST:PORT`".to_owned(),
        Kind::OptionalAddress => "`HOST:PORT` or empty".to_owned(),
        Kind::Origin => "`SCHEME://HOST`".to_owned(),
        Kind::Flag => "`true` or `false`".to_owned(),
        Kind::Integer(within) => format!("integer, {} to {}", within.start(), within.end()),
        Kind::Size(within) => {
            let (min, max) = (byte_size::format(*within.start()), byte_size::format(*within.end()));
            format!("size, {min} to {max}")
        }
        Kind::List(item, _) => match **item {
            Kind::Address => "list of `HOST:PORT`".to_owned(),
            Kind::Origin => "list of `SCHEME://HOST`".to_owned(),
            _ => "list of texts".to_owned(),
        },
        Kind::Tables(_) => "list of tables".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Settings;

    #[test]
    fn the_page_in_docs_is_what_the_code_says() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operate/configuration.md");
        let page = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            page == markdown(),
            "docs/operate/configuration.md is not current: quelea config --markdown > docs/operate/configuration.md"
        );
    }

    #[test]
    fn the_effective_configuration_is_a_file_that_sets_itself() {
        let mut settings = Settings::default();
        settings.assignment("limits.resident_bytes_max=100MiB").unwrap();
        let text = show(&settings.config());
        assert!(text.contains("resident_bytes_max = \"100MiB\""), "{text}");
        assert!(!text.contains("bootstrap_password ="), "{text}");
        text.parse::<toml::Table>().unwrap();
    }
}
