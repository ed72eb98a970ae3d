//! The apparatus is a workspace of its own that nothing of the product knows, built as the product is.

use quelea_tidy::Repository;
use toml::{Table, Value};

use crate::assert_none;
use crate::layers::not_inherited;

const WORKSPACE: &str = "experiments/Cargo.toml";

#[test]
fn every_experiment_is_in_its_workspace_and_inherits_from_it() {
    let repository = Repository::open();
    let workspace = repository.toml(WORKSPACE);
    let members = workspace["workspace"]["members"].as_array().expect("a list of members");
    let mut faults = Vec::new();
    for path in repository.files("experiments", &["/Cargo.toml"]) {
        let Some(name) =
            path.strip_prefix("experiments/").and_then(|path| path.strip_suffix("/Cargo.toml"))
        else {
            continue; // The workspace itself.
        };
        if !members.iter().any(|member| member.as_str() == Some(name)) {
            faults.push(format!("{path}: not a member of {WORKSPACE}"));
        }
        faults.extend(not_inherited(&path, &repository.toml(&path)));
    }
    assert_none("manifests", &faults);
}

#[test]
fn the_product_depends_on_no_experiment() {
    let repository = Repository::open();
    let mut faults = Vec::new();
    for path in repository.files("", &["/Cargo.toml"]) {
        let is_product = path.starts_with("crates/")
            || path.starts_with("bindings/")
            || path.starts_with("fuzz/");
        if is_product && repository.read(&path).contains("experiments/") {
            faults.push(path);
        }
    }
    let workspace = repository.toml("Cargo.toml");
    let dependencies = workspace["workspace"]["dependencies"].as_table().expect("a table");
    faults.extend(
        dependencies
            .iter()
            .filter(|(_, value)| path_of(value).is_some_and(|path| path.starts_with("experiments")))
            .map(|(name, _)| format!("Cargo.toml: {name}")),
    );
    assert_none("the product knows an experiment", &faults);
}

fn path_of(dependency: &Value) -> Option<&str> {
    dependency.get("path")?.as_str()
}

/// Returns the version of a dependency: `"1.0"`, or `{ version = "1.0", … }`.
fn version_of(dependency: &Value) -> Option<&str> {
    dependency.as_str().or_else(|| dependency.get("version")?.as_str())
}

/// What is measured is what users run: same versions, same optimisation, same lints.
#[test]
fn both_workspaces_have_the_same_package_lints_profiles_and_versions() {
    let repository = Repository::open();
    let (product, experiments) = (repository.toml("Cargo.toml"), repository.toml(WORKSPACE));
    for section in ["package", "lints"] {
        assert_eq!(experiments["workspace"][section], product["workspace"][section], "{section}");
    }
    for profile in ["release", "release-lite"] {
        assert_eq!(shared(&experiments, profile), shared(&product, profile), "{profile}");
    }
    let versions = |workspace: &Table| workspace["workspace"]["dependencies"].as_table().cloned();
    let (product, experiments) = (versions(&product), versions(&experiments));
    let product = product.expect("a table");
    let faults: Vec<String> = experiments
        .expect("a table")
        .iter()
        .filter(|(_, value)| path_of(value).is_none())
        .filter(|(name, value)| {
            product.get(*name).is_some_and(|other| version_of(other) != version_of(value))
        })
        .map(|(name, _)| name.clone())
        .collect();
    assert_none("other versions than the product's", &faults);
}

/// Returns a profile without the overrides for single packages, which are of the product's own.
fn shared(workspace: &Table, profile: &str) -> Table {
    let mut profile = workspace["profile"][profile].as_table().cloned().expect("a table");
    profile.remove("package");
    profile
}

/// Locked apart, the two could measure with another version than the one that is shipped.
#[test]
fn both_workspaces_lock_the_same_versions() {
    let repository = Repository::open();
    let locked = |path: &str| -> Vec<(String, String)> {
        let lock = repository.toml(path);
        let packages = lock["package"].as_array().cloned().unwrap_or_default();
        let field =
            |package: &Value, name: &str| package[name].as_str().unwrap_or_default().to_owned();
        packages
            .iter()
            .filter(|package| package.get("source").is_some())
            .map(|package| (field(package, "name"), field(package, "version")))
            .collect()
    };
    let (product, experiments) = (locked("Cargo.lock"), locked("experiments/Cargo.lock"));
    let faults: Vec<String> = experiments
        .iter()
        .filter(|found| {
            product.iter().any(|(name, _)| *name == found.0) && !product.contains(found)
        })
        .map(|(name, version)| format!("{name} {version}"))
        .collect();
    assert_none("locked in another version than the product's", &faults);
}
