//! All bindings of a router, found by their identity.

use std::hash::{DefaultHasher, Hash, Hasher};

use bytes::BytesMut;
use quelea_model::{Table, Value};
use rustc_hash::FxHashMap;
use slab::Slab;
use smallvec::SmallVec;

use crate::routing::exchange::headers::BindingKey;
use crate::routing::exchange::targets::{ExchangeKey, Target};

/// In front of an encoded table.
const LENGTH_BYTES: usize = 4;

/// One binding, small: there may be a million.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Edge {
    pub(super) source: ExchangeKey,
    pub(super) target: Target,
    pub(super) key: Box<str>,
    /// See [`canonical`].
    pub(super) arguments: Box<[u8]>,
}

/// Bindings by their numbers and by their identities.
#[derive(Debug, Default)]
pub(super) struct Edges {
    edges: Slab<Edge>,
    /// From an identity's hash to the bindings that have it: but for accidents, one.
    by_hash: FxHashMap<u64, SmallVec<[BindingKey; 1]>>,
    /// Where [`Edges::any`] looks next: going through all of them looks at each number once.
    next: usize,
}

impl Edges {
    pub(super) fn len(&self) -> usize {
        self.edges.len()
    }

    pub(super) fn find(&self, edge: &Edge) -> Option<BindingKey> {
        let candidates = self.by_hash.get(&hash(edge))?;
        candidates.iter().copied().find(|key| self.get(*key) == edge)
    }

    /// Adds what [`Edges::find`] did not find.
    pub(super) fn insert(&mut self, edge: Edge) -> BindingKey {
        let hash = hash(&edge);
        let key = self.edges.insert(edge) as BindingKey;
        self.by_hash.entry(hash).or_default().push(key);
        key
    }

    pub(super) fn remove(&mut self, key: BindingKey) -> Edge {
        let edge = self.edges.remove(key as usize);
        let hash = hash(&edge);
        if let Some(candidates) = self.by_hash.get_mut(&hash) {
            candidates.retain(|candidate| *candidate != key);
            if candidates.is_empty() {
                self.by_hash.remove(&hash);
            }
        }
        edge
    }

    /// Returns the binding of a number that is in use.
    pub(super) fn get(&self, key: BindingKey) -> &Edge {
        &self.edges[key as usize]
    }

    /// Finds any binding.
    pub(super) fn any(&mut self) -> Option<BindingKey> {
        if self.edges.is_empty() {
            return None;
        }
        while !self.edges.contains(self.next) {
            self.next = self.next.checked_sub(1).unwrap_or_else(|| self.edges.capacity());
        }
        Some(self.next as BindingKey)
    }

    /// Returns whether a binding of that number has that end.
    pub(super) fn has_end(&self, key: BindingKey, end: Target) -> bool {
        let edge = self.edges.get(key as usize);
        edge.is_some_and(|edge| edge.target == end || Target::Exchange(edge.source) == end)
    }

    /// Returns the binding of a number, if it is in use.
    pub(super) fn find_at(&self, key: BindingKey) -> Option<&Edge> {
        self.edges.get(key as usize)
    }

    /// Returns the number that all those in use are below.
    pub(super) fn places(&self) -> usize {
        self.edges.capacity()
    }
}

fn hash(edge: &Edge) -> u64 {
    let mut hasher = DefaultHasher::new();
    edge.hash(&mut hasher);
    hasher.finish()
}

/// Encodes arguments as bytes that are equal when the arguments are: an encoded field table, sorted
/// by name, without its length. Nothing for no arguments.
pub(super) fn canonical(arguments: &Table) -> Box<[u8]> {
    if arguments.is_empty() {
        return Box::default();
    }
    let mut sorted: Vec<(&str, &Value)> = arguments.iter().collect();
    sorted.sort_by_key(|(name, _)| *name);
    let mut bytes = Vec::new();
    let mut entry = BytesMut::new();
    for (name, value) in sorted {
        entry.clear();
        Table::from_iter([(name, value.clone())]).encode(&mut entry);
        bytes.extend_from_slice(&entry[LENGTH_BYTES..]);
    }
    bytes.into_boxed_slice()
}

/// Decodes the table of canonical bytes.
pub(super) fn table(canonical: &[u8]) -> Table {
    Table::decode_stored(canonical).expect("an encoded table decodes")
}
