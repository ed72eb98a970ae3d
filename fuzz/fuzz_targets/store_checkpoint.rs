//! A checkpoint, and the log that is opened with it.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| quelea_store::fuzzing::fuzz_checkpoint(data));
