//! The patterns of one exchange as a tree: a node for each beginning of a pattern's parts.

use rustc_hash::FxHashMap;
use slab::Slab;

use super::cost::{Cost, CostTally, LiteralsCost};
use super::pattern::Part;
use super::vocabulary::{Vocabulary, WordId};
use crate::routing::exchange::targets::{Target, Targets};

pub(super) const ROOT: u32 = 0;

/// All patterns, and the words that they name.
#[derive(Debug)]
pub(super) struct Trie {
    nodes: Slab<Node>,
    pub(super) vocabulary: Vocabulary,
}

/// What the parts up to here lead to.
#[derive(Debug, Default)]
pub(super) struct Node {
    pub(super) literals: Literals,
    pub(super) star: Option<u32>,
    pub(super) hash: Option<u32>,
    /// It stands for a `#`.
    is_hash: bool,
    cost: Cost,
    pub(super) targets: Targets,
}

/// Children by their word. Most nodes have one at most.
#[derive(Debug, Default)]
pub(super) enum Literals {
    #[default]
    None,
    One(WordId, u32),
    Many(Box<ManyLiterals>),
}

/// Children by their word, and what they cost.
#[derive(Debug, Default)]
pub(super) struct ManyLiterals {
    pub(super) children: FxHashMap<WordId, u32>,
    costs: CostTally,
}

impl Default for Trie {
    fn default() -> Self {
        let mut trie = Self { nodes: Slab::new(), vocabulary: Vocabulary::default() };
        trie.nodes.insert(Node::default());
        trie.update_costs(&[], &[ROOT]);
        trie
    }
}

