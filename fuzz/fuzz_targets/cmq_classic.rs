//! A datagram of the original CMQ library, as a list of either kind.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| quelea_fuzz_targets::run("cmq_classic", data));
