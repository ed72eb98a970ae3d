//! Arrows point downwards only (DESIGN.md section 3, invariant 2: fronts know nothing of one
//! another).

use std::collections::BTreeMap;

use quelea_tidy::Repository;

use crate::assert_none;

/// Each crate with what it may depend on, lowest first. Session counts as half a layer above the
/// broker: it joins a front to it.
const LAYERS: [(&str, &[&str]); 22] = [
    ("model", &[]),
    ("amqp", &["model"]),
    ("sqs", &["model"]),
    ("zmtp", &[]),
    ("elastic-proto", &[]),
    ("client", &["model", "sqs", "elastic-proto"]),
    ("cmq-proto", &[]),
    ("cmq", &["cmq-proto"]),
    ("store", &["model"]),
    ("broker", &["model", "store"]),
    ("session", &["model", "amqp", "store", "broker"]),
    ("net", &["model", "amqp", "store", "broker", "session"]),
    ("http", &["sqs", "model", "store", "broker", "session", "net"]),
    ("datagram", &["model", "store", "broker", "net", "cmq"]),
    ("elastic", &["model", "elastic-proto"]),
    ("relay", &["elastic", "elastic-proto", "zmtp", "client"]),
    ("directory", &["model", "elastic", "elastic-proto"]),
    ("bridge", &["model", "store", "broker", "net", "elastic-proto", "client"]),
    ("plot", &[]),
    ("bench", &["model", "amqp", "sqs", "client", "cmq", "elastic-proto", "elastic", "plot"]),
    (
        "server",
        &[
            "model",
            "amqp",
            "sqs",
            "store",
            "broker",
            "session",
            "net",
            "http",
            "bench",
            "cmq",
            "datagram",
            "client",
            "elastic-proto",
            "elastic",
            "relay",
            "directory",
            "bridge",
        ],
    ),
    (
        "tidy",
        &[
            "model",
            "amqp",
            "sqs",
            "cmq-proto",
            "zmtp",
            "elastic-proto",
            "store",
            "broker",
            "session",
            "elastic",
        ],
    ),
];

const SECTIONS: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];

#[test]
fn every_crate_depends_only_on_the_layers_below_it() {
    let allowed = BTreeMap::from(LAYERS);
    let mut faults = Vec::new();
    for found in Repository::open().crates() {
        let Some(below) = allowed.get(found.name.as_str()) else {
            faults.push(format!("crates/{}: it has no place in LAYERS", found.name));
            continue;
        };
        for section in SECTIONS {
            let dependencies = found.dependencies(section);
            let ours = dependencies.iter().filter_map(|name| name.strip_prefix("quelea-"));
            for other in ours.filter(|other| !below.contains(other)) {
                faults.push(format!("crates/{}: {section} name quelea-{other}", found.name));
            }
        }
    }
    assert_none("dependencies that do not point downwards", &faults);
}

#[test]
fn the_layers_have_no_cycle() {
    for (at, (name, below)) in LAYERS.iter().enumerate() {
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
        let path = format!("crates/{}", found.name);
        let package = &found.manifest["package"];
        if !members.contains(&path.as_str()) {
            faults.push(format!("{path}: not a member of the workspace"));
        }
        if package["name"].as_str() != Some(&format!("quelea-{}", found.name)) {
            faults.push(format!("{path}: its package is not called quelea-{}", found.name));
        }
        for field in ["version", "edition", "license", "publish"] {
            let inherited = package.get(field).and_then(|value| value.get("workspace"));
            if inherited.and_then(|value| value.as_bool()) != Some(true) {
                faults.push(format!("{path}: {field} is not the workspace's"));
            }
        }
        let lints = found.manifest.get("lints").and_then(|lints| lints.get("workspace"));
        if lints.and_then(|value| value.as_bool()) != Some(true) {
            faults.push(format!("{path}: its lints are not the workspace's"));
        }
    }
    assert_none("manifests", &faults);
}
