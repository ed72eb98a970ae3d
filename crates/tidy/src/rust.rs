//! Rust sources without what is not code.

/// A line that has code on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeLine<'a> {
    /// Counted from 1.
    pub number: usize,
    /// The line up to its comment.
    pub code: &'a str,
}

/// The lines of a source without comments. Block comments are not looked for: we write none. A `//`
/// within a string ends the line too, which no check here minds.
pub fn code_lines(source: &str) -> impl Iterator<Item = CodeLine<'_>> {
    source.lines().enumerate().filter_map(|(at, line)| {
        let code = line.split_once("//").map_or(line, |(code, _)| code);
        (!code.trim().is_empty()).then_some(CodeLine { number: at + 1, code })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_no_code() {
        let source = "//! std::net\nlet a = 1; // std::net\n\n    /// std::net\nfn b() {}\n";
        let lines: Vec<_> = code_lines(source).map(|line| (line.number, line.code)).collect();
        assert_eq!(lines, [(2, "let a = 1; "), (5, "fn b() {}")]);
    }
}
