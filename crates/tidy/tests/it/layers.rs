//! Arrows point downwards only (DESIGN.md section 3, invariant 2: fronts know nothing of one
//! another).

use std::collections::BTreeMap;

use quelea_tidy::Repository;
use toml::{Table, Value};

use crate::assert_none;

/// Each room with what it may depend on, lowest first. A family knows another only through `core`; the
/// exceptions are `core/node`, which drives `amqp/session`, the rooms that join families, and `sqs/protocol`, the
/// interface of queues that `cassandra/store` implements.
const LAYERS: [(&str, &[&str]); 31] = [
    ("core/model", &[]),
    ("core/net", &["core/model"]),
    ("core/openapi", &[]),
    ("core/store", &["core/model"]),
    ("core/broker", &["core/model", "core/store"]),
    ("amqp/codec", &["core/model"]),
    ("amqp/session", &["core/model", "core/store", "core/broker", "amqp/codec"]),
    (
        "core/node",
        &["core/model", "core/net", "core/store", "core/broker", "amqp/codec", "amqp/session"],
    ),
    ("sqs/protocol", &["core/model"]),
    ("sqs/conformance", &["sqs/protocol"]),
    ("sqs/client", &["sqs/protocol"]),
    ("sqs/server", &["core/model", "core/net", "sqs/protocol"]),
    (
        "sqs/embedded",
        &[
            "core/model",
            "core/net",
            "core/store",
            "core/broker",
            "core/node",
            "sqs/protocol",
            "sqs/server",
        ],
    ),
    ("cmq/proto", &["core/model"]),
    ("cmq/lib", &["cmq/proto"]),
    ("cassandra/fifo", &["sqs/protocol"]),
    ("cassandra/store", &["core/model", "core/net", "sqs/protocol", "cassandra/fifo"]),
    (
        "cassandra/front",
        &[
            "core/model",
            "core/openapi",
            "core/store",
            "core/broker",
            "core/node",
            "sqs/protocol",
            "sqs/server",
            "sqs/embedded",
            "cassandra/store",
            "cmq/lib",
        ],
    ),
    (
        "cmq/front",
        &["core/model", "core/openapi", "core/store", "core/broker", "core/node", "cmq/lib"],
    ),
    ("elastic/proto", &["core/model"]),
    ("elastic/zmtp", &[]),
    ("elastic/core", &["elastic/proto"]),
    ("elastic/client", &["elastic/proto"]),
    (
        "elastic/relay",
        &["core/net", "elastic/core", "elastic/proto", "elastic/zmtp", "elastic/client"],
    ),
    ("elastic/directory", &["core/net", "core/openapi", "elastic/core", "elastic/proto"]),
    ("cassandra/metadata", &["cassandra/store", "elastic/directory"]),
    (
        "elastic/bridge",
        &[
            "core/model",
            "core/net",
            "core/store",
            "core/broker",
            "core/node",
            "elastic/proto",
            "elastic/client",
        ],
    ),
    ("management", KNOWS_ALL),
    ("server", KNOWS_ALL),
    ("testkit", &["core/model", "core/store", "core/broker", "amqp/codec", "amqp/session"]),
    ("tidy", &[]),
];

/// What the tests of every room may use, and nothing else of it: below any room, were they parts of the product.
const TEST_ONLY: [&str; 2] = ["quelea-testkit", "quelea-sqs-conformance"];

/// The rooms that join everything may depend on every room below them.
const KNOWS_ALL: &[&str] = &["*"];

const SECTIONS: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];

