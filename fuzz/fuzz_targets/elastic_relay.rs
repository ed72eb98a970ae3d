//! A relay between honest clients and hostile connections.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| quelea_fuzz_targets::run("elastic_relay", data));
