//! Datagrams of CMQ: headers, bodies, parity, and forged seals.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| quelea_cmq_proto::fuzzing::fuzz_datagrams(data));
