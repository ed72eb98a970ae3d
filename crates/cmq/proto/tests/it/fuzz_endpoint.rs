//! The fuzzer's run of two endpoints, over inputs drawn by chance. The fuzzer finds more; this finds
//! what is broken at once.

use quelea_cmq_proto::fuzzing::fuzz_endpoint;
use quelea_testkit::{Seed, seeds};

#[test]
fn whatever_the_network_does_no_endpoint_panics_or_delivers_what_was_not_sent() {
    seeds::for_each(0..200, |Seed(seed)| {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut input: Vec<u8> = (0..random.usize(..1_500)).map(|_| random.u8(..)).collect();
        // Strangers and changes are rare in some, or flows would hardly ever come to life.
        if seed % 2 == 0 {
            for byte in input.iter_mut().skip(4).step_by(2) {
                *byte = [0, 3, 4, 5, 0x85, 5, 0x85, 7, 12, 13][usize::from(*byte % 10)];
            }
        }
        fuzz_endpoint(&input);
    });
}
