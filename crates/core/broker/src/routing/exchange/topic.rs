//! The topic exchange (AMQP 0-9-1 §3.1.3.3): keys are words with dots between them; in a binding's
//! pattern `*` stands for one word and `#` for any number of words, none included.
//!
//! No key costs more than [`TOPIC_STEPS_MAX`] steps, the listing of what it leads to apart, and this is
//! known before any key comes: each binding's worst case is computed when it is made (`topic/cost.rs`),
//! and one beyond the limit is refused. It has to be refused, for there is no way to match everything
//! quickly: whoever could answer whether a key of some hundred words fits any of `n` patterns of words
//! and `*` in much less than `n` steps, with tables that are not exponentially large, would have solved
//! the orthogonal vectors problem.

mod cost;
mod pattern;
mod positions;
#[cfg(test)]
mod tests;
mod trie;
mod vocabulary;
mod walk;

use quelea_model::limits::{TOPIC_HASHES_MAX, TOPIC_NODES_MAX, TOPIC_STEPS_MAX};

use super::targets::{RouteMatches, Target};
use crate::error::TopicLimit;
use cost::WORDS_MAX;
use pattern::{Part, normal_form, words};
use positions::{ManyPositions, Positions};
use trie::Trie;
use walk::Walk;

/// The bindings of a topic exchange.
#[derive(Debug, Default)]
pub(crate) struct Topic {
    trie: Trie,
    /// For keys of 63 words at most, which is nearly all.
    short: Walk<u64>,
    long: Walk<ManyPositions>,
}

impl Topic {
    /// Adds a binding, unless its pattern would take the exchange beyond a limit.
    ///
    /// # Errors
    /// [`TopicLimit`]; nothing has changed then.
    pub(crate) fn add(&mut self, pattern: &str, target: Target) -> Result<(), TopicLimit> {
        let parts = normal_form(pattern);
        let hashes = parts.iter().filter(|part| **part == Part::Hash).count();
        if hashes > TOPIC_HASHES_MAX {
            return Err(TopicLimit::Hashes { found: hashes });
        }
        let missing = self.trie.missing(&parts);
        if missing > 0 && self.trie.len() + missing > TOPIC_NODES_MAX {
            return Err(TopicLimit::Nodes);
        }
        let before = self.steps_max();
        self.trie.add(&parts, target);
        let steps = self.steps_max();
        // What was stored before there were limits may be beyond them; it must not become worse.
        if steps > before && steps > TOPIC_STEPS_MAX {
            self.trie.remove(&parts, target);
            return Err(TopicLimit::Steps { needed: steps });
        }
        Ok(())
    }

    /// Adds a binding that was made before, whatever the limits are today.
    pub(crate) fn restore(&mut self, pattern: &str, target: Target) {
        self.trie.add(&normal_form(pattern), target);
    }

    pub(crate) fn remove(&mut self, pattern: &str, target: Target) {
        self.trie.remove(&normal_form(pattern), target);
    }

    /// Returns the steps that it took. A key of more words than a short string can have leads nowhere.
    pub(crate) fn matches(&mut self, key: &str, found: &mut RouteMatches) -> u64 {
        let words = words(key).count();
        if words <= u64::LAST {
            self.short.run(&self.trie, key, found)
        } else if words <= ManyPositions::LAST {
            self.long.run(&self.trie, key, found)
        } else {
            debug_assert!(false, "a routing key is a short string");
            0
        }
    }

    /// Returns the steps that matching any key takes at most.
    fn steps_max(&self) -> u64 {
        WORDS_MAX as u64 + u64::from(self.trie.steps_max())
    }
}
