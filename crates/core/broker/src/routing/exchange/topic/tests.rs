use std::collections::BTreeMap;

use fastrand::Rng;
use proptest::prelude::*;
use quelea_model::QueueId;

use super::*;

const ONE: Target = Target::Queue(QueueId(1));

fn target(id: usize) -> Target {
    Target::Queue(QueueId(id as u32))
}

fn fits(pattern: &str, key: &str) -> bool {
    let mut topic = Topic::default();
    topic.add(pattern, ONE).unwrap();
    !queues(&mut topic, key).is_empty()
}

fn queues(topic: &mut Topic, key: &str) -> Vec<u32> {
    let mut found = RouteMatches::default();
    topic.matches(key, &mut found);
    found.queues.sort_unstable();
    found.queues.iter().map(|queue| queue.0).collect()
}

/// Returns how many steps a key takes.
fn steps(topic: &mut Topic, key: &str) -> u64 {
    topic.matches(key, &mut RouteMatches::default())
}

/// Returns whether the pattern fits the key by the definition, without any thought of the other
/// patterns: which beginnings of the key each beginning of the pattern fits.
fn fits_by_definition(pattern: &str, key: &str) -> bool {
    let key: Vec<&str> = words(key).collect();
    let mut fits = vec![false; key.len() + 1];
    fits[0] = true;
    for part in words(pattern) {
        let mut is_reached = false;
        fits = (0..=key.len())
            .map(|to| match part {
                "#" => {
                    is_reached |= fits[to];
                    is_reached
                }
                "*" => to > 0 && fits[to - 1],
                word => to > 0 && fits[to - 1] && key[to - 1] == word,
            })
            .collect();
    }
    fits[key.len()]
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
fn a_removed_pattern_leaves_no_node_behind() {
    let mut topic = Topic::default();
    let patterns = ["a.#.b", "a.#", "#", "*.x.*", "", "a.b.c", "a.b"];
    for pattern in patterns {
        topic.add(pattern, ONE).unwrap();
        topic.add(pattern, ONE).unwrap();
    }
    for _ in 0..2 {
        assert!(topic.trie.len() > 1);
        patterns.iter().for_each(|pattern| topic.remove(pattern, ONE));
    }
    assert_eq!(topic.trie.len(), 1);
    assert_eq!(topic.trie.vocabulary.len(), 0);
    assert_eq!(topic.steps_max(), Topic::default().steps_max());
    topic.remove("never.bound", ONE);
    assert!(queues(&mut topic, "a.b").is_empty());
}

#[test]
fn a_pattern_has_eight_separate_hashes_at_most() {
    let mut topic = Topic::default();
    let eight = "#.a.".repeat(8) + "b";
    topic.add(&eight, ONE).unwrap();
    let nine = "#.a.".repeat(9) + "b";
    assert_eq!(topic.add(&nine, ONE), Err(TopicLimit::Hashes { found: 9 }));
    topic.restore(&nine, target(2));
    assert_eq!(queues(&mut topic, &("a.".repeat(9) + "b")), [1, 2]);
    // Those that stand together are one.
    topic.add(&("#.".repeat(60) + "*.#"), target(3)).unwrap();
    assert_eq!(queues(&mut topic, "x"), [3]);
}

fn random_text(rng: &mut Rng, alphabet: &[&str], words: usize) -> String {
    let words: Vec<&str> = (0..words).map(|_| alphabet[rng.usize(..alphabet.len())]).collect();
    words.join(".")
}

/// Binds as many of the patterns as are taken; returns them, and what refused the first other one.
fn fill(
    topic: &mut Topic,
    patterns: impl Iterator<Item = String>,
) -> (Vec<(usize, String)>, Option<TopicLimit>) {
    let (mut taken, mut refused) = (Vec::new(), None);
    for (id, pattern) in patterns.enumerate() {
        match topic.add(&pattern, target(id)) {
            Ok(()) => taken.push((id, pattern)),
            Err(limit) => refused = refused.or(Some(limit)),
        }
    }
    (taken, refused)
}

/// Returns words that are `*` wherever the number has a bit.
fn mask(number: usize) -> String {
    let words = (0..17).map(|bit| if number >> bit & 1 == 0 { "a" } else { "*" });
    words.collect::<Vec<_>>().join(".")
}

const MANY: usize = 100_000;

/// What clients bind by the hundred thousand: all of it is taken.
#[test]
fn a_hundred_thousand_patterns_of_common_shapes_cost_a_key_few_steps() {
    type Pattern = fn(usize) -> String;
    let shapes: [(&str, Pattern); 8] = [
        ("plain", |n| format!("device.{n}.state")),
        ("tenant and event", |n| format!("t{}.*.e{}.#", n % 400, n / 400)),
        ("any tenant", |n| format!("*.d{n}.*")),
        ("anywhere", |n| format!("#.x{n}.#")),
        ("two in a row anywhere", |n| format!("#.x{}.y{}", n % 400, n / 400)),
        ("one before another", |n| format!("#.x{n}.#.end")),
        ("at the end", |n| format!("a.#.x{n}.*.z{}", n % 7)),
        ("mixed", |n| match n % 4 {
            0 => format!("t{n}.#"),
            1 => format!("*.*.s{n}"),
            2 => format!("#.e{n}"),
            _ => format!("t{n}.*.#.s{}", n / 4),
        }),
    ];
    for (shape, pattern) in shapes {
        let mut topic = Topic::default();
        let (taken, refused) = fill(&mut topic, (0..MANY).map(pattern));
        assert_eq!((taken.len(), refused), (MANY, None), "{shape}");
        let mut rng = Rng::with_seed(1);
        for letter in ["x", "t", "d", "e", "s"] {
            let one_kind: Vec<_> = (0..60).map(|n| format!("{letter}{n}")).collect();
            let all_known = one_kind.join(".");
            assert!(steps(&mut topic, &all_known) <= TOPIC_STEPS_MAX, "{shape}: {all_known}");
            let two_kinds = (0..40).map(|n| format!("x{}.y{}", n % 20, rng.usize(..20)));
            let pairs = two_kinds.collect::<Vec<_>>().join(".");
            assert!(steps(&mut topic, &pairs[..255]) <= TOPIC_STEPS_MAX, "{shape}: {pairs}");
        }
    }
}

/// Shapes that are made to be expensive: as many are taken as can be matched within the limit, and
/// whatever is taken is matched as by the definition.
#[test]
fn no_key_takes_more_than_the_limit_whatever_the_patterns() {
    let random = |seed, alphabet: &'static [&'static str], words: usize| {
        let mut rng = Rng::with_seed(seed);
        move |_| random_text(&mut rng, alphabet, words)
    };
    let both = |n: usize| mask(n % 316) + ".#.z.#." + &mask(n / 316);
    let dots = |n: usize| format!("#.{}.x{n}.#.", ".".repeat(n % 100));
    type Patterns = Box<dyn FnMut(usize) -> String>;
    let families: [(&str, bool, Patterns); 9] = [
        (
            "hash, word, star",
            false,
            Box::new(|n| "#.a.*.".repeat(n % 8 + 1) + &"a.*.".repeat(n / 8 % 30)),
        ),
        ("short random", false, Box::new(random(1, &["a", "b", "*", "#"], 7))),
        ("long random", true, Box::new(random(2, &["a", "*", "a", "*", "#"], 30))),
        ("few hashes", true, Box::new(random(3, &["a", "b", "a", "b", "a", "b", "*", "#"], 24))),
        ("masks", true, Box::new(|n| mask(n) + ".z")),
        ("masks anywhere", true, Box::new(|n| format!("#.{}.z", mask(n)))),
        ("masks on both ends", true, Box::new(both)),
        ("pairs", true, Box::new(|n| format!("#.x{}.#.y{}.#.z", n % 50, n / 50))),
        ("empty words", true, Box::new(dots)),
    ];
    for (family, is_refused, pattern) in families {
        let mut topic = Topic::default();
        let (taken, refused) = fill(&mut topic, (0..3_000).map(pattern));
        assert_eq!(refused.is_some(), is_refused, "{family}: {} are taken", taken.len());
        assert!(taken.len() >= 50, "{family}: {} are taken, {refused:?}", taken.len());
        let mut rng = Rng::with_seed(4);
        let mut keys: Vec<String> = vec![
            "a.".repeat(119) + "a",
            "a.".repeat(119) + "z",
            "a.b.".repeat(59) + "z",
            ".".repeat(255),
            (0..60).map(|n| format!("x{n}")).collect::<Vec<_>>().join("."),
            (0..30).map(|n| format!("x{n}.y{n}")).collect::<Vec<_>>().join("."),
        ];
        keys.extend((0..3).map(|_| random_text(&mut rng, &["a", "b"], 120)));
        keys.extend((0..5).map(|n| random_text(&mut rng, &["a", "b", "z"], n + 3)));
        for key in keys {
            let taken_steps = steps(&mut topic, &key);
            assert!(taken_steps <= topic.steps_max(), "{family}: {taken_steps} for {key}");
            assert!(taken_steps <= TOPIC_STEPS_MAX, "{family}: {taken_steps} for {key}");
            let found = queues(&mut topic, &key);
            // The definition is slow: each some patterns' turn.
            for (id, pattern) in taken.iter().step_by(1 + taken.len() / 300) {
                let is_found = found.binary_search(&(*id as u32)).is_ok();
                assert_eq!(is_found, fits_by_definition(pattern, &key), "{pattern} for {key}");
            }
        }
    }
}

