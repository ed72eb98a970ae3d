//! A file holds one noun, and one can hold it in the head.

use quelea_tidy::Repository;

use crate::assert_none;

/// No file is longer.
const LINES_MAX: usize = 600;

#[test]
fn no_source_is_too_long() {
    let repository = Repository::open();
    let mut faults = Vec::new();
    for path in
        repository.files("", &[".rs", ".py", ".js", ".ts", ".svelte", ".java", ".go", ".sh"])
    {
        let lines = repository.read(&path).lines().count();
        if lines > LINES_MAX {
            faults.push(format!("{path}: {lines} lines, none may have more than {LINES_MAX}"));
        }
    }
    assert_none("long files", &faults);
}
