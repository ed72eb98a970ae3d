//! Bytes of a socket as frames, cut in any way.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| quelea_amqp_codec::fuzzing::fuzz_frames(data));