impl Trie {
    pub(super) fn node(&self, at: u32) -> &Node {
        &self.nodes[at as usize]
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the steps that a walk from the root takes at most, whatever the key.
    pub(super) fn steps_max(&self) -> u32 {
        self.nodes[ROOT as usize].cost.once
    }

    /// Returns whether each visit of the node adds to the result: `#` matches what is left of any
    /// key.
    pub(super) fn always_lists(&self, node: &Node) -> bool {
        let matches_rest = |node: &Node| node.is_hash && !node.targets.is_empty();
        matches_rest(node) || node.hash.is_some_and(|hash| matches_rest(self.node(hash)))
    }

    /// Returns how many nodes the parts would need that are not there.
    pub(super) fn missing(&self, parts: &[Part<'_>]) -> usize {
        parts.len() + 1 - self.path(parts).len()
    }

    pub(super) fn add(&mut self, parts: &[Part<'_>], target: Target) {
        let mut path = self.path(parts);
        for part in &parts[path.len() - 1..] {
            path.push(self.grow(path[path.len() - 1], *part));
        }
        self.nodes[path[path.len() - 1] as usize].targets.add(target);
        self.update_costs(parts, &path);
    }

    /// Does nothing if it is not there.
    pub(super) fn remove(&mut self, parts: &[Part<'_>], target: Target) {
        let mut path = self.path(parts);
        if path.len() <= parts.len() {
            return;
        }
        self.nodes[path[path.len() - 1] as usize].targets.remove(target);
        while path.len() > 1 && self.nodes[path[path.len() - 1] as usize].is_unneeded() {
            let child = path.pop().unwrap_or(ROOT);
            self.drop_child(path[path.len() - 1], parts[path.len() - 1], child);
        }
        self.update_costs(parts, &path);
    }

    /// Returns the nodes of the parts from the root on, as far as there are any.
    fn path(&self, parts: &[Part<'_>]) -> Vec<u32> {
        let mut path = Vec::with_capacity(parts.len() + 1);
        path.push(ROOT);
        for part in parts {
            let Some(child) = self.child(path[path.len() - 1], *part) else { break };
            path.push(child);
        }
        path
    }

    fn child(&self, at: u32, part: Part<'_>) -> Option<u32> {
        let node = self.node(at);
        match part {
            Part::Star => node.star,
            Part::Hash => node.hash,
            Part::Word(word) => node.literals.get(self.vocabulary.find(word)?),
        }
    }

    fn grow(&mut self, at: u32, part: Part<'_>) -> u32 {
        let is_hash = part == Part::Hash;
        let mut new = Node { is_hash, ..Node::default() };
        new.cost = self.cost_of(&new);
        let cost = new.cost;
        let child = self.nodes.insert(new) as u32;
        match part {
            Part::Star => self.nodes[at as usize].star = Some(child),
            Part::Hash => self.nodes[at as usize].hash = Some(child),
            Part::Word(word) => {
                let word = self.vocabulary.acquire(word);
                let mut literals = std::mem::take(&mut self.nodes[at as usize].literals);
                if let Literals::One(first_word, first) = literals {
                    let mut many = Box::<ManyLiterals>::default();
                    many.insert(first_word, first, self.nodes[first as usize].cost);
                    literals = Literals::Many(many);
                }
                match &mut literals {
                    Literals::Many(many) => many.insert(word, child, cost),
                    one => *one = Literals::One(word, child),
                }
                self.nodes[at as usize].literals = literals;
            }
        }
        child
    }

    fn drop_child(&mut self, at: u32, part: Part<'_>, child: u32) {
        let cost = self.nodes.remove(child as usize).cost;
        let node = &mut self.nodes[at as usize];
        match part {
            Part::Star => node.star = None,
            Part::Hash => node.hash = None,
            Part::Word(word) => {
                if let Some(id) = self.vocabulary.find(word) {
                    node.literals.remove(id, cost);
                }
                self.vocabulary.release(word);
            }
        }
    }

    /// Computes the costs of a path anew, from its end to the root.
    fn update_costs(&mut self, parts: &[Part<'_>], path: &[u32]) {
        for depth in (0..path.len()).rev() {
            let at = path[depth] as usize;
            let new = self.cost_of(&self.nodes[at]);
            let old = std::mem::replace(&mut self.nodes[at].cost, new);
            let is_literal = depth > 0 && matches!(parts[depth - 1], Part::Word(_));
            if !is_literal || old == new {
                continue;
            }
            if let Literals::Many(many) = &mut self.nodes[path[depth - 1] as usize].literals {
                many.costs.remove(old);
                many.costs.add(new);
            }
        }
    }

    fn cost_of(&self, node: &Node) -> Cost {
        let child = |child: Option<u32>| child.map(|at| self.node(at).cost).unwrap_or_default();
        let literals = match &node.literals {
            Literals::None => LiteralsCost::default(),
            Literals::One(_, only) => {
                let Cost { once, many } = self.node(*only).cost;
                let (once_max, many_max) = (u64::from(once), u64::from(many));
                LiteralsCost { count: 1, once_max, many_max, many_sum: many_max }
            }
            Literals::Many(many) => many.costs.literals(many.children.len()),
        };
        Cost::of(self.always_lists(node), child(node.star), child(node.hash), &literals)
    }
}

impl Node {
    fn is_unneeded(&self) -> bool {
        self.targets.is_empty()
            && matches!(self.literals, Literals::None)
            && self.star.is_none()
            && self.hash.is_none()
    }
}

impl Literals {
    fn get(&self, word: WordId) -> Option<u32> {
        match self {
            Self::None => None,
            Self::One(only, child) => (*only == word).then_some(*child),
            Self::Many(many) => many.children.get(&word).copied(),
        }
    }

    fn remove(&mut self, word: WordId, cost: Cost) {
        match self {
            Self::Many(many) if many.children.len() > 1 => {
                many.children.remove(&word);
                many.costs.remove(cost);
            }
            _ => *self = Self::None,
        }
    }
}

impl ManyLiterals {
    fn insert(&mut self, word: WordId, child: u32, cost: Cost) {
        self.children.insert(word, child);
        self.costs.add(cost);
    }
}
