//! Nothing unfinished, nothing left from a debugging session, no test that does not run.

use quelea_tidy::{Repository, code_lines};

use crate::assert_none;

/// Put together here, so that this file is not its own first fault.
const FORBIDDEN: [&str; 4] =
    [concat!("todo", "!"), concat!("unimplemented", "!"), concat!("dbg", "!"), IGNORE];

const IGNORE: &str = concat!("#[ign", "ore");

/// Tests that do not run by themselves, with the reason why they are there.
const IGNORED: [(&str, &str); 3] = [
    (
        "crates/elastic/directory/tests/etcd/main.rs",
        "needs an etcd: the suite elastic_etcd starts one and runs it",
    ),
    (
        "crates/core/node/tests/it/panic.rs",
        "ends its process: another test runs it in one of its own",
    ),
    ("crates/core/store/tests/it/golden.rs", "writes the golden files of a new format version"),
];

/// What the product may not hold besides. A module that several test binaries share may.
const FORBIDDEN_IN_PRODUCT: [&str; 2] =
    [concat!("#![allow(dead", "_code"), concat!("#[allow(dead", "_code")];

#[test]
fn sources_hold_no_unfinished_or_forgotten_code() {
    let repository = Repository::open();
    let mut faults = Vec::new();
    for path in repository.files("", &[".rs"]) {
        let source = repository.read(&path);
        let product: &[&str] = if path.contains("/src/") { &FORBIDDEN_IN_PRODUCT } else { &[] };
        for line in code_lines(&source) {
            let found = FORBIDDEN.iter().chain(product).filter(|needle| {
                line.code.contains(**needle) && !(**needle == IGNORE && may_be_ignored(&path))
            });
            faults.extend(found.map(|needle| format!("{path}:{}: {needle}", line.number)));
        }
    }
    assert_none("unfinished code", &faults);
}

fn may_be_ignored(path: &str) -> bool {
    IGNORED.iter().any(|(ignored, _)| *ignored == path)
}

#[test]
fn every_library_says_first_what_it_is() {
    let repository = Repository::open();
    let faults: Vec<String> = repository
        .files("crates", &["/src/lib.rs", "/src/main.rs"])
        .into_iter()
        .filter(|path| !repository.read(path).starts_with("//! "))
        .collect();
    assert_none("no first words", &faults);
}
