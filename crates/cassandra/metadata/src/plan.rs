//! What a transaction changes, given what it finds.

use std::collections::{BTreeMap, BTreeSet};

use quelea_elastic_directory::meta::{Compare, Entry, LeaseId, Op, Revision, Txn};

use crate::entries::EntriesRead;
use crate::stored::Stored;

/// The changes of a transaction whose conditions hold, by their keys: what the entry is then, or that it is gone.
pub(crate) type Plan = BTreeMap<String, Option<Stored>>;

/// Returns the keys that a transaction has to know.
pub(crate) fn keys(txn: &Txn) -> Vec<String> {
    let compared = txn.compares.iter().map(|compare| match compare {
        Compare::Created(key, _) | Compare::Modified(key, _) => key,
    });
    let changed = txn.changes.iter().map(|change| match change {
        Op::Put { key, .. } | Op::Delete { key } => key,
    });
    let keys: BTreeSet<&String> = compared.chain(changed).collect();
    keys.into_iter().cloned().collect()
}

/// Returns the leases that have to live.
pub(crate) fn leases(plan: &Plan) -> BTreeSet<u64> {
    let stored = plan.values().flatten();
    stored.filter_map(|stored| stored.lease).map(|LeaseId(lease)| lease).collect()
}

/// Returns what is to be done at the revision that follows; `None` if a condition does not hold.
pub(crate) fn plan(txn: &Txn, seen: &EntriesRead) -> Option<Plan> {
    let found = |key: &String| seen.entries.get(key).map(|stored| &stored.entry);
    let holds = txn.compares.iter().all(|compare| match compare {
        Compare::Created(key, wanted) => {
            found(key).map_or(Revision(0), |entry| entry.created) == *wanted
        }
        Compare::Modified(key, wanted) => {
            found(key).map_or(Revision(0), |entry| entry.modified) == *wanted
        }
    });
    if !holds {
        return None;
    }
    let next = Revision(seen.revision + 1);
    let mut plan = Plan::new();
    for change in &txn.changes {
        let (key, then) = match change {
            Op::Put { key, value, lease } => {
                let created = found(key).map_or(next, |entry| entry.created);
                let (key, value) = (key.clone(), value.clone());
                let entry = Entry { key: key.clone(), value, created, modified: next };
                (key, Some(Stored { entry, lease: *lease }))
            }
            Op::Delete { key } => (key.clone(), None),
        };
        plan.insert(key, then);
    }
    // What is not there cannot go.
    plan.retain(|key, then| then.is_some() || seen.entries.contains_key(key));
    Some(plan)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(entries: &[(&str, u64, u64)]) -> EntriesRead {
        let mut seen = EntriesRead { revision: 9, ..EntriesRead::default() };
        for (key, created, modified) in entries {
            let (created, modified) = (Revision(*created), Revision(*modified));
            let entry = Entry { key: (*key).to_owned(), value: "old".into(), created, modified };
            seen.entries.insert((*key).to_owned(), Stored { entry, lease: None });
        }
        seen
    }

    fn put(key: &str, lease: Option<u64>) -> Op {
        Op::Put { key: key.to_owned(), value: "new".into(), lease: lease.map(LeaseId) }
    }

    fn delete(key: &str) -> Op {
        Op::Delete { key: key.to_owned() }
    }

    #[test]
    fn every_condition_has_to_hold() {
        let seen = seen(&[("a", 3, 5)]);
        let created = |key: &str, at| Compare::Created(key.to_owned(), Revision(at));
        let modified = |key: &str, at| Compare::Modified(key.to_owned(), Revision(at));
        for (compares, holds) in [
            (vec![], true),
            (vec![created("a", 3), modified("a", 5)], true),
            (vec![created("a", 5)], false),
            (vec![modified("a", 3)], false),
            (vec![created("b", 0), modified("b", 0)], true),
            (vec![created("a", 3), created("b", 1)], false),
            (vec![created("a", 0)], false),
        ] {
            let txn = Txn { compares, changes: Vec::new() };
            assert_eq!(plan(&txn, &seen).is_some(), holds, "{txn:?}");
        }
    }

    #[test]
    fn an_entry_keeps_its_creation_and_a_keys_last_change_counts() {
        let seen = seen(&[("a", 3, 5), ("b", 4, 4)]);
        let changes = vec![put("a", Some(7)), put("c", None), delete("b"), delete("nothing")];
        let txn = Txn { compares: Vec::new(), changes };
        let plan = plan(&txn, &seen).unwrap();
        let entry = |key: &str| plan[key].as_ref().map(|stored| &stored.entry);
        let revisions = |key| entry(key).map(|entry| (entry.created.0, entry.modified.0));
        assert_eq!(revisions("a"), Some((3, 10)));
        assert_eq!(revisions("c"), Some((10, 10)));
        assert_eq!(plan["b"], None);
        assert_eq!(plan.len(), 3, "what is not there cannot go");
        assert_eq!(leases(&plan), BTreeSet::from([7]));
        assert_eq!(keys(&txn), ["a", "b", "c", "nothing"]);
    }
}
