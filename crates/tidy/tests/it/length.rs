//! A file holds one noun, and one can hold it in the head.

use quelea_tidy::Repository;

use crate::assert_none;

/// No file is longer.
const LINES_MAX: usize = 1_000;

/// Beyond this a file needs a reason, in [`LONG`].
const LINES_WITHOUT_REASON: usize = 600;

/// Files that are long, with the reason.
const LONG: [(&str, &str); 1] = [(
    "crates/core/store/tests/it/world.rs",
    "one harness: a store, its disk, and the model beside them",
)];

#[test]
fn sources_are_short_or_say_why_they_are_not() {
    let repository = Repository::open();
    let mut faults = Vec::new();
    let mut long = Vec::new();
    for path in repository.files("", &[".rs", ".py", ".js", ".java", ".go", ".sh"]) {
        let lines = repository.read(&path).lines().count();
        let reason = LONG.iter().find(|(long, _)| *long == path);
        if lines > LINES_MAX {
            faults.push(format!("{path}: {lines} lines, none may have more than {LINES_MAX}"));
        } else if lines > LINES_WITHOUT_REASON && reason.is_none() {
            faults.push(format!("{path}: {lines} lines and no reason in LONG"));
        }
        if lines > LINES_WITHOUT_REASON {
            long.push(path);
        }
    }
    let stale = LONG.iter().filter(|(path, _)| !long.iter().any(|long| long == path));
    faults.extend(stale.map(|(path, _)| format!("{path}: needs its reason no longer")));
    assert_none("long files", &faults);
}
