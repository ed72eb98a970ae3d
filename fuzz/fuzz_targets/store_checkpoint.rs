//! A checkpoint, and the log that is opened with it.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| quelea_fuzz_targets::run("store_checkpoint", data));
