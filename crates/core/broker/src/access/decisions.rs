//! Decisions on permissions that were taken, kept until a permission changes.

use std::hash::{Hash, Hasher};

use quelea_model::limits::ACCESS_CACHE_ENTRIES_MAX;
use quelea_model::same_text;
use rustc_hash::{FxHashMap, FxHasher};

use super::Operation;

/// What was asked: user, vhost, operation, and the texts that were looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Question<'a> {
    pub(super) user: &'a str,
    pub(super) vhost: &'a str,
    pub(super) operation: Operation,
    /// The queue or exchange.
    pub(super) resource: &'a str,
    /// Of a topic permission: the routing key and the client's identifier.
    pub(super) topic: Option<(&'a str, Option<&'a str>)>,
}

/// Answers, of one epoch of the permissions. A hit allocates nothing.
#[derive(Debug, Default)]
pub(super) struct Decisions {
    epoch: u64,
    entries: FxHashMap<u64, Entry>,
}

#[derive(Debug)]
struct Entry {
    /// The question's texts back to back, so that an accident of hashing is seen.
    texts: Box<str>,
    operation: Operation,
    /// Where each text but the last ends.
    ends: [u32; 4],
    kind: Kind,
    answer: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Resource,
    Topic,
    TopicOfClient,
}

impl Decisions {
    pub(super) fn get(&self, epoch: u64, question: Question<'_>) -> Option<bool> {
        if self.epoch != epoch {
            return None;
        }
        let entry = self.entries.get(&hash(question))?;
        entry.is_about(question).then_some(entry.answer)
    }

    /// Keeps an answer. At the limit, or in a new epoch, all older ones go first.
    pub(super) fn put(&mut self, epoch: u64, question: Question<'_>, answer: bool) {
        if self.epoch != epoch || self.entries.len() >= ACCESS_CACHE_ENTRIES_MAX {
            self.entries.clear();
            self.epoch = epoch;
        }
        self.entries.insert(hash(question), Entry::new(question, answer));
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}

impl Entry {
    fn new(question: Question<'_>, answer: bool) -> Self {
        let texts = texts(question);
        let mut ends = [0; 4];
        let mut end = 0;
        for (at, text) in texts.iter().take(ends.len()).enumerate() {
            end += text.len() as u32;
            ends[at] = end;
        }
        Self {
            texts: texts.concat().into_boxed_str(),
            operation: question.operation,
            ends,
            kind: kind(question),
            answer,
        }
    }

    fn is_about(&self, question: Question<'_>) -> bool {
        let mut start = 0;
        let ends = self.ends.iter().map(|end| *end as usize).chain([self.texts.len()]);
        self.operation == question.operation
            && self.kind == kind(question)
            && texts(question).iter().zip(ends).all(|(text, end)| {
                let same = self.texts.get(start..end).is_some_and(|have| same_text(have, text));
                start = end;
                same
            })
    }
}

const fn kind(question: Question<'_>) -> Kind {
    match question.topic {
        None => Kind::Resource,
        Some((_, None)) => Kind::Topic,
        Some((_, Some(_))) => Kind::TopicOfClient,
    }
}

fn texts(question: Question<'_>) -> [&str; 5] {
    let (routing_key, client) = question.topic.unwrap_or_default();
    [question.user, question.vhost, question.resource, routing_key, client.unwrap_or_default()]
}

fn hash(question: Question<'_>) -> u64 {
    let mut hasher = FxHasher::default();
    question.hash(&mut hasher);
    hasher.finish()
}
