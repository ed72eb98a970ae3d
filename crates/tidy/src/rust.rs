//! Rust sources without what is not code.

/// A line that has code on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeLine<'a> {
    /// Counted from 1.
    pub number: usize,
    /// The line up to its comment.
    pub code: &'a str,
}

/// Returns the lines of a source without comments. Block comments are not looked for: we write
/// none. A `//` within a string ends the line too, which no check here minds.
pub fn code_lines(source: &str) -> impl Iterator<Item = CodeLine<'_>> {
    source.lines().enumerate().filter_map(|(at, line)| {
        let code = line.split_once("//").map_or(line, |(code, _)| code);
        (!code.trim().is_empty()).then_some(CodeLine { number: at + 1, code })
    })
}

/// Returns a source without comments and without what is compiled for tests only: the item that an attribute
/// `cfg(test)` is for ends at the first line that ends it at the attribute's own indentation. Lines keep their
/// numbers.
#[must_use]
pub fn product_code(source: &str) -> String {
    let mut code = String::new();
    let mut lines = source.lines();
    while let Some(line) = lines.next() {
        let indentation = &line[..line.len() - line.trim_start().len()];
        if line.trim() == "#[cfg(test)]" {
            let ends = |line: &str| {
                line.strip_prefix(indentation).is_some_and(|rest| {
                    !rest.starts_with([' ', '#']) && rest.trim_end().ends_with(['}', ';', ','])
                })
            };
            code.push('\n');
            for line in lines.by_ref() {
                code.push('\n');
                if ends(line) {
                    break;
                }
            }
            continue;
        }
        code.push_str(line.split("//").next().unwrap_or_default());
        code.push('\n');
    }
    code
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

    #[test]
    fn what_only_tests_compile_is_no_product_code() {
        let source = "a(); // b\n#[cfg(test)]\nmod tests {\n    c();\n}\nd();\n";
        assert_eq!(product_code(source), "a(); \n\n\n\n\nd();\n");
    }
}
