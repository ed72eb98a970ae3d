//! Datagrams of CMQ: headers, bodies, parity, and forged seals.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| quelea_fuzz_targets::run("cmq_datagram", data));
