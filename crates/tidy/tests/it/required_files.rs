//! What a visitor and a machine expect in a repository is there.

use quelea_tidy::Repository;

use crate::assert_none;

const REQUIRED: [&str; 16] = [
    ".ci/run",
    ".gitignore",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "COMPARE.md",
    "CONTRIBUTING.md",
    "Cargo.lock",
    "LICENSE",
    "Makefile",
    "README.md",
    "clippy.toml",
    "deny.toml",
    "docs/README.md",
    "experiments/Cargo.lock",
    "rust-toolchain.toml",
    "rustfmt.toml",
];

#[test]
fn the_files_that_are_looked_for_first_are_there() {
    let repository = Repository::open();
    let missing = REQUIRED.iter().filter(|path| !repository.path(path).is_file());
    let faults: Vec<String> = missing.map(|path| (*path).to_owned()).collect();
    assert_none("missing files", &faults);
}

#[test]
fn the_licence_is_the_one_that_the_manifests_name() {
    let repository = Repository::open();
    let licence = repository.read("LICENSE");
    assert!(licence.contains("Apache License") && licence.contains("Version 2.0, January 2004"));
    let workspace = repository.toml("Cargo.toml");
    let package = &workspace["workspace"]["package"];
    assert_eq!(package["license"].as_str(), Some("Apache-2.0"));
    assert_eq!(package["publish"].as_bool(), Some(false));
}

/// The workspace's minimum, the toolchain and the fuzzing workspace move together.
#[test]
fn the_toolchain_is_the_minimum_that_the_manifests_promise() {
    let repository = Repository::open();
    let toolchain = repository.toml("rust-toolchain.toml");
    let channel = toolchain["toolchain"]["channel"].as_str().unwrap_or_default().to_owned();
    let workspace = repository.toml("Cargo.toml");
    let minimum = workspace["workspace"]["package"]["rust-version"].as_str().unwrap_or_default();
    assert!(!minimum.is_empty() && channel.starts_with(minimum), "{channel} and {minimum}");
}
