//! What is written above a function says what it does or returns.

use quelea_tidy::Repository;

use crate::assert_none;

/// What begins a noun or half a sentence, where a verb should stand.
const NO_VERBS: [&str; 24] = [
    "A",
    "All",
    "An",
    "As",
    "Both",
    "By",
    "Each",
    "Every",
    "Everything",
    "For",
    "From",
    "How",
    "Its",
    "Of",
    "One",
    "The",
    "Those",
    "What",
    "When",
    "Where",
    "Whether",
    "Which",
    "Who",
    "Whose",
];

#[test]
fn what_is_written_above_a_function_that_returns_begins_with_a_verb() {
    let repository = Repository::open();
    let mut faults = Vec::new();
    for path in repository.files("", &[".rs"]) {
        let source = repository.read(&path);
        let docs = docs_of_functions_that_return(&source);
        let wrong = docs.filter(|(_, doc)| {
            let first = doc.split_whitespace().next().unwrap_or_default();
            NO_VERBS.contains(&first.trim_end_matches([',', '.', ':', ';']))
        });
        faults.extend(wrong.map(|(line, doc)| format!("{path}:{line}: {doc}")));
    }
    assert_none("begin with \"Returns\" or with what the function does", &faults);
}

/// Returns the first line of each comment above a function that returns something, with its
/// number.
fn docs_of_functions_that_return(source: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let start = at;
        at += count(&lines[at..], |line| line.starts_with("///"));
        if at == start {
            at += 1;
            continue;
        }
        let mut depth = 0;
        let item = at
            + count(&lines[at..], |line| {
                let is_attribute = depth > 0 || line.starts_with("#[");
                depth += line.matches('[').count() as i32 - line.matches(']').count() as i32;
                is_attribute
            });
        let rest = &lines[item.min(lines.len())..];
        let ends = |line: &str| line.contains('{') || line.ends_with(';');
        let signature = rest[..rest.len().min(1 + count(rest, |line| !ends(line)))].join(" ");
        if is_function(&signature) && signature.contains("->") {
            found.push((start + 1, lines[start].trim_start_matches("/// ")));
        }
    }
    found.into_iter()
}

/// Returns how many lines from the first on are such ones.
fn count(lines: &[&str], mut is_one: impl FnMut(&str) -> bool) -> usize {
    lines.iter().take_while(|line| is_one(line)).count()
}

fn is_function(signature: &str) -> bool {
    let before = signature.split(" fn ").next().unwrap_or_default();
    let is_modifier =
        |word| matches!(word, "const" | "async" | "unsafe" | "extern" | "\"C\"" | "default");
    signature.starts_with("fn ")
        || before != signature
            && before.split(' ').all(|word| word.starts_with("pub") || is_modifier(word))
}

#[test]
fn the_first_line_above_a_function_is_found() {
    let source = "/// The one.\n#[must_use]\n#[a(\n  b[0],\n)]\npub(crate) const fn one(\n    a: u8,\n) -> u8 {\n}\n\
                  /// The two.\nfn two() {}\n/// The three.\nstruct Three(fn(u8) -> u8);\n    /// Four.\n    /// More.\n    fn four() -> u8;\n";
    let found: Vec<_> = docs_of_functions_that_return(source).collect();
    assert_eq!(found, [(1, "The one."), (14, "Four.")]);
}
