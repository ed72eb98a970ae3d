//! A permission's pattern, as RabbitMQ means it, and as the broker's own users have it: a regular expression that is
//! searched anywhere in the name; the empty pattern fits no queue.

use quelea_model::limits::{PATTERN_BYTES_MAX, PATTERN_COMPILED_BYTES_MAX};
use quelea_sqs_protocol::Fault;
use regex::{Regex, RegexBuilder};

/// A pattern that was accepted.
#[derive(Clone, Debug)]
pub(crate) enum NamePattern {
    /// The empty pattern.
    Nothing,
    /// `.*`: what nearly everybody has.
    Everything,
    /// Any other.
    Expression(Regex),
}

impl NamePattern {
    /// Compiles a pattern.
    pub(crate) fn parse(text: &str) -> Result<Self, Fault> {
        if text.len() > PATTERN_BYTES_MAX {
            let bytes = text.len();
            return Err(Fault::Invalid(format!(
                "a pattern is {bytes} bytes long, the limit is {PATTERN_BYTES_MAX}"
            )));
        }
        match text {
            "" => Ok(Self::Nothing),
            ".*" | "^.*$" | "^.*" | ".*$" => Ok(Self::Everything),
            text => {
                let compiled =
                    RegexBuilder::new(text).size_limit(PATTERN_COMPILED_BYTES_MAX).build();
                let refused =
                    |_| Fault::Invalid(format!("the pattern {text:?} is no regular expression"));
                compiled.map(Self::Expression).map_err(refused)
            }
        }
    }

    /// Returns whether it is found in the name of a queue.
    pub(crate) fn fits(&self, name: &str) -> bool {
        match self {
            Self::Nothing => false,
            Self::Everything => true,
            Self::Expression(expression) => expression.is_match(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_searched_anywhere_in_the_name() {
        for (pattern, name, fits) in [
            (".*", "orders", true),
            ("", "orders", false),
            ("der", "orders", true),
            ("^order", "reorders", false),
            ("^orders$", "orders", true),
        ] {
            assert_eq!(NamePattern::parse(pattern).unwrap().fits(name), fits, "{pattern} {name}");
        }
        for bad in ["(", &"x".repeat(PATTERN_BYTES_MAX + 1), "(a{1000}){1000}"] {
            assert!(matches!(NamePattern::parse(bad), Err(Fault::Invalid(_))), "{bad:.20}");
        }
    }
}
