//! A story of clients of a whole node.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| quelea_fuzz_targets::run("node", data));
