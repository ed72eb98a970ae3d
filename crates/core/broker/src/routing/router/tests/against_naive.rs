//! The router against a list of bindings that is searched by the definitions.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

/// Few names, so that they meet often. The last letter gives the type.
const EXCHANGES: [&str; 6] = ["1d", "2d", "1f", "2f", "1t", "2t"];
const KEYS: [&str; 6] = ["", "a", "b", "a.b", "#", "*.b"];
const QUEUES: u32 = 4;

#[derive(Clone, Debug)]
enum Step {
    Declare { exchange: usize, auto_delete: bool, alternate: Option<usize> },
    Delete { exchange: usize },
    AddQueue(u32),
    RemoveQueue(u32),
    Bind { source: usize, to: To, key: usize, argument: bool },
    Unbind { source: usize, to: To, key: usize, argument: bool },
    Route { exchange: usize, key: usize, copy: Option<usize> },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum To {
    Queue(u32),
    Exchange(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let exchange = || 0..EXCHANGES.len();
    let key = || 0..KEYS.len();
    let to = || prop_oneof![(0..QUEUES).prop_map(To::Queue), exchange().prop_map(To::Exchange)];
    let edge = || (exchange(), to(), key(), any::<bool>());
    prop_oneof![
        3 => (exchange(), any::<bool>(), proptest::option::of(exchange())).prop_map(
            |(exchange, auto_delete, alternate)| Step::Declare { exchange, auto_delete, alternate }
        ),
        1 => exchange().prop_map(|exchange| Step::Delete { exchange }),
        2 => (0..QUEUES).prop_map(Step::AddQueue),
        1 => (0..QUEUES).prop_map(Step::RemoveQueue),
        8 => edge().prop_map(|(source, to, key, argument)| Step::Bind { source, to, key, argument }),
        3 => edge()
            .prop_map(|(source, to, key, argument)| Step::Unbind { source, to, key, argument }),
        10 => (exchange(), key(), proptest::option::weighted(0.2, key()))
            .prop_map(|(exchange, key, copy)| Step::Route { exchange, key, copy }),
    ]
}

/// What the router should be, as plain sets.
#[derive(Debug, Default)]
struct Naive {
    /// Auto-delete and alternate exchange.
    exchanges: BTreeMap<usize, (bool, Option<usize>)>,
    queues: BTreeSet<u32>,
    bindings: BTreeSet<(usize, To, usize, bool)>,
}

impl Naive {
    fn has(&self, to: To) -> bool {
        match to {
            To::Queue(queue) => self.queues.contains(&queue),
            To::Exchange(exchange) => self.exchanges.contains_key(&exchange),
        }
    }

    fn remove(&mut self, gone: impl Fn(&(usize, To, usize, bool)) -> bool) {
        let (removed, kept): (Vec<_>, Vec<_>) = self.bindings.iter().partition(|b| gone(b));
        self.bindings = kept.into_iter().collect();
        for (source, ..) in removed {
            let unused = !self.bindings.iter().any(|(s, ..)| *s == source);
            if unused && self.exchanges.get(&source).is_some_and(|(auto_delete, _)| *auto_delete) {
                self.delete(source);
            }
        }
    }

    fn delete(&mut self, exchange: usize) {
        self.exchanges.remove(&exchange);
        self.remove(|(source, to, ..)| *source == exchange || *to == To::Exchange(exchange));
    }

    fn fits(exchange: usize, pattern: usize, key: usize) -> bool {
        let words = |text: &'static str| -> Vec<&str> {
            if text.is_empty() { Vec::new() } else { text.split('.').collect() }
        };
        match EXCHANGES[exchange].as_bytes()[1] {
            b'd' => pattern == key,
            b'f' => true,
            _ => topic_fits(&words(KEYS[pattern]), &words(KEYS[key])),
        }
    }

    fn route(&self, from: usize, keys: &[usize]) -> Vec<u32> {
        let mut queues = BTreeSet::new();
        let mut seen = BTreeSet::new();
        let mut level = BTreeSet::from([from]);
        for _ in 0..=EXCHANGE_HOPS_MAX {
            let mut next = BTreeSet::new();
            for exchange in level {
                let Some((_, alternate)) = self.exchanges.get(&exchange) else { continue };
                if !seen.insert(exchange) {
                    continue;
                }
                let fitting = self.bindings.iter().filter(|(source, _, pattern, _)| {
                    *source == exchange
                        && keys.iter().any(|key| Self::fits(exchange, *pattern, *key))
                });
                let mut any = false;
                for (_, to, ..) in fitting {
                    any = true;
                    match to {
                        To::Queue(queue) => queues.insert(*queue),
                        To::Exchange(exchange) => next.insert(*exchange),
                    };
                }
                next.extend(alternate.filter(|_| !any));
            }
            level = next;
        }
        queues.into_iter().collect()
    }
}

fn topic_fits(pattern: &[&str], key: &[&str]) -> bool {
    match pattern {
        [] => key.is_empty(),
        ["#", rest @ ..] => (0..=key.len()).any(|skipped| topic_fits(rest, &key[skipped..])),
        [word, rest @ ..] => key
            .split_first()
            .is_some_and(|(first, key)| (*word == "*" || word == first) && topic_fits(rest, key)),
    }
}

fn kind(exchange: usize) -> ExchangeKind {
    match EXCHANGES[exchange].as_bytes()[1] {
        b'd' => ExchangeKind::Direct,
        b'f' => ExchangeKind::Fanout,
        _ => ExchangeKind::Topic,
    }
}

fn destination(to: To) -> Destination {
    match to {
        To::Queue(id) => queue(id),
        To::Exchange(exchange) => to_exchange(EXCHANGES[exchange]),
    }
}

fn arguments(argument: bool) -> Table {
    if argument { Table::from_iter([("a", Value::I32(1))]) } else { Table::new() }
}

/// What is deleted goes at once, or is left to turns that take a binding each.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Removal {
    AtOnce,
    InTurns,
}