#[test]
fn a_refused_pattern_changes_nothing_and_what_goes_makes_room() {
    let mut topic = Topic::default();
    let mask = |n| mask(n) + ".z";
    let first_refused = (0..MANY).find(|n| topic.add(&mask(*n), target(*n)).is_err()).unwrap();
    let (nodes, steps_max) = (topic.trie.len(), topic.steps_max());
    let again = topic.add(&mask(first_refused), ONE);
    assert!(matches!(again, Err(TopicLimit::Steps { needed }) if needed > TOPIC_STEPS_MAX));
    assert_eq!((topic.trie.len(), topic.steps_max()), (nodes, steps_max));
    // A second binding of a pattern that is there, and a plain word, are no trouble.
    topic.add(&mask(0), target(first_refused)).unwrap();
    (0..200).for_each(|n| topic.remove(&mask(n), target(n)));
    topic.add(&mask(first_refused), target(first_refused)).unwrap();
}

#[test]
fn stored_patterns_beyond_the_limit_stay_and_only_what_makes_it_worse_is_refused() {
    let mut topic = Topic::default();
    for n in 0..20_000 {
        topic.restore(&mask(n), target(n));
    }
    assert!(topic.steps_max() > TOPIC_STEPS_MAX);
    let expensive = "*.".repeat(16) + "b";
    assert!(matches!(topic.add(&expensive, ONE), Err(TopicLimit::Steps { .. })));
    topic.add("a.a", ONE).unwrap();
    assert_eq!(queues(&mut topic, "a.a"), [1]);
}

