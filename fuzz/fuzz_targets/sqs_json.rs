//! The name of an SQS operation, then a body in JSON: a request or a reply.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| quelea_sqs_protocol::fuzzing::fuzz_json(data));