fn run(router: &mut Router, naive: &mut Naive, step: &Step, removal: Removal) {
    match *step {
        Step::Declare { exchange, auto_delete, alternate } => {
            let alternate_name = alternate.map(|at| EXCHANGES[at]);
            let plain = spec(EXCHANGES[exchange], kind(exchange));
            let spec = alternate_name
                .map_or(plain, |name| with_alternate(EXCHANGES[exchange], kind(exchange), name));
            let declared = router.declare(ExchangeSpec { auto_delete, ..spec });
            let expected = naive.exchanges.entry(exchange).or_insert((auto_delete, alternate));
            assert_eq!(declared.is_ok(), *expected == (auto_delete, alternate));
        }
        Step::Delete { exchange } => {
            let deleted = router.delete(EXCHANGES[exchange], false);
            assert_eq!(deleted.is_ok(), naive.exchanges.contains_key(&exchange));
            if removal == Removal::AtOnce {
                router.finish_removing(deleted.unwrap_or_default());
            }
            naive.delete(exchange);
        }
        Step::AddQueue(id) => {
            if naive.queues.insert(id) {
                add_queues(router, id..id + 1);
            }
        }
        Step::RemoveQueue(id) => {
            router.begin_queue_removal(QueueId(id));
            if removal == Removal::AtOnce {
                router.finish_removing(Removed::default());
            }
            naive.queues.remove(&id);
            naive.remove(|(_, to, ..)| *to == To::Queue(id));
        }
        Step::Bind { source, to, key, argument } => {
            let arguments = arguments(argument);
            let bound = router.bind(EXCHANGES[source], &destination(to), KEYS[key], &arguments);
            let possible = naive.exchanges.contains_key(&source) && naive.has(to);
            assert_eq!(bound.is_ok(), possible);
            if possible {
                let new = naive.bindings.insert((source, to, key, argument));
                assert_eq!(bound.unwrap().is_some(), new);
            }
        }
        Step::Unbind { source, to, key, argument } => {
            let arguments = arguments(argument);
            let removed =
                router.unbind(EXCHANGES[source], &destination(to), KEYS[key], &arguments).unwrap();
            if removal == Removal::AtOnce {
                router.finish_removing(removed);
            }
            naive.remove(|binding| *binding == (source, to, key, argument));
        }
        Step::Route { exchange, key, copy } => {
            let properties = match copy {
                Some(copy) => headers(&[("CC", keys(&[KEYS[copy]]))]),
                None => BytesMut::from(&PLAIN[..]),
            };
            let view = PropertyView::new(&properties);
            let found = router.route(EXCHANGES[exchange], KEYS[key], view);
            assert_eq!(found.is_ok(), naive.exchanges.contains_key(&exchange));
            if let Ok(found) = found {
                let found: Vec<u32> = found.queues.iter().map(|queue| queue.0).collect();
                let keys: Vec<usize> = [Some(key), copy].into_iter().flatten().collect();
                assert_eq!(found, naive.route(exchange, &keys));
            }
        }
    }
}

