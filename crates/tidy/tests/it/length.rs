//! A file holds one noun, and one can hold it in the head.

use quelea_tidy::Repository;

use crate::assert_none;

/// No file is longer.
const LINES_MAX: usize = 600;

/// Words of a test's name: a sentence that one reads at a glance, of some twelve.
const NAME_WORDS_MAX: usize = 14;

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

#[test]
fn no_name_of_a_test_is_too_long() {
    let repository = Repository::open();
    let mut faults = Vec::new();
    for path in repository.files("", &[".rs", ".py"]) {
        for name in repository.read(&path).lines().filter_map(function_without_result) {
            let words = name.trim_start_matches("test_").split('_').count();
            if words > NAME_WORDS_MAX {
                faults
                    .push(format!("{path}: {name} has {words} words, {NAME_WORDS_MAX} are enough"));
            }
        }
    }
    assert_none("long names", &faults);
}

/// Returns the name of a function whose line looks as that of a test does.
fn function_without_result(line: &str) -> Option<&str> {
    let line = line.trim_start().trim_start_matches("async ");
    let name = line.strip_prefix("fn ").or_else(|| line.strip_prefix("def test_"))?;
    let is_python = line.starts_with("def ");
    let (name, rest) = name.split_once('(')?;
    (is_python || rest.starts_with(')') && !rest.contains("->")).then_some(name)
}
