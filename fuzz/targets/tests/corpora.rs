//! Every input that the fuzzers start from, or that once broke something, is tried again.

use std::fs;
use std::path::{Path, PathBuf};

use quelea_fuzz_targets::TARGETS;

/// Seeds are read by people and run in every test.
const SEED_BYTES_MAX: usize = 64 * 1024;

/// Returns the folder `fuzz/`, or one below it.
fn fuzz_folder(below: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("fuzz/targets has a parent").join(below)
}

/// Returns what is in a folder, sorted.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths
}

/// Returns a path's last part without its ending.
fn stem(path: &Path) -> String {
    path.file_stem().expect("a listed path has a name").to_string_lossy().into_owned()
}

#[test]
fn every_input_of_the_corpora_is_still_handled() {
    for (name, target) in TARGETS {
        let seeds = entries(&fuzz_folder("corpus").join(name));
        assert!(!seeds.is_empty(), "fuzz/corpus/{name} has no seed");
        for path in seeds {
            let data = fs::read(&path).expect("a file that was listed");
            assert!(data.len() <= SEED_BYTES_MAX, "{path:?} is too large for a seed");
            eprintln!("{}", path.display()); // What a panic was caused by.
            target(&data);
            for cut in [1, data.len() / 2, data.len().saturating_sub(1)] {
                target(&data[..cut.min(data.len())]);
            }
        }
    }
}

#[test]
fn every_fuzz_target_is_built_and_has_its_corpus_replayed() {
    let targets = TARGETS.map(|(name, _)| name.to_owned());
    let manifest = fs::read_to_string(fuzz_folder("Cargo.toml")).expect("the fuzzers' manifest");
    let manifest: toml::Table = manifest.parse().expect("a manifest is TOML");
    let bins = manifest["bin"].as_array().into_iter().flatten();
    let mut bins: Vec<&str> = bins.filter_map(|bin| bin["name"].as_str()).collect();
    bins.sort_unstable();
    assert_eq!(bins, targets, "what fuzz/Cargo.toml builds");
    let programs: Vec<String> =
        entries(&fuzz_folder("fuzz_targets")).iter().map(|path| stem(path)).collect();
    assert_eq!(programs, targets, "the programs in fuzz/fuzz_targets");
    let corpora: Vec<String> =
        entries(&fuzz_folder("corpus")).iter().map(|path| stem(path)).collect();
    assert_eq!(corpora, targets, "the corpora in fuzz/corpus");
    for program in entries(&fuzz_folder("fuzz_targets")) {
        let source = fs::read_to_string(&program).expect("a file that was listed");
        assert!(source.contains(&format!("run(\"{}\"", stem(&program))), "{program:?}");
    }
}
