//! The topic exchange (AMQP 0-9-1 §3.1.3.3): keys are words with dots between them; in a binding's
//! pattern `*` stands for one word and `#` for any number of words, none included.
//!
//! The patterns form a trie. A key is matched by walking all the paths that fit at the same time,
//! word by word, as one simulates a finite automaton: no node is visited twice for one word, so the
//! cost is at most words × nodes, however many `#` the patterns have.

use slab::Slab;

use super::ByText;
use super::targets::{RouteMatches, Target, Targets};

const ROOT: u32 = 0;

/// The bindings of a topic exchange.
#[derive(Debug)]
pub(crate) struct Topic {
    nodes: Slab<Node>,
    /// Number of the current step over all keys ever matched; see [`Node::visited`].
    step: u64,
    /// Nodes that the words so far lead to. Kept between calls for its allocation.
    active: Vec<u32>,
    /// The same after the next word.
    next: Vec<u32>,
}

#[derive(Debug, Default)]
struct Node {
    words: ByText<Box<str>, u32>,
    star: Option<u32>,
    hash: Option<u32>,
    /// Stays where it is on any word: it stands for a `#`.
    is_hash: bool,
    /// The last step that reached this node.
    visited: u64,
    targets: Targets,
}

/// The words of a key or pattern. The empty text has none, as in RabbitMQ; `.` has two empty ones.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split('.').take(if text.is_empty() { 0 } else { usize::MAX })
}

impl Default for Topic {
    fn default() -> Self {
        let mut nodes = Slab::new();
        nodes.insert(Node::default());
        Self { nodes, step: 0, active: Vec::new(), next: Vec::new() }
    }
}

impl Topic {
    pub(crate) fn add(&mut self, pattern: &str, target: Target) {
        let mut at = ROOT;
        for word in words(pattern) {
            at = match self.child(at, word) {
                Some(child) => child,
                None => self.grow(at, word),
            };
        }
        self.nodes[at as usize].targets.add(target);
    }

    pub(crate) fn remove(&mut self, pattern: &str, target: Target) {
        let mut path = vec![ROOT];
        for word in words(pattern) {
            let Some(child) = self.child(path[path.len() - 1], word) else { return };
            path.push(child);
        }
        self.nodes[path[path.len() - 1] as usize].targets.remove(target);
        self.prune(pattern, &path);
    }

    pub(crate) fn matches(&mut self, key: &str, found: &mut RouteMatches) {
        let mut active = std::mem::take(&mut self.active);
        let mut next = std::mem::take(&mut self.next);
        self.step += 1;
        self.enter(ROOT, &mut active);
        for word in words(key) {
            self.step += 1;
            for at in active.drain(..) {
                self.advance(at, word, &mut next);
            }
            std::mem::swap(&mut active, &mut next);
            if active.is_empty() {
                break;
            }
        }
        for at in active.drain(..) {
            found.add_all(&self.nodes[at as usize].targets);
        }
        self.active = active;
        self.next = next;
    }

    /// Goes on from one node by one word.
    fn advance(&mut self, at: u32, word: &str, next: &mut Vec<u32>) {
        let node = &self.nodes[at as usize];
        let (stays, star, literal) = (node.is_hash, node.star, node.words.get(word).copied());
        if stays {
            self.enter(at, next);
        }
        for child in [star, literal].into_iter().flatten() {
            self.enter(child, next);
        }
    }

    /// Reaches a node, and through it the `#` nodes that stand for no word at all.
    fn enter(&mut self, at: u32, reached: &mut Vec<u32>) {
        let mut at = Some(at);
        while let Some(here) = at {
            let node = &mut self.nodes[here as usize];
            if node.visited == self.step {
                return;
            }
            node.visited = self.step;
            reached.push(here);
            at = node.hash;
        }
    }

    fn child(&self, at: u32, word: &str) -> Option<u32> {
        let node = &self.nodes[at as usize];
        match word {
            "*" => node.star,
            "#" => node.hash,
            _ => node.words.get(word).copied(),
        }
    }

    fn grow(&mut self, at: u32, word: &str) -> u32 {
        let child = self.nodes.insert(Node { is_hash: word == "#", ..Node::default() }) as u32;
        let node = &mut self.nodes[at as usize];
        match word {
            "*" => node.star = Some(child),
            "#" => node.hash = Some(child),
            _ => {
                node.words.insert(Box::from(word), child);
            }
        }
        child
    }

