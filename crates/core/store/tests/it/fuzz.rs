//! The fuzz targets with a fixed corpus and with random bytes.

use proptest::prelude::*;
use quelea_store::fuzzing::{fuzz_checkpoint, fuzz_records};

/// Returns the golden files, which are the corpus: every kind of record and block is in them.
fn corpus() -> Vec<Vec<u8>> {
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");
    let mut paths: Vec<_> = ["v1", "v1-visibility"]
        .iter()
        .map(|name| format!("{golden}/{name}"))
        .flat_map(|path| std::fs::read_dir(path).expect("the golden files are in the repository"))
        .map(|file| file.expect("a file").path())
        .collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).expect("its content")).collect()
}

#[test]
fn the_corpus_and_every_cut_of_it_is_refused_or_understood() {
    for content in corpus() {
        for (header, step) in [(512, 97), (64, 13), (0, 301)] {
            let Some(body) = content.get(header..) else { continue };
            for end in (0..body.len()).step_by(step) {
                fuzz_records(&body[..end]);
                fuzz_checkpoint(&body[..end]);
            }
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_refused_or_understood(data in prop::collection::vec(any::<u8>(), 0..600)) {
        fuzz_records(&data);
        fuzz_checkpoint(&data);
    }

    #[test]
    fn any_change_of_the_corpus_is_refused_or_understood(
        which in 0..8_usize,
        changes in prop::collection::vec((0..4_096_usize, any::<u8>()), 1..20),
    ) {
        let corpus = corpus();
        let mut data = corpus[which % corpus.len()].clone();
        for (at, value) in changes {
            let at = at % data.len();
            data[at] = value;
        }
        fuzz_records(data.get(512..).unwrap_or(&data));
        fuzz_checkpoint(data.get(64..).unwrap_or(&data));
    }
}
