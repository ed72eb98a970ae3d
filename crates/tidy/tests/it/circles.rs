//! No files of a crate need each other in a circle, unless one of them is the parent of all others.

use std::fs;

use quelea_tidy::{Imports, Repository};

use crate::assert_none;

#[test]
fn no_files_import_each_other_in_a_circle() {
    let repository = Repository::open();
    let manifests = repository.files("", &["/Cargo.toml"]);
    let crates: Vec<&str> = manifests
        .iter()
        .filter_map(|path| path.strip_suffix("/Cargo.toml"))
        .filter(|path| repository.path(path).join("src").is_dir())
        .collect();
    assert!(crates.len() > 20, "the crates were found");
    let mut faults = Vec::new();
    for path in crates {
        let folder = format!("{path}/src");
        let files = repository.files(&folder, &[".rs"]).into_iter();
        let sources: Vec<(String, String)> = files
            .filter_map(|file| {
                let text = fs::read_to_string(repository.path(&file)).ok()?;
                Some((file.strip_prefix(&folder)?.trim_start_matches('/').to_owned(), text))
            })
            .collect();
        let circles = Imports::read(&sources).circles();
        faults.extend(circles.iter().map(|circle| format!("{path}: {}", circle.join(", "))));
    }
    assert_none("circles of files", &faults);
}