fn check_lists(router: &Router, naive: &Naive) {
    assert_eq!(router.exchange_count(), PREDECLARED.len() + naive.exchanges.len());
    assert_eq!(router.binding_count(), naive.bindings.len());
    assert_eq!(router.bindings().count(), naive.bindings.len());
    let exchanges = || router.exchanges.iter().map(|(_, exchange)| exchange);
    let outgoing: usize = exchanges().map(|exchange| exchange.outgoing.len()).sum();
    assert_eq!(outgoing, naive.bindings.len());
    let to_exchanges: usize = exchanges().map(|exchange| exchange.incoming.len()).sum();
    let to_queues: usize = router.queues.values().map(|queue| queue.incoming.len()).sum();
    assert_eq!(to_queues + to_exchanges, naive.bindings.len());
}

fn play(steps: &[Step], removal: Removal) {
    let (mut router, mut naive) = (router(), Naive::default());
    for step in steps {
        // The numbers of queues are used once, and nobody names one that is gone.
        if let Step::AddQueue(id) | Step::Bind { to: To::Queue(id), .. } = step {
            router.go_on_removing(Target::Queue(QueueId(*id)), usize::MAX);
        }
        run(&mut router, &mut naive, step, removal);
        assert_eq!(router.bindings().count(), naive.bindings.len());
        assert_eq!(router.exchanges().count(), PREDECLARED.len() + naive.exchanges.len());
        if let Some(target) = router.leaving.keys().next().copied() {
            router.go_on_removing(target, 1);
        }
    }
    router.finish_removing(Removed::default());
    check_lists(&router, &naive);
    for exchange in 0..EXCHANGES.len() {
        for key in 0..KEYS.len() {
            let step = Step::Route { exchange, key, copy: None };
            run(&mut router, &mut naive, &step, removal);
            run(&mut router, &mut naive, &step, removal);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Routes are asked for between changes, mostly from the cache, so a stale one shows.
    #[test]
    fn routes_are_those_of_the_naive_router_after_any_changes(
        steps in proptest::collection::vec(step(), 1..120),
    ) {
        play(&steps, Removal::AtOnce);
    }

    /// What was deleted is in the way of nothing while its bindings go. (When an exchange auto-deletes is another
    /// matter.)
    #[test]
    fn routes_are_the_same_while_what_was_deleted_is_removed(
        mut steps in proptest::collection::vec(step(), 1..120),
    ) {
        for step in &mut steps {
            if let Step::Declare { auto_delete, .. } = step {
                *auto_delete = false;
            }
        }
        play(&steps, Removal::InTurns);
    }
}
