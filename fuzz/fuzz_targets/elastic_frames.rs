//! Any bytes instead of an elastic queue's frames, to the codec, a producer and a listener.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| quelea_fuzz_targets::run("elastic_frames", data));
