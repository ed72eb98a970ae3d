//! What the metadata store says at present: who lives, who owns what, which queues there are.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use quelea_elastic_proto::Fence;

use crate::ownership::keys::{self, ParsedKey, Shard};
use crate::ownership::meta::{Change, Entry};

/// All of it.
#[derive(Default)]
pub struct ClusterView {
    this: String,
    directories: BTreeSet<String>,
    owners: BTreeMap<Shard, (String, Fence)>,
    queues: BTreeMap<Shard, BTreeSet<String>>,
}

impl ClusterView {
    /// Creates the view of a directory that knows nothing yet; `this` is its address.
    pub(super) fn new(this: &str) -> Self {
        Self { this: this.to_owned(), ..Self::default() }
    }

    pub(super) fn of(this: &str, entries: &[Entry]) -> Self {
        let mut view = Self::new(this);
        for entry in entries {
            view.put(entry);
        }
        view
    }

    /// Takes a change; gives the shard that it is about, `None` if it is about directories.
    pub(super) fn change(&mut self, change: &Change) -> Option<Shard> {
        match change {
            Change::Put(entry) => self.put(entry),
            Change::Gone { key, revision } => match keys::parse(key)? {
                ParsedKey::Directory(address) => {
                    self.directories.remove(address);
                    None
                }
                ParsedKey::Shard(shard) => {
                    // What was read by other means may be newer than the watch.
                    if self.owners.get(&shard).is_some_and(|(_, fence)| fence.0 < revision.0) {
                        self.owners.remove(&shard);
                    }
                    Some(shard)
                }
                ParsedKey::Queue(name) => {
                    let shard = Shard::of(name);
                    if let Some(queues) = self.queues.get_mut(&shard) {
                        queues.remove(name);
                    }
                    self.queues.retain(|_, queues| !queues.is_empty());
                    Some(shard)
                }
            },
        }
    }

    fn put(&mut self, entry: &Entry) -> Option<Shard> {
        match keys::parse(&entry.key)? {
            ParsedKey::Directory(address) => {
                self.directories.insert(address.to_owned());
                None
            }
            ParsedKey::Shard(shard) => {
                let fence = Fence(entry.created.0);
                if self.owners.get(&shard).is_none_or(|(_, known)| *known <= fence) {
                    let owner = String::from_utf8_lossy(&entry.value).into_owned();
                    self.owners.insert(shard, (owner, fence));
                }
                Some(shard)
            }
            ParsedKey::Queue(name) => {
                let shard = Shard::of(name);
                self.queues.entry(shard).or_default().insert(name.to_owned());
                Some(shard)
            }
        }
    }

    /// This directory owns the shard now.
    pub(super) fn owned(&mut self, shard: Shard, fence: Fence) {
        self.owners.insert(shard, (self.this.clone(), fence));
    }

    /// This directory does not own the shard any more, and who does is not known.
    pub(super) fn disowned(&mut self, shard: Shard, fence: Fence) {
        if self.owner(shard) == Some((self.this.as_str(), fence)) {
            self.owners.remove(&shard);
        }
    }

    /// Returns whose a shard is, and under which fence.
    #[must_use]
    pub fn owner(&self, shard: Shard) -> Option<(&str, Fence)> {
        self.owners.get(&shard).map(|(owner, fence)| (owner.as_str(), *fence))
    }

    pub(super) fn fence(&self, shard: Shard) -> Option<Fence> {
        self.owners.get(&shard).map(|(_, fence)| *fence)
    }

    pub(super) fn queues(&self, shard: Shard) -> Vec<String> {
        self.queues.get(&shard).into_iter().flatten().cloned().collect()
    }

    pub(super) fn has_queues(&self, shard: Shard) -> bool {
        self.queues.contains_key(&shard)
    }

    pub(super) fn shards_with_queues(&self) -> Vec<Shard> {
        self.queues.keys().copied().collect()
    }

    /// Returns the addresses of the directories that live, in order.
    pub fn directories(&self) -> impl Iterator<Item = &str> {
        self.directories.iter().map(String::as_str)
    }

    /// Returns how many living directories are meant for a shard rather than this one.
    pub(super) fn rank(&self, shard: Shard) -> u32 {
        let weight = shard.weight(&self.this);
        let before =
            self.directories().filter(|other| *other != self.this && shard.weight(other) > weight);
        u32::try_from(before.count()).unwrap_or(u32::MAX)
    }

    /// Returns the first queues by name after one, at most `limit` of those that have a record, and
    /// who owns each.
    pub fn queues_and_owners(
        &self,
        after: Option<&str>,
        limit: usize,
    ) -> Vec<(String, Option<String>)> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let of_shard = |(shard, queues): (&Shard, &'_ BTreeSet<String>)| {
            let owner = self.owner(*shard).map(|(owner, _)| owner);
            let queues = queues.range::<str, _>((from, Bound::Unbounded)).take(limit);
            queues.map(|queue| (queue.clone(), owner)).collect::<Vec<_>>()
        };
        let mut queues: Vec<_> = self.queues.iter().flat_map(of_shard).collect();
        queues.sort_unstable();
        queues.truncate(limit);
        queues.into_iter().map(|(queue, owner)| (queue, owner.map(str::to_owned))).collect()
    }

    /// Returns whether a queue has a record.
    pub fn knows(&self, queue: &str) -> bool {
        self.queues.get(&Shard::of(queue)).is_some_and(|queues| queues.contains(queue))
    }

    /// Returns the other directory that controls a queue, if one does.
    pub fn elsewhere(&self, queue: &str) -> Option<String> {
        let (owner, _) = self.owner(Shard::of(queue))?;
        Some(owner.to_owned()).filter(|owner| *owner != self.this)
    }
}
