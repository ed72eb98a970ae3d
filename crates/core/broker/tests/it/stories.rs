//! Every story of tests/stories is a test.

use std::path::Path;

use crate::broker_test::StoreKind;
use crate::story::Story;

#[test]
fn every_story_comes_true_over_the_store_in_memory() {
    play_all(StoreKind::Memory);
}

#[test]
fn every_story_comes_true_over_the_log() {
    play_all(StoreKind::Log(512 * 1024));
}

fn play_all(store_kind: StoreKind) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stories");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    files.sort();
    let mut failures = Vec::new();
    let mut scenes = 0;
    for file in &files {
        let text = std::fs::read_to_string(file).unwrap();
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        for scene in Story::parse(&name, &text) {
            if store_kind != StoreKind::Memory && scene.is_for_memory() {
                continue;
            }
            scenes += 1;
            // A panic of the broker spoils its own scene only.
            let played = std::panic::catch_unwind(|| scene.play(store_kind));
            let outcome = played.unwrap_or_else(|_| Err(format!("{}: it panicked", scene.place)));
            failures.extend(outcome.err());
        }
    }
    assert!(scenes > 0, "there are stories");
    assert!(failures.is_empty(), "{} of {scenes} scenes:\n{}", failures.len(), failures.join("\n"));
}
