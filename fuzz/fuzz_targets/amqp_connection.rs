//! Bytes of a client, after a good handshake or from the start: see the function.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| quelea_fuzz_targets::run("amqp_connection", data));