#[test]
fn every_crate_depends_only_on_the_layers_below_it() {
    let allowed = BTreeMap::from(LAYERS);
    let crates = Repository::open().crates();
    let rooms: BTreeMap<String, &str> =
        crates.iter().map(|found| (found.package_of_room(), found.room.as_str())).collect();
    let mut faults = Vec::new();
    for found in &crates {
        let Some(below) = allowed.get(found.room.as_str()) else {
            faults.push(format!("{}: it has no place in LAYERS", found.path));
            continue;
        };
        if *below == KNOWS_ALL {
            continue;
        }
        for section in SECTIONS {
            let dependencies = found.dependencies(section);
            // A crate's tests may turn on a feature of the crate.
            let others = dependencies.iter().filter(|name| **name != found.package_of_room());
            for other in others.filter(|name| name.starts_with("quelea-")) {
                let is_test_only =
                    section == "dev-dependencies" && TEST_ONLY.contains(&other.as_str());
                if !is_test_only && !rooms.get(other).is_some_and(|room| below.contains(room)) {
                    faults.push(format!("{}: {section} name {other}", found.path));
                }
            }
        }
    }
    assert_none("dependencies that do not point downwards", &faults);
}

/// Features with code that only fuzzers and tests run.
const APPARATUS: [&str; 2] = ["fuzzing", "testing"];

#[test]
fn the_product_compiles_nothing_that_only_tests_need() {
    let mut faults = Vec::new();
    for found in Repository::open().crates() {
        if TEST_ONLY.contains(&found.package_of_room().as_str()) {
            continue;
        }
        for section in ["dependencies", "build-dependencies"] {
            for name in
                found.dependencies(section).iter().filter(|name| TEST_ONLY.contains(&name.as_str()))
            {
                faults.push(format!("{}: {section} name {name}", found.path));
            }
        }
        let dependencies = found.manifest.get("dependencies").and_then(|table| table.as_table());
        for (name, dependency) in dependencies.into_iter().flatten() {
            let features = dependency.get("features").and_then(|features| features.as_array());
            let features = features.into_iter().flatten().filter_map(|feature| feature.as_str());
            for feature in features.filter(|feature| APPARATUS.contains(feature)) {
                faults.push(format!("{}: {name} with the feature {feature}", found.path));
            }
        }
        let features = found.manifest.get("features").and_then(|features| features.get("default"));
        if features.is_some_and(|features| {
            APPARATUS.iter().any(|name| features.to_string().contains(name))
        }) {
            faults.push(format!("{}: its default features", found.path));
        }
    }
    assert_none("features for tests in the product", &faults);
}

#[test]
fn the_layers_have_no_cycle() {
    for (at, (name, below)) in
        LAYERS.iter().enumerate().filter(|(_, (_, below))| *below != KNOWS_ALL)
    {
        let earlier: Vec<&str> = LAYERS[..at].iter().map(|(name, _)| *name).collect();
        assert!(
            below.iter().all(|other| earlier.contains(other)),
            "{name} before one of {below:?}"
        );
    }
}

#[test]
fn every_crate_is_in_the_workspace_and_inherits_from_it() {
    let repository = Repository::open();
    let workspace = repository.toml("Cargo.toml");
    let members: Vec<&str> = workspace["workspace"]["members"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|member| member.as_str())
        .collect();
    let mut faults = Vec::new();
    for found in repository.crates() {
        let path = &found.path;
        if !members.contains(&path.as_str()) {
            faults.push(format!("{path}: not a member of the workspace"));
        }
        let name = found.package_of_room();
        if found.manifest["package"]["name"].as_str() != Some(&name) {
            faults.push(format!("{path}: its package is not called {name}"));
        }
        faults.extend(not_inherited(path, &found.manifest));
    }
    assert_none("manifests", &faults);
}

/// Returns what a manifest says itself although its workspace says it.
pub(crate) fn not_inherited(path: &str, manifest: &Table) -> Vec<String> {
    let is_inherited = |value: Option<&Value>| {
        let inherited = value.and_then(|value| value.get("workspace"));
        inherited.and_then(Value::as_bool) == Some(true)
    };
    let fields = ["version", "edition", "license", "publish"].into_iter();
    let mut faults: Vec<String> = fields
        .filter(|field| !is_inherited(manifest["package"].get(field)))
        .map(|field| format!("{path}: {field} is not the workspace's"))
        .collect();
    if !is_inherited(manifest.get("lints")) {
        faults.push(format!("{path}: its lints are not the workspace's"));
    }
    faults
}
