//! The header in the tree is the one that the sources give.

use std::env;
use std::fs;
use std::path::Path;

/// Set to write the header instead of comparing it.
const WRITE: &str = "QUELEA_BLESS";

#[test]
fn the_header_is_what_the_sources_say() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = here.join("include/quelea_cmq.h");
    let config = cbindgen::Config::from_file(here.join("cbindgen.toml")).expect("the settings");
    let bindings = cbindgen::Builder::new()
        .with_crate(here)
        .with_config(config)
        .generate()
        .expect("the sources");
    let mut header = Vec::new();
    bindings.write(&mut header);
    let header = String::from_utf8(header).expect("a header is text");
    if env::var_os(WRITE).is_some() {
        fs::write(&path, &header).expect("the header can be written");
    }
    let kept = fs::read_to_string(&path).expect("the header is in the tree");
    assert!(
        kept == header,
        "include/quelea_cmq.h is not what cbindgen writes: set {WRITE}=1 and run again"
    );
}
