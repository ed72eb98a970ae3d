//! Which listeners want a message: counted prefixes of its first part.

use std::collections::BTreeMap;
use std::ops::Bound;

use bytes::Bytes;

/// A listener's number within the relay.
pub(crate) type ListenerIndex = u32;

/// Prefixes, each with who subscribed to it and how often. In byte order, so all prefixes of a topic
/// are found by a few steps backwards from the topic itself.
#[derive(Debug, Default)]
pub(crate) struct PrefixMap {
    prefixes: BTreeMap<Bytes, Vec<(ListenerIndex, u32)>>,
}

/// What a subscription changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Nobody had this prefix before, or nobody has it any more.
    Edge,
    /// The listener's first, or its last.
    Listener,
    /// Only a count.
    Count,
    /// It was not there.
    None,
}

impl PrefixMap {
    /// Adds one subscription.
    pub(crate) fn add(&mut self, prefix: &Bytes, listener: ListenerIndex) -> Change {
        if let Some(listeners) = self.prefixes.get_mut(prefix) {
            return match listeners.binary_search_by_key(&listener, |(index, _)| *index) {
                Ok(at) => {
                    listeners[at].1 += 1;
                    Change::Count
                }
                Err(at) => {
                    listeners.insert(at, (listener, 1));
                    Change::Listener
                }
            };
        }
        // A prefix is a slice of a read buffer, which it must not keep alive.
        self.prefixes.insert(Bytes::copy_from_slice(prefix), vec![(listener, 1)]);
        Change::Edge
    }

    /// Removes one subscription.
    pub(crate) fn remove(&mut self, prefix: &[u8], listener: ListenerIndex) -> Change {
        let Some(listeners) = self.prefixes.get_mut(prefix) else { return Change::None };
        let Ok(at) = listeners.binary_search_by_key(&listener, |(index, _)| *index) else {
            return Change::None;
        };
        listeners[at].1 -= 1;
        if listeners[at].1 > 0 {
            return Change::Count;
        }
        listeners.remove(at);
        if !listeners.is_empty() {
            return Change::Listener;
        }
        self.prefixes.remove(prefix);
        Change::Edge
    }

    /// Forgets all of a listener's subscriptions, because it is gone. Returns the prefixes that
    /// nobody has any more.
    pub(crate) fn forget(&mut self, listener: ListenerIndex, of: &[Bytes]) -> Vec<Bytes> {
        let mut ended = Vec::new();
        for prefix in of {
            let Some(listeners) = self.prefixes.get_mut(prefix) else { continue };
            listeners.retain(|(index, _)| *index != listener);
            if listeners.is_empty() {
                self.prefixes.remove(prefix);
                ended.push(prefix.clone());
            }
        }
        ended
    }

    /// Calls `found` for each listener of each prefix of `topic`; more than once for a listener that
    /// has several of them.
    pub(crate) fn each_match(&self, topic: &[u8], mut found: impl FnMut(ListenerIndex)) {
        let mut upper = topic;
        loop {
            let below = (Bound::Unbounded, Bound::Included(upper));
            let Some((prefix, listeners)) = self.prefixes.range::<[u8], _>(below).next_back()
            else {
                return;
            };
            let common = common_bytes(prefix, topic);
            if common == prefix.len() {
                listeners.iter().for_each(|(index, _)| found(*index));
                // The next one must be shorter than this one.
                let Some(shorter) = common.checked_sub(1) else { return };
                upper = &topic[..shorter];
            } else {
                // `prefix` is not above `upper`, so they differ before the end of `upper`: this is
                // shorter, and all prefixes between it and `upper` differ from the topic.
                upper = &topic[..common];
            }
        }
    }

    /// Returns all prefixes, each once.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Bytes> {
        self.prefixes.keys()
    }

    /// Returns whether nobody subscribed to anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.prefixes.is_empty()
    }
}

fn common_bytes(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(map: &PrefixMap, topic: &str) -> Vec<u32> {
        let mut found = Vec::new();
        map.each_match(topic.as_bytes(), |index| found.push(index));
        found.sort_unstable();
        found
    }

    #[test]
    fn a_topic_finds_the_listeners_of_all_its_prefixes() {
        let mut map = PrefixMap::default();
        for (index, prefix) in ["", "a", "a.", "a.b", "a.bc", "b", "aa"].iter().enumerate() {
            assert_eq!(map.add(&Bytes::from(*prefix), index as u32), Change::Edge);
        }
        assert_eq!(matches(&map, "a.bd"), [0, 1, 2, 3]);
        assert_eq!(matches(&map, "a.bc.x"), [0, 1, 2, 3, 4]);
        assert_eq!(matches(&map, "c"), [0]);
        assert_eq!(matches(&map, ""), [0]);
        assert_eq!(matches(&map, "ab"), [0, 1]);
    }

    #[test]
    fn subscriptions_are_counted() {
        let mut map = PrefixMap::default();
        let x = Bytes::from_static(b"x");
        assert_eq!(map.add(&x, 1), Change::Edge);
        assert_eq!(map.add(&x, 1), Change::Count);
        assert_eq!(map.add(&x, 2), Change::Listener);
        assert_eq!(map.remove(b"x", 1), Change::Count);
        assert_eq!(matches(&map, "xy"), [1, 2]);
        assert_eq!(map.remove(b"x", 1), Change::Listener);
        assert_eq!(map.remove(b"x", 1), Change::None);
        assert_eq!(map.remove(b"x", 2), Change::Edge);
        assert!(map.is_empty());
    }

    #[test]
    fn it_finds_what_a_search_of_all_prefixes_finds() {
        // Every topic and prefix over two letters up to length 5: 63 of each.
        let words: Vec<Vec<u8>> = (0..=5_u32)
            .flat_map(|length| {
                (0..1_u32 << length).map(move |bits| {
                    (0..length).map(|at| if bits >> at & 1 == 0 { b'a' } else { b'b' }).collect()
                })
            })
            .collect();
        for step in 1..8 {
            let mut map = PrefixMap::default();
            let chosen: Vec<_> = words.iter().step_by(step).cloned().collect();
            for (index, prefix) in chosen.iter().enumerate() {
                map.add(&Bytes::from(prefix.clone()), index as u32);
            }
            for topic in &words {
                let mut expected: Vec<u32> = (0..chosen.len() as u32)
                    .filter(|index| topic.starts_with(&chosen[*index as usize]))
                    .collect();
                expected.sort_unstable();
                let topic = String::from_utf8(topic.clone()).unwrap();
                assert_eq!(matches(&map, &topic), expected, "{topic} of every {step}th");
            }
        }
    }
}
