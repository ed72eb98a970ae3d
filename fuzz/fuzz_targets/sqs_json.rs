//! The name of an SQS operation, then a body in JSON: a request or a reply.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| quelea_fuzz_targets::run("sqs_json", data));
