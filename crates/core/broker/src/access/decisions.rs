//! Decisions on permissions, kept until a permission changes.

use std::hash::{Hash, Hasher};

use quelea_model::limits::ACCESS_CACHE_ENTRIES_MAX;
use quelea_model::same_text;
use rustc_hash::{FxHashMap, FxHasher};

use super::Operation;

/// What was asked: user, vhost, operation, and the texts that were looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct AccessQuery<'a> {
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
pub(super) struct DecisionCache {
    epoch: u64,
    entries: FxHashMap<u64, Entry>,
}

#[derive(Debug)]
struct Entry {
    /// The query's texts back to back, so that an accident of hashing is seen.
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

impl DecisionCache {
    pub(super) fn get(&self, epoch: u64, query: AccessQuery<'_>) -> Option<bool> {
        if self.epoch != epoch {
            return None;
        }
        let entry = self.entries.get(&hash(query))?;
        entry.is_about(query).then_some(entry.answer)
    }

    /// Keeps an answer. At the limit, or in a new epoch, all older ones go first.
    pub(super) fn put(&mut self, epoch: u64, query: AccessQuery<'_>, answer: bool) {
        if self.epoch != epoch || self.entries.len() >= ACCESS_CACHE_ENTRIES_MAX {
            self.entries.clear();
            self.epoch = epoch;
        }
        self.entries.insert(hash(query), Entry::new(query, answer));
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}

impl Entry {
    fn new(query: AccessQuery<'_>, answer: bool) -> Self {
        let texts = texts(query);
        let mut ends = [0; 4];
        let mut end = 0;
        for (at, text) in texts.iter().take(ends.len()).enumerate() {
            end += text.len() as u32;
            ends[at] = end;
        }
        Self {
            texts: texts.concat().into_boxed_str(),
            operation: query.operation,
            ends,
            kind: kind(query),
            answer,
        }
    }

    fn is_about(&self, query: AccessQuery<'_>) -> bool {
        let mut start = 0;
        let ends = self.ends.iter().map(|end| *end as usize).chain([self.texts.len()]);
        self.operation == query.operation
            && self.kind == kind(query)
            && texts(query).iter().zip(ends).all(|(text, end)| {
                let same = self.texts.get(start..end).is_some_and(|have| same_text(have, text));
                start = end;
                same
            })
    }
}

const fn kind(query: AccessQuery<'_>) -> Kind {
    match query.topic {
        None => Kind::Resource,
        Some((_, None)) => Kind::Topic,
        Some((_, Some(_))) => Kind::TopicOfClient,
    }
}

fn texts(query: AccessQuery<'_>) -> [&str; 5] {
    let (routing_key, client) = query.topic.unwrap_or_default();
    [query.user, query.vhost, query.resource, routing_key, client.unwrap_or_default()]
}

fn hash(query: AccessQuery<'_>) -> u64 {
    let mut hasher = FxHasher::default();
    query.hash(&mut hasher);
    hasher.finish()
}
