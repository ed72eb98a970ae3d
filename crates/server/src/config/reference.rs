//! The configuration's reference page, and the effective configuration, both as text.

use super::key::{KEYS, Key, Kind};
use super::{Settings, byte_size};

const INTRODUCTION: &str = "\
# Configuration

<!-- Written by `quelea config --markdown`; a test compares. Change crates/server/src/config/key.rs. -->

Nothing has to be configured. What is set later wins: the defaults; then `quelea.toml` in the working
directory, or the file of `--config FILE`; then environment variables; then flags (`--data-dir DIR`,
`--set KEY=VALUE`). A key that does not exist, or a value outside its range, is an error: the broker
does not start, and says which.

The environment variable of `amqp.listen` is `QUELEA__AMQP__LISTEN`: two underscores where the key has a
dot. A list is separated by commas there; a list of tables is written in one line, as in
`QUELEA__CMQ__ROUTE=[{mailboxes='7', exchange='amq.topic'}]`. Sizes may have a unit: `65536`, `64MiB`, `1GiB`, `500kB`.

`quelea config --show` prints what is in force.
";

/// The reference in Markdown: a table per section.
pub(crate) fn markdown() -> String {
    let defaults = Settings::new();
    let mut page = INTRODUCTION.to_owned();
    let mut section = None;
    for key in KEYS {
        let this = key.name.split_once('.').map_or("", |(section, _)| section);
        if section != Some(this) {
            section = Some(this);
            let title = if this.is_empty() { "The broker" } else { this };
            page.push_str(&format!(
                "\n## {title}\n\n| key | type | default | meaning |\n|---|---|---|---|\n"
            ));
        }
        row(&mut page, key, &defaults.show(key));
        if let Kind::Tables(fields) = key.kind {
            for field in fields {
                row(&mut page, &field.key, field.default.unwrap_or("has to be given"));
            }
        }
    }
    page
}

fn row(page: &mut String, key: &Key, default: &str) {
    let kind = type_name(key.kind);
    page.push_str(&format!("| `{}` | {kind} | `{default}` | {} |\n", key.name, key.meaning));
}

/// What is in force, as a TOML file that would set exactly this. Passwords are not shown.
pub(crate) fn show(settings: &Settings) -> String {
    let mut text = String::new();
    let mut section = "";
    for key in KEYS {
        let (this, name) = key.name.split_once('.').unwrap_or(("", key.name));
        if section != this {
            section = this;
            text.push_str(&format!("\n[{section}]\n"));
        }
        if is_secret(key) {
            text.push_str(&format!("# {name} is not shown\n"));
        } else {
            text.push_str(&format!("{name} = {}\n", settings.show(key)));
        }
    }
    text
}

fn is_secret(key: &Key) -> bool {
    key.name.ends_with("password")
}

fn type_name(kind: Kind) -> String {
    match kind {
        Kind::Text => "text".to_owned(),
        Kind::TextList => "list of texts".to_owned(),
        Kind::Address => "`HOST:PORT`".to_owned(),
        Kind::OptionalAddress => "`HOST:PORT` or empty".to_owned(),
        Kind::AddressList => "list of `HOST:PORT`".to_owned(),
        Kind::Flag => "`true` or `false`".to_owned(),
        Kind::Integer { min, max } => format!("integer, {min} to {max}"),
        Kind::Size { min, max } => {
            format!("size, {} to {}", byte_size::format(min), byte_size::format(max))
        }
        Kind::Tables(_) => "list of tables".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_in_docs_is_what_the_code_says() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
        let page = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            page == markdown(),
            "docs/configuration.md is not current: quelea config --markdown > docs/configuration.md"
        );
    }

    #[test]
    fn the_effective_configuration_is_a_file_that_sets_itself() {
        let mut settings = Settings::new();
        settings.assignment("limits.resident_bytes_max=100MiB").unwrap();
        let text = show(&settings);
        assert!(text.contains("resident_bytes_max = \"100MiB\""), "{text}");
        assert!(!text.contains("bootstrap_password ="), "{text}");
        text.parse::<toml::Table>().unwrap();
    }
}
