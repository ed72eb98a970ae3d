//! A method and a URL, then a form, in SQS's Query protocol.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| quelea_sqs_protocol::fuzzing::fuzz_query(data));
