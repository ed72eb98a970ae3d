//! A datagram of the original CMQ library, as a list of either kind.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| quelea_cmq_proto::fuzzing::fuzz_classic(data));
