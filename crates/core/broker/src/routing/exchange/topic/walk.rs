//! Going through the tree with a key.
//!
//! Each node is visited once at most, with the set of all positions in the key that the pattern's parts
//! up to it can reach: `*` and a word move these positions on by one word, `#` reaches all from the
//! first of them on. So neither many `#` nor a long key make the same node cost twice.

use super::pattern::words;
use super::positions::Positions;
use super::trie::{Literals, ManyLiterals, ROOT, Trie};
use super::vocabulary::{Vocabulary, WordId};
use crate::routing::exchange::targets::RouteMatches;

/// What a walk needs; kept between keys for its allocations.
#[derive(Debug, Default)]
pub(super) struct Walk<P> {
    key: KeyPlaces<P>,
    /// Nodes to visit, with the positions that reach them.
    open: Vec<(u32, P)>,
}

impl<P: Positions> Walk<P> {
    /// Adds what fits a key of `P::LAST` words at most. Returns the steps that it took.
    pub(super) fn run(&mut self, trie: &Trie, key: &str, found: &mut RouteMatches) -> u64 {
        self.key.read(&trie.vocabulary, key);
        let last = self.key.words.len();
        let mut steps = last as u64;
        self.open.push((ROOT, P::single(0)));
        while let Some((at, positions)) = self.open.pop() {
            let node = trie.node(at);
            if positions.contains(last) && !node.targets.is_empty() {
                found.add_all(&node.targets);
            } else if !trie.always_lists(node) {
                steps += 1;
            }
            if let Some(hash) = node.hash {
                self.open.push((hash, positions.all_from_first(last)));
            }
            let before_words = positions.minus(P::single(last));
            if before_words.is_empty() {
                continue;
            }
            if let Some(star) = node.star {
                self.open.push((star, before_words.behind_next_word()));
            }
            match &node.literals {
                Literals::None => {}
                Literals::One(word, child) => {
                    steps += 1;
                    self.enter(before_words, *word, *child);
                }
                Literals::Many(many) => steps += self.look_up(before_words, many),
            }
        }
        steps
    }

    /// Goes on to the children whose words stand behind these positions, by whichever are fewer.
    /// Returns how many it looked up.
    fn look_up(&mut self, before_words: P, literals: &ManyLiterals) -> u64 {
        let children = &literals.children;
        let mut left = before_words.and(self.key.known);
        let mut steps = 0;
        if children.len() < left.len().min(self.key.different) {
            for (word, child) in children {
                steps += 1;
                self.enter(left, *word, *child);
            }
            return steps;
        }
        while let Some(position) = left.first() {
            steps += 1;
            let word = self.key.words[position];
            if let Some(child) = children.get(&word) {
                self.enter(left, word, *child);
            }
            left = left.minus(self.key.places(word));
        }
        steps
    }

    fn enter(&mut self, before_words: P, word: WordId, child: u32) {
        let here = before_words.and(self.key.places(word));
        if !here.is_empty() {
            self.open.push((child, here.behind_next_word()));
        }
    }
}

/// A key as the numbers of its words, and where each of them stands.
#[derive(Debug, Default)]
struct KeyPlaces<P> {
    /// [`UNKNOWN`] if no pattern names it.
    words: Vec<WordId>,
    /// Where the words stand that some pattern names, and how many different ones there are.
    known: P,
    different: usize,
    /// By word: the key that it was met in last, and its places in that one.
    places: Vec<(u64, P)>,
    /// Number of this key.
    number: u64,
}

const UNKNOWN: WordId = WordId::MAX;

impl<P: Positions> KeyPlaces<P> {
    fn read(&mut self, vocabulary: &Vocabulary, key: &str) {
        self.number += 1;
        self.words.clear();
        (self.known, self.different) = (P::default(), 0);
        if self.places.len() < vocabulary.ids_end() {
            self.places.resize(vocabulary.ids_end(), (0, P::default()));
        }
        for (position, word) in words(key).enumerate() {
            let Some(word) = vocabulary.find(word) else {
                self.words.push(UNKNOWN);
                continue;
            };
            self.words.push(word);
            let here = P::single(position);
            self.known = self.known.or(here);
            let (number, places) = &mut self.places[word as usize];
            if *number == self.number {
                *places = places.or(here);
            } else {
                (*number, *places) = (self.number, here);
                self.different += 1;
            }
        }
    }

    fn places(&self, word: WordId) -> P {
        let (number, places) = self.places[word as usize];
        if number == self.number { places } else { P::default() }
    }
}
