//! What the fuzzers run: [`TARGETS`] has a function for each target, most of them in the crate that
//! they try (its feature `fuzzing`), and that of a whole node here, since it takes all the layers. It is
//! never part of the product. The programs in `fuzz/fuzz_targets` call [`run`] with what the fuzzer
//! makes up; `tests/corpora.rs` tries every input again that is kept.

mod node;

/// What a target does with an input.
///
/// # Panics
/// If something does not hold that should hold for every input.
pub type Target = fn(&[u8]);

/// Each target by its name, sorted.
pub const TARGETS: [(&str, Target); 15] = [
    ("amqp_connection", quelea_amqp_codec::fuzzing::fuzz_connection),
    ("amqp_frames", quelea_amqp_codec::fuzzing::fuzz_frames),
    ("amqp_method", quelea_amqp_codec::fuzzing::fuzz_method),
    ("amqp_table", quelea_amqp_codec::fuzzing::fuzz_table),
    ("cmq_classic", quelea_cmq_proto::fuzzing::fuzz_classic),
    ("cmq_datagram", quelea_cmq_proto::fuzzing::fuzz_datagrams),
    ("cmq_endpoint", quelea_cmq_proto::fuzzing::fuzz_endpoint),
    ("elastic_frames", quelea_elastic_proto::fuzzing::fuzz_frames),
    ("elastic_relay", quelea_elastic_core::fuzzing::fuzz_relay),
    ("node", node::fuzz_node),
    ("sqs_json", quelea_sqs_protocol::fuzzing::fuzz_json),
    ("sqs_query", quelea_sqs_protocol::fuzzing::fuzz_query),
    ("store_checkpoint", quelea_store::fuzzing::fuzz_checkpoint),
    ("store_records", quelea_store::fuzzing::fuzz_records),
    ("zmtp", quelea_elastic_zmtp::fuzzing::fuzz_connection),
];

/// Runs the target of this name.
///
/// # Panics
/// If there is none, or if something does not hold that should hold for every input.
pub fn run(name: &str, data: &[u8]) {
    match TARGETS.iter().find(|(target, _)| *target == name) {
        Some((_, target)) => target(data),
        None => panic!("there is no fuzz target {name}"),
    }
}