fn text(word: &'static str, words: std::ops::Range<usize>) -> impl Strategy<Value = String> {
    proptest::collection::vec(proptest::string::string_regex(word).unwrap(), words)
        .prop_map(|words| words.join("."))
}

proptest! {
    #[test]
    fn the_trie_agrees_with_the_definition_within_its_bound(
        patterns in proptest::collection::vec(text("[ab#*]|", 0..7), 1..40),
        removed in proptest::collection::vec(any::<bool>(), 40),
        keys in proptest::collection::vec(
            prop_oneof![4 => text("[abc]|", 0..8), 1 => text("[ab]", 60..70)], 1..12
        ),
    ) {
        let mut topic = Topic::default();
        for (at, pattern) in patterns.iter().enumerate() {
            topic.add(pattern, target(at)).unwrap();
        }
        for (at, pattern) in patterns.iter().enumerate().filter(|(at, _)| removed[*at]) {
            topic.remove(pattern, target(at));
        }
        let left: BTreeMap<u32, &str> = patterns
            .iter()
            .enumerate()
            .filter(|(at, _)| !removed[*at])
            .map(|(at, pattern)| (at as u32, &**pattern))
            .collect();
        let mut anew = Topic::default();
        for (at, pattern) in left.iter().rev() {
            anew.add(pattern, target(*at as usize)).unwrap();
        }
        prop_assert_eq!(topic.steps_max(), anew.steps_max(), "bounds do not depend on the past");
        prop_assert_eq!(topic.trie.len(), anew.trie.len());
        for key in &keys {
            let expected: Vec<u32> = left
                .iter()
                .filter(|(_, pattern)| fits_by_definition(pattern, key))
                .map(|(at, _)| *at)
                .collect();
            prop_assert!(steps(&mut topic, key) <= topic.steps_max());
            // Each once.
            prop_assert_eq!(queues(&mut topic, key), expected, "key {:?}", key);
        }
    }
}
