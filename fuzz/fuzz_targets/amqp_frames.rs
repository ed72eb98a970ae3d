//! Bytes of a socket as frames, cut in any way.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| quelea_fuzz_targets::run("amqp_frames", data));
