//! The content of a field table.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| quelea_amqp_codec::fuzzing::fuzz_table(data));
