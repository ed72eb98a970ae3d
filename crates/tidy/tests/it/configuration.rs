//! Every key that a page names is in the configuration's reference. That the reference has every key,
//! word for word as `quelea config --markdown` prints it from the code, a test of the server checks.

use std::collections::BTreeSet;

use quelea_tidy::Repository;

use crate::assert_none;

const REFERENCE: &str = "docs/operate/configuration.md";

/// Returns the first cells of the reference's tables.
fn keys(repository: &Repository) -> BTreeSet<String> {
    let reference = repository.read(REFERENCE);
    let rows = reference.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|rest| rest.split_once("` |")).map(|(key, _)| key.to_owned()).collect()
}

/// A page that speaks of `` `limits.resident_bytes_max` `` or `QUELEA__AMQP__LISTEN` names a key.
#[test]
fn every_key_that_a_page_names_exists() {
    let repository = Repository::open();
    let keys = keys(&repository);
    assert!(keys.contains("amqp.listen"), "{REFERENCE} was read");
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
