//! Two endpoints of CMQ and a hostile network between them.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| quelea_cmq_proto::fuzzing::fuzz_endpoint(data));