    /// Takes away the nodes at the end of a path that nothing needs any more.
    fn prune(&mut self, pattern: &str, path: &[u32]) {
        let words: Vec<&str> = words(pattern).collect();
        for depth in (1..path.len()).rev() {
            let node = &self.nodes[path[depth] as usize];
            let needed = !node.targets.is_empty()
                || !node.words.is_empty()
                || node.star.is_some()
                || node.hash.is_some();
            if needed {
                return;
            }
            self.nodes.remove(path[depth] as usize);
            let parent = &mut self.nodes[path[depth - 1] as usize];
            match words[depth - 1] {
                "*" => parent.star = None,
                "#" => parent.hash = None,
                word => {
                    parent.words.remove(word);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use quelea_model::QueueId;

    use super::*;

    const ONE: Target = Target::Queue(QueueId(1));

    fn fits(pattern: &str, key: &str) -> bool {
        let mut topic = Topic::default();
        topic.add(pattern, ONE);
        !queues(&mut topic, key).is_empty()
    }

    fn queues(topic: &mut Topic, key: &str) -> Vec<QueueId> {
        let mut found = RouteMatches::default();
        topic.matches(key, &mut found);
        found.queues.sort_unstable();
        found.queues
    }

    /// The definition, without any thought of speed.
    fn fits_by_definition(pattern: &[&str], key: &[&str]) -> bool {
        match (pattern, key) {
            ([], []) => true,
            (["#", rest @ ..], _) => {
                (0..=key.len()).any(|skipped| fits_by_definition(rest, &key[skipped..]))
            }
            (["*", rest @ ..], [_, key @ ..]) => fits_by_definition(rest, key),
            ([word, rest @ ..], [first, key @ ..]) => {
                word == first && fits_by_definition(rest, key)
            }
            _ => false,
        }
    }

    #[test]
    fn a_star_is_one_word_and_a_hash_any_number_of_them() {
        let cases = [
            ("a.b", "a.b", true),
            ("a.b", "a.b.c", false),
            ("*.b", "a.b", true),
            ("*", "a.b", false),
            ("#", "", true),
            ("#", "a.b.c", true),
            ("a.#", "a", true),
            ("a.#", "a.b.c", true),
            ("a.#", "b", false),
            ("#.c", "c", true),
            ("#.c", "a.b.c", true),
            ("a.#.z", "a.z", true),
            ("a.#.z", "a.b.c.z", true),
            ("a.#.z", "a.b.c", false),
            ("#.#", "", true),
            ("#.#.#", "x", true),
            ("#.*", "", false),
            ("#.*.#", "x", true),
            ("*.#.*", "x", false),
            ("a*", "ab", false),
        ];
        for (pattern, key, expected) in cases {
            assert_eq!(fits(pattern, key), expected, "pattern {pattern:?}, key {key:?}");
        }
    }

    #[test]
    fn an_empty_word_is_a_word_and_an_empty_key_has_none() {
        let cases = [
            ("", "", true),
            ("*", "", false),
            ("*.*", ".", true),
            (".", ".", true),
            ("a.", "a", false),
            ("a.*", "a.", true),
            ("a..b", "a..b", true),
            ("a.*.b", "a..b", true),
            ("#", "...", true),
        ];
        for (pattern, key, expected) in cases {
            assert_eq!(fits(pattern, key), expected, "pattern {pattern:?}, key {key:?}");
        }
    }

    #[test]
    fn the_longest_key_against_the_worst_patterns_stays_cheap() {
        let mut topic = Topic::default();
        for queue in 0..64u32 {
            let pattern = format!("{}b", "#.a.".repeat(queue as usize % 60 + 1));
            topic.add(&pattern, Target::Queue(QueueId(queue)));
        }
        let key = "a.".repeat(127);
        assert_eq!(key.len(), 254);
        assert!(queues(&mut topic, &key).is_empty());
        // One visit of a node for each word, and two steps more for the ends.
        assert!(topic.step <= 130);
        assert!(topic.active.capacity() <= topic.nodes.len().next_power_of_two());
        let key = format!("{}b", "a.".repeat(126));
        assert_eq!(queues(&mut topic, &key).len(), 64);
    }

    #[test]
    fn a_removed_pattern_leaves_no_node_behind() {
        let mut topic = Topic::default();
        let patterns = ["a.#.b", "a.#", "#", "*.x.*", "", "a.b.c", "a.b"];
        for pattern in patterns {
            topic.add(pattern, ONE);
            topic.add(pattern, ONE);
        }
        for _ in 0..2 {
            assert!(topic.nodes.len() > 1);
            patterns.iter().for_each(|pattern| topic.remove(pattern, ONE));
        }
        assert_eq!(topic.nodes.len(), 1);
        topic.remove("never.bound", ONE);
        assert!(queues(&mut topic, "a.b").is_empty());
    }

    fn text(word: &'static str, words: std::ops::Range<usize>) -> impl Strategy<Value = String> {
        proptest::collection::vec(proptest::string::string_regex(word).unwrap(), words)
            .prop_map(|words| words.join("."))
    }

    proptest! {
        #[test]
        fn the_trie_agrees_with_the_definition(
            patterns in proptest::collection::vec(text("[ab#*]|", 0..7), 1..12),
            removed in proptest::collection::vec(any::<bool>(), 12),
            keys in proptest::collection::vec(text("[ab]|", 0..8), 1..12),
        ) {
            let mut topic = Topic::default();
            for (at, pattern) in patterns.iter().enumerate() {
                topic.add(pattern, Target::Queue(QueueId(at as u32)));
            }
            for (at, pattern) in patterns.iter().enumerate().filter(|(at, _)| removed[*at]) {
                topic.remove(pattern, Target::Queue(QueueId(at as u32)));
            }
            for key in &keys {
                let key_words: Vec<&str> = words(key).collect();
                let expected: Vec<QueueId> = patterns
                    .iter()
                    .enumerate()
                    .filter(|(at, _)| !removed[*at])
                    .filter(|(_, pattern)| {
                        fits_by_definition(&words(pattern).collect::<Vec<_>>(), &key_words)
                    })
                    .map(|(at, _)| QueueId(at as u32))
                    .collect();
                let mut found = queues(&mut topic, key);
                let with_repetitions = found.len();
                found.dedup();
                prop_assert_eq!(with_repetitions, found.len(), "no target twice");
                prop_assert_eq!(found, expected, "key {:?}", key);
            }
        }
    }
}
