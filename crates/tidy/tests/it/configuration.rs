//! Every configuration key is documented, and every documented key exists. That the reference is
//! word for word what `quelea config --markdown` prints, a test of the server checks.

use std::collections::BTreeSet;

use quelea_tidy::Repository;

use crate::assert_none;

const KEYS: &str = "crates/server/src/config/key.rs";
/// The keys of lists of tables.
const TABLES: &str = "crates/server/src/config/key";
const REFERENCE: &str = "docs/configuration.md";

/// Keys by the table of the source: lines `name: "amqp.listen",`.
fn keys(repository: &Repository) -> BTreeSet<String> {
    let mut source = repository.read(KEYS);
    source.extend(repository.files(TABLES, &[".rs"]).iter().map(|path| repository.read(path)));
    let names = source.lines().filter_map(|line| line.trim().strip_prefix("name: \""));
    names.filter_map(|rest| rest.strip_suffix("\",")).map(str::to_owned).collect()
}

/// Keys by the reference: the first cells of its tables.
fn documented(repository: &Repository) -> BTreeSet<String> {
    let reference = repository.read(REFERENCE);
    let rows = reference.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|rest| rest.split_once("` |")).map(|(key, _)| key.to_owned()).collect()
}

#[test]
fn the_reference_has_every_key_and_no_other() {
    let repository = Repository::open();
    let (keys, documented) = (keys(&repository), documented(&repository));
    assert!(keys.contains("amqp.listen"), "{KEYS} was read");
    let missing: Vec<String> = keys.difference(&documented).cloned().collect();
    assert_none("keys that docs/configuration.md does not have", &missing);
    let stale: Vec<String> = documented.difference(&keys).cloned().collect();
    assert_none("keys that do not exist", &stale);
}

/// A page that speaks of `` `limits.resident_bytes_max` `` or `QUELEA__AMQP__LISTEN` names a key.
#[test]
fn every_key_that_a_page_names_exists() {
    let repository = Repository::open();
    let keys = keys(&repository);
    let sections: BTreeSet<&str> =
        keys.iter().filter_map(|key| key.split_once('.')).map(|(section, _)| section).collect();
    let mut faults = Vec::new();
    for path in repository.files("", &[".md"]) {
        for (at, line) in repository.read(&path).lines().enumerate() {
            let quoted = line.split('`').skip(1).step_by(2);
            for word in quoted.flat_map(|text| text.split([' ', '=', ':', ','])) {
                let dotted = word.split_once('.').filter(|(section, key)| {
                    let plain = |c: char| c.is_ascii_lowercase() || c == '_';
                    sections.contains(section) && !key.is_empty() && key.chars().all(plain)
                });
                let key = match word.strip_prefix("QUELEA__") {
                    Some(name) => Some(name.replace("__", ".").to_lowercase()),
                    None => dotted.map(|_| word.to_owned()),
                };
                let is_file = dotted.is_some_and(|(_, end)| FILE_ENDINGS.contains(&end));
                if key.is_some_and(|key| !is_file && !keys.contains(&key) && !key.contains('…')) {
                    faults.push(format!("{path}:{}: {word}", at + 1));
                }
            }
        }
    }
    assert_none("keys that do not exist", &faults);
}

/// `access.rs` and `log.rs` are files, not keys.
const FILE_ENDINGS: [&str; 6] = ["rs", "md", "py", "toml", "json", "txt"];
