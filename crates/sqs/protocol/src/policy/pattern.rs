//! Patterns with `*` (any letters) and `?` (any one letter).

/// A pattern for a whole text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern(Vec<char>);

impl Pattern {
    pub(super) fn new(text: &str) -> Self {
        Self(text.chars().collect())
    }

    /// Returns whether a text fits. Each star takes as little as it can, and more when what follows
    /// does not fit: no more steps than the two lengths multiplied.
    pub(super) fn fits(&self, text: &str) -> bool {
        let pattern = &self.0;
        let mut rest = text.chars();
        let mut at = 0;
        // After the last star, and the text that it has not taken yet.
        let mut star = None;
        loop {
            let before = rest.clone();
            let next = rest.next();
            match (pattern.get(at), next) {
                (Some('*'), _) => {
                    at += 1;
                    star = Some((at, before.clone()));
                    rest = before;
                }
                (None, None) => return true,
                (Some(letter), Some(next)) if *letter == '?' || *letter == next => at += 1,
                _ => {
                    let Some((after, mut taken)) = star else { return false };
                    if taken.next().is_none() {
                        return false;
                    }
                    at = after;
                    rest = taken.clone();
                    star = Some((after, taken));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Follows the definition, word for word, and is exponential.
    fn fits_by_definition(pattern: &[char], text: &[char]) -> bool {
        match (pattern, text) {
            ([], []) => true,
            (['*', rest @ ..], _) => {
                fits_by_definition(rest, text)
                    || matches!(text, [_, tail @ ..] if fits_by_definition(pattern, tail))
            }
            ([letter, rest @ ..], [next, tail @ ..]) if *letter == '?' || letter == next => {
                fits_by_definition(rest, tail)
            }
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn a_pattern_fits_what_its_definition_says(
            pattern in "[abé*?]{0,8}",
            text in "[abé*?]{0,10}",
        ) {
            let letters = |text: &str| text.chars().collect::<Vec<_>>();
            let expected = fits_by_definition(&letters(&pattern), &letters(&text));
            prop_assert_eq!(Pattern::new(&pattern).fits(&text), expected);
        }
    }

    #[test]
    fn many_stars_do_not_take_for_ever() {
        let pattern = Pattern::new(&"*a".repeat(2000));
        assert!(!pattern.fits(&format!("{}b", "a".repeat(4000))));
    }
}
