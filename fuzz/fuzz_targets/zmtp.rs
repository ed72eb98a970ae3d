//! A ZMTP connection of either side, under each mechanism, and any peer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| quelea_fuzz_targets::run("zmtp", data));
