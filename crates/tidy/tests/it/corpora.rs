//! Every input that the fuzzers start from, or that once broke something, is tried again.

use std::fs;

use quelea_tidy::Repository;

use crate::assert_none;

/// What a fuzz target does with an input: it panics if something does not hold.
type Run = fn(&[u8]);

/// Each fuzz target with the function that it calls.
const TARGETS: [(&str, Run); 15] = [
    ("amqp_connection", quelea_amqp_codec::fuzzing::fuzz_connection),
    ("amqp_frames", quelea_amqp_codec::fuzzing::fuzz_frames),
    ("amqp_method", quelea_amqp_codec::fuzzing::fuzz_method),
    ("amqp_table", quelea_amqp_codec::fuzzing::fuzz_table),
    ("cmq_classic", quelea_cmq_proto::fuzzing::fuzz_classic),
    ("cmq_datagram", quelea_cmq_proto::fuzzing::fuzz_datagrams),
    ("cmq_endpoint", quelea_cmq_proto::fuzzing::fuzz_endpoint),
    ("elastic_frames", quelea_elastic_proto::fuzzing::fuzz_frames),
    ("elastic_relay", quelea_elastic_core::fuzzing::fuzz_relay),
    ("node", quelea_tidy::fuzz_node),
    ("sqs_json", quelea_sqs_protocol::fuzzing::fuzz_json),
    ("sqs_query", quelea_sqs_protocol::fuzzing::fuzz_query),
    ("store_checkpoint", quelea_store::fuzzing::fuzz_checkpoint),
    ("store_records", quelea_store::fuzzing::fuzz_records),
    ("zmtp", quelea_elastic_zmtp::fuzzing::fuzz_connection),
];

/// Seeds are read by people and run in every test.
const SEED_BYTES_MAX: usize = 64 * 1024;

#[test]
fn every_input_of_the_corpora_is_still_handled() {
    let repository = Repository::open();
    for (target, run) in TARGETS {
        let files = repository.files(&format!("fuzz/corpus/{target}"), &[]);
        assert!(!files.is_empty(), "fuzz/corpus/{target} has no seed");
        for path in files {
            let data = fs::read(repository.path(&path)).expect("a file that was listed");
            assert!(data.len() <= SEED_BYTES_MAX, "{path} is too large for a seed");
            eprintln!("{path}"); // What a panic was caused by.
            run(&data);
            for cut in [1, data.len() / 2, data.len().saturating_sub(1)] {
                run(&data[..cut.min(data.len())]);
            }
        }
    }
}

#[test]
fn every_fuzz_target_is_built_and_has_its_corpus_replayed() {
    let repository = Repository::open();
    let manifest = repository.toml("fuzz/Cargo.toml");
    let bins: Vec<&str> = manifest["bin"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|bin| bin["name"].as_str())
        .collect();
    let known: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
    let mut faults = Vec::new();
    for path in repository.files("fuzz/fuzz_targets", &[".rs"]) {
        let name = path.trim_start_matches("fuzz/fuzz_targets/").trim_end_matches(".rs");
        if !known.contains(&name) {
            faults.push(format!("{path}: it is not in TARGETS"));
        }
        if !bins.contains(&name) {
            faults.push(format!("{path}: fuzz/Cargo.toml does not build it"));
        }
    }
    let directories = repository.files("fuzz/corpus", &[]);
    let orphans = directories
        .iter()
        .filter(|path| path.split('/').nth(2).is_some_and(|target| !known.contains(&target)));
    faults.extend(orphans.map(|path| format!("{path}: no target reads it")));
    let missing = known.iter().filter(|name| !bins.contains(name));
    faults.extend(missing.map(|name| format!("{name}: fuzz/Cargo.toml does not build it")));
    assert_none("fuzz targets", &faults);
}
