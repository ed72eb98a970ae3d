//! Two endpoints of CMQ and a hostile network between them.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| quelea_fuzz_targets::run("cmq_endpoint", data));
