//! A method and a URL, then a form, in SQS's Query protocol.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| quelea_fuzz_targets::run("sqs_query", data));
