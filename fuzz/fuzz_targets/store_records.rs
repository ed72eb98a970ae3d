//! Records of the log, and a segment that a log is opened from.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| quelea_fuzz_targets::run("store_records", data));
