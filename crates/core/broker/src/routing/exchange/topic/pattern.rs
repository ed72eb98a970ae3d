//! A pattern's words, in the one form of all patterns that match the same keys.

/// One part of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part<'a> {
    /// This very word.
    Word(&'a str),
    /// `*`: any one word.
    Star,
    /// `#`: any number of words, none included.
    Hash,
}

/// Returns the words of a key or pattern. The empty text has none, as in RabbitMQ; `.` has two
/// empty ones.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split('.').take(if text.is_empty() { 0 } else { usize::MAX })
}

/// Returns the pattern's parts, where of neighbouring `*` and `#` all `*` come first and one `#` is
/// left: `#.*`, `*.#` and `#.*.#` match the same keys, and so share their nodes.
pub(super) fn normal_form(pattern: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    for word in words(pattern) {
        let behind_hash = parts.last() == Some(&Part::Hash);
        match word {
            "#" if behind_hash => {}
            "#" => parts.push(Part::Hash),
            "*" if behind_hash => parts.insert(parts.len() - 1, Part::Star),
            "*" => parts.push(Part::Star),
            word => parts.push(Part::Word(word)),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_that_stand_together_have_one_form() {
        for pattern in ["*.#", "#.*", "#.*.#", "#.#.*.#.#"] {
            assert_eq!(normal_form(pattern), [Part::Star, Part::Hash], "{pattern}");
        }
        let parts = [Part::Word("a"), Part::Star, Part::Star, Part::Hash, Part::Word("")];
        assert_eq!(normal_form("a.*.#.*."), parts);
        assert_eq!(normal_form(""), []);
    }
}
