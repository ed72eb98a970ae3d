//! The buffer of what is to be written.

use std::io::IoSlice;

use bytes::Bytes;
use proptest::prelude::*;
use quelea_amqp_codec::Output;

/// Takes at most `len` bytes the way a vectored write does.
fn take(output: &mut Output, len: usize) -> Vec<u8> {
    let mut slices = [IoSlice::new(&[]); 3];
    let count = output.slices(&mut slices);
    let mut taken: Vec<u8> = slices[..count].iter().flat_map(|slice| slice.to_vec()).collect();
    taken.truncate(len);
    output.advance(taken.len());
    taken
}

proptest! {
    #[test]
    fn what_goes_in_comes_out_in_order(
        puts in proptest::collection::vec((any::<bool>(), 0usize..20_000), 0..30),
        takes in proptest::collection::vec(0usize..30_000, 0..30),
    ) {
        let mut output = Output::new();
        let (mut put, mut taken) = (Vec::new(), Vec::new());
        let mut takes = takes.into_iter();
        for (at, (shared, len)) in puts.into_iter().enumerate() {
            let bytes: Vec<u8> = (0..len).map(|i| (i + at) as u8).collect();
            put.extend_from_slice(&bytes);
            if shared {
                output.put_shared(Bytes::from(bytes));
            } else {
                output.put_slice(&bytes);
            }
            if let Some(len) = takes.next() {
                taken.extend(take(&mut output, len));
            }
            prop_assert_eq!(output.len(), put.len() - taken.len());
            prop_assert_eq!(output.written(), taken.len() as u64);
            prop_assert_eq!(&output.to_bytes()[..], &put[taken.len()..]);
        }
        while !output.is_empty() {
            let more = take(&mut output, usize::MAX);
            prop_assert!(!more.is_empty());
            taken.extend(more);
        }
        prop_assert_eq!(taken, put);
    }
}

#[test]
fn a_large_body_is_shared_and_a_small_one_copied() {
    let (small, large) = (Bytes::from(vec![1; 8_191]), Bytes::from(vec![2; 8_192]));
    let mut output = Output::new();
    output.put_shared(small);
    output.put_shared(large.clone());
    let mut slices = [IoSlice::new(&[]); 4];
    assert_eq!(output.slices(&mut slices), 2);
    assert_eq!(slices[1].as_ptr(), large.as_ptr());
}
