//! Checks of the whole tree. Each gathers what is wrong and fails with the list.

mod circles;
mod claims;
mod clean_code;
mod configuration;
mod documentation;
mod executable;
mod experiments;
mod function_docs;
mod layers;
mod length;
mod numbers;
mod paths;
mod required_files;
mod sans_io;
mod suites;

/// Fails with everything that was found, a line each.
fn assert_none(what: &str, faults: &[String]) {
    assert!(faults.is_empty(), "{what}:\n  {}\n", faults.join("\n  "));
}

/// Returns a text in one line: words that a page breaks over two are found in it.
fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns whether what stands there in the text is a part of these words.
fn is_within(text: &str, at: usize, words: &str) -> bool {
    text.match_indices(words).any(|(start, _)| (start..start + words.len()).contains(&at))
}
