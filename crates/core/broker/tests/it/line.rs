//! One line of a story, taken apart.

use std::collections::BTreeMap;

use bytes::Bytes;
use quelea_model::{Table, Value};

/// One line, taken apart.
pub(crate) struct Line<'a> {
    pub(crate) command: &'a str,
    pub(crate) words: Vec<String>,
    options: BTreeMap<String, String>,
    /// What follows `=>`.
    pub(crate) answer: Option<String>,
}

impl<'a> Line<'a> {
    pub(crate) fn parse(text: &'a str) -> Self {
        let (text, answer) = match text.split_once("=>") {
            Some((text, answer)) => (text, Some(answer.trim().to_owned())),
            None => (text, None),
        };
        let mut parts = text.split_whitespace();
        let command = parts.next().unwrap_or_default();
        let mut words = Vec::new();
        let mut options = BTreeMap::new();
        for part in parts {
            match part.strip_prefix('-').filter(|rest| rest.starts_with(char::is_alphabetic)) {
                Some(option) => {
                    let (name, value) = option.split_once('=').unwrap_or((option, ""));
                    options.insert(name.to_owned(), value.to_owned());
                }
                None => words.extend(expand(part)),
            }
        }
        Self { command, words, options, answer }
    }

    pub(crate) fn has(&self, option: &str) -> bool {
        self.options.contains_key(option)
    }

    pub(crate) fn option(&self, option: &str) -> Option<&str> {
        self.options.get(option).map(String::as_str)
    }

    pub(crate) fn word(&self, at: usize) -> &str {
        self.words.get(at).map_or("", |word| if word == "''" { "" } else { word })
    }

    /// Returns the options that are no flags of the command itself.
    pub(crate) fn arguments(&self, flags: &[&str]) -> Table {
        let mut table = Table::new();
        for (name, text) in &self.options {
            if flags.contains(&name.as_str()) {
                continue;
            }
            let value = match (text.parse::<i32>(), text.as_str()) {
                (Ok(number), _) => Value::I32(number),
                (_, "true") => Value::Bool(true),
                (_, "false") => Value::Bool(false),
                (_, "''") => Value::text(""),
                _ => Value::text(text),
            };
            table.set(name, value);
        }
        table
    }
}

/// Expands a word: `m{1..3}` is `m1 m2 m3`.
fn expand(word: &str) -> Vec<String> {
    let range = word.split_once('{').and_then(|(prefix, rest)| {
        let (range, suffix) = rest.split_once('}')?;
        let (from, to) = range.split_once("..")?;
        Some((prefix, from.parse::<u32>().ok()?, to.parse::<u32>().ok()?, suffix))
    });
    match range {
        Some((prefix, from, to, suffix)) => {
            (from..=to).map(|n| format!("{prefix}{n}{suffix}")).collect()
        }
        None => vec![word.to_owned()],
    }
}

/// Returns the body that a word stands for: `a~500` is `a` and so many `~` that it has 500 bytes.
pub(crate) fn body(word: &str) -> Bytes {
    match word.split_once('~') {
        Some((name, size)) => {
            let size: usize = size.parse().expect("a size follows ~");
            Bytes::from(format!("{name:~<size$}"))
        }
        None => Bytes::copy_from_slice(word.as_bytes()),
    }
}
