//! A permission's pattern, as RabbitMQ means it: a regular expression that is searched anywhere in
//! the name; the empty pattern fits the empty name alone.

use quelea_model::limits::{PATTERN_BYTES_MAX, PATTERN_COMPILED_BYTES_MAX};
use regex::{Regex, RegexBuilder};

use super::AccessError;

/// Checks whether the text of `field` can be a pattern of a permission.
///
/// # Errors
/// [`AccessError::Pattern`] with field, text and reason.
pub fn check_pattern(field: &'static str, text: &str) -> Result<(), AccessError> {
    NamePattern::parse(field, text).map(drop)
}

/// A pattern that was accepted.
#[derive(Debug)]
pub(super) enum NamePattern {
    /// `.*`: what nearly everybody has.
    Everything,
    /// The empty pattern.
    Empty,
    /// Any other.
    Expression(Regex),
    /// Holds a variable such as `{username}`: see [`NamePattern::expand`].
    Template(Box<str>),
}

impl NamePattern {
    /// Compiles the text of `field`.
    ///
    /// # Errors
    /// [`AccessError::Pattern`] with field, text and reason.
    pub(super) fn parse(field: &'static str, text: &str) -> Result<Self, AccessError> {
        let refused = |reason: String| {
            let pattern = Box::from(text);
            AccessError::Pattern { field, pattern, reason }
        };
        if text.len() > PATTERN_BYTES_MAX {
            let len = text.len();
            return Err(refused(format!(
                "it is {len} bytes long, the limit is {PATTERN_BYTES_MAX}"
            )));
        }
        match text {
            "" => Ok(Self::Empty),
            ".*" | "^.*$" | "^.*" | ".*$" => Ok(Self::Everything),
            text => compile(text).map(Self::Expression).map_err(|error| refused(reason(&error))),
        }
    }

    /// Compiles the text of a topic permission, which may hold `variables`.
    ///
    /// # Errors
    /// As [`NamePattern::parse`], which is tried with harmless values for the variables.
    pub(super) fn parse_template(
        field: &'static str,
        text: &str,
        variables: &[&str],
    ) -> Result<Self, AccessError> {
        if !variables.iter().any(|name| text.contains(&placeholder(name))) {
            return Self::parse(field, text);
        }
        let values = variables.iter().map(|name| (*name, "x"));
        Self::parse(field, &substitute(text, values)).map_err(|error| match error {
            AccessError::Pattern { field, reason, .. } => {
                AccessError::Pattern { field, pattern: Box::from(text), reason }
            }
            other => other,
        })?;
        Ok(Self::Template(Box::from(text)))
    }

    /// Returns whether the pattern is found in a name. `variables` are for templates: a name
    /// without braces and its value, which stands for itself: RabbitMQ would read an expression in
    /// it.
    pub(super) fn fits(&self, name: &str, variables: &[(&str, &str)]) -> bool {
        match self {
            Self::Everything => true,
            Self::Empty => name.is_empty(),
            Self::Expression(expression) => expression.is_match(name),
            // Too large with these values is refused: nobody gets in by a long name.
            Self::Template(text) => compile(&substitute(text, variables.iter().copied()))
                .is_ok_and(|expression| expression.is_match(name)),
        }
    }
}

fn compile(text: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(text).size_limit(PATTERN_COMPILED_BYTES_MAX).build()
}

/// Returns the error's sentence: it is the last line of the crate's picture of the error.
fn reason(error: &regex::Error) -> String {
    let text = error.to_string();
    let line = text.lines().last().unwrap_or(&text);
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

fn placeholder(name: &str) -> String {
    format!("{{{name}}}")
}

fn substitute<'a>(text: &str, values: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    values.fold(text.to_owned(), |text, (name, value)| {
        text.replace(&placeholder(name), &regex::escape(value))
    })
}
