//! What the map and the crates' first words say to stand in one place only, or to know nothing of another, is so.

use std::collections::BTreeSet;

use quelea_tidy::{CrateManifest, Repository, product_code};

use crate::sans_io::names;
use crate::{assert_none, in_one_line, is_within};

const MAP: &str = "ARCHITECTURE.md";
const LAYERS: &str = "crates/tidy/tests/it/layers.rs";

/// How such a claim is proven.
enum Proof {
    /// The product's code below a folder has one of these only in these files and folders, and in each of them.
    Names { below: &'static str, code: &'static [&'static str], places: &'static [&'static str] },
    /// These rooms link none of those rooms or families, nor does anything that they link.
    Apart(&'static [&'static str], &'static [&'static str]),
    /// This test of this file proves it.
    Test(&'static str, &'static str),
}
use Proof::{Apart, Names, Test};

/// A page or a crate's `lib.rs`, the words of its claim, and the proof.
const CLAIMS: &[(&str, &str, Proof)] = &[
    (
        MAP,
        "a family knows another only through `core`",
        Test(LAYERS, "every_crate_depends_only_on_the_layers_below_it"),
    ),
    (
        MAP,
        "every TCP socket that a front, a relay or a directory accepts comes from an `Acceptor`",
        Names {
            below: "crates",
            code: &[".accept()", ".poll_accept("],
            places: &[
                "crates/core/net/src/accept.rs",
                // The map names these two as exceptions.
                "crates/cassandra/store/src/fifo/peer_server.rs",
                "crates/elastic/bridge/src/keeper.rs",
            ],
        },
    ),
    (
        MAP,
        "no part knows `Broker`",
        Names {
            below: "crates/core/broker/src",
            code: &["Broker"],
            places: &[
                "crates/core/broker/src/broker.rs",
                "crates/core/broker/src/broker/",
                "crates/core/broker/src/lib.rs",
            ],
        },
    ),
    (
        MAP,
        "it reaches queues through the trait `Queues` and users through `Identity` only",
        Apart(
            &["sqs/protocol"],
            &["core/broker", "core/store", "core/node", "cassandra", "sqs/embedded"],
        ),
    ),
    (MAP, "**Invariant:** it knows no store", Apart(&["sqs/conformance"], STORES)),
    (MAP, "the server links no broker", Apart(&["sqs/server"], BROKER)),
    (MAP, "it needs no crate of the broker", Apart(&["sqs/client"], BROKER)),
    (
        MAP,
        "A page that asks the API and nothing else",
        Names {
            below: "console/src",
            code: &["http://", "https://", "XMLHttpRequest"],
            places: &[],
        },
    ),
    (
        MAP,
        "`console/src/api/client.ts` makes every request",
        Names {
            below: "console/src",
            code: &["fetch(", "new EventSource(", "new WebSocket(", "sendBeacon("],
            places: &["console/src/api/client.ts"],
        },
    ),
    (
        MAP,
        "the password in one place",
        Names {
            below: "console/src",
            code: &["sessionStorage", "localStorage", "document.cookie"],
            // The menu keeps whether it is light or dark.
            places: &["console/src/api/client.ts", "console/src/parts/Menu.svelte"],
        },
    ),
    (
        MAP,
        "none of them knows `management`",
        Apart(&["cmq/front", "elastic/directory", "cassandra/front"], &["management"]),
    ),
    (
        MAP,
        "`sqs/conformance`, which holds each store to the trait `Queues` and which no product links",
        Test(LAYERS, "the_product_compiles_nothing_that_only_tests_need"),
    ),
    (MAP, "a relay needs no Cassandra", Apart(&["elastic/relay"], &["cassandra"])),
    (
        "crates/amqp/codec/src/lib.rs",
        "It knows nothing of queues and exchanges",
        Apart(&["amqp/codec"], BROKER),
    ),
    (
        "crates/amqp/session/src/lib.rs",
        "which reply code a failure of the broker has stands in `errors.rs` alone",
        Names {
            below: "crates/amqp/session/src",
            code: &["ReplyCode::"],
            places: &[
                "crates/amqp/session/src/errors.rs",
                // No failures of the broker: a forced end, a returned message, a method that no server carries out.
                "crates/amqp/session/src/effects.rs",
                "crates/amqp/session/src/methods.rs",
                "crates/amqp/session/src/publish.rs",
                "crates/amqp/session/src/session.rs",
            ],
        },
    ),
    (
        "crates/cassandra/store/src/lib.rs",
        "nothing else speaks CQL but",
        Names {
            below: "crates/cassandra/store/src",
            code: &["SELECT ", "INSERT INTO ", "UPDATE @", "DELETE FROM "],
            places: &[
                "crates/cassandra/store/src/database/",
                "crates/cassandra/store/src/fifo/",
                "crates/cassandra/store/src/peers/front_end_table.rs",
            ],
        },
    ),
    (
        "crates/cmq/lib/src/lib.rs",
        "knows nothing of the wire",
        Names {
            below: "crates/cmq/lib/src",
            code: &["wire::"],
            // Names the causes by which it counts what was dropped.
            places: &["crates/cmq/lib/src/stats.rs"],
        },
    ),
    (
        "crates/core/model/src/lib.rs",
        "know a protocol beyond the shape",
        Apart(&["core/model"], FAMILIES),
    ),
    (
        "crates/core/net/src/lib.rs",
        "know a protocol beyond the headers",
        Apart(&["core/net"], FAMILIES),
    ),
    (
        "crates/management/src/lib.rs",
        "no AMQP type may appear here but field tables",
        Names {
            below: "crates/management/src",
            code: &["quelea_amqp_codec", "quelea_amqp_session"],
            places: &[],
        },
    ),
    (
        "crates/sqs/client/src/lib.rs",
        "must never need a broker's crate",
        Apart(&["sqs/client"], BROKER),
    ),
    (
        "crates/sqs/conformance/src/lib.rs",
        "must never know a store",
        Apart(&["sqs/conformance"], STORES),
    ),
    (
        "crates/sqs/conformance/src/lib.rs",
        "no product may link it",
        Test(LAYERS, "the_product_compiles_nothing_that_only_tests_need"),
    ),
    ("crates/sqs/server/src/lib.rs", "must never link a broker", Apart(&["sqs/server"], BROKER)),
    (
        "crates/testkit/src/lib.rs",
        "only `dev-dependencies` name it",
        Test(LAYERS, "the_product_compiles_nothing_that_only_tests_need"),
    ),
];

/// What begins like a claim and says nothing of where code stands, with what it is about.
const NO_CLAIMS: [(&str, &str, &str); 2] = [
    (MAP, "knows to be on the disk, and nothing else", "what recovery accepts"),
    (MAP, "`cargo build` alone needs no Node.js", "which command builds what"),
];

const BROKER: &[&str] = &["core/broker", "core/store", "core/node", "amqp/session"];
const STORES: &[&str] = &["core", "cassandra", "sqs/embedded"];
const FAMILIES: &[&str] = &["amqp", "sqs", "cmq", "elastic", "cassandra"];

/// How claims begin that something is nowhere else. Whoever writes one adds a row to [`CLAIMS`].
const SHAPES: [&str; 20] = [
    "the only ",
    "only crate",
    "only room",
    "only file",
    "only place",
    "only part",
    "only through `",
    "the one place",
    "in one place",
    "nothing else",
    "` alone",
    "links no ",
    "never link",
    "no product",
    "needs no crate",
    "never need",
    "knows no",
    "know a ",
    "knows `",
    "makes every ",
];

/// Returns the map, and what each crate says of itself first, in one line each.
fn pages(repository: &Repository) -> Vec<(String, String)> {
    let first_words = |path: String| {
        let source = repository.read(&path);
        let lines: Vec<&str> = source.lines().map_while(|line| line.strip_prefix("//!")).collect();
        (path, in_one_line(&lines.join("\n")))
    };
    let libraries = repository.files("crates", &["/src/lib.rs"]).into_iter();
    let map = (MAP.to_owned(), in_one_line(&repository.read(MAP)));
    libraries.map(first_words).chain([map]).collect()
}

#[test]
fn every_claim_of_one_place_has_its_proof() {
    let pages = pages(&Repository::open());
    let mut faults = Vec::new();
    for (page, text) in &pages {
        let proven = CLAIMS.iter().map(|(of, words, _)| (*of, *words));
        let others = NO_CLAIMS.iter().map(|(of, words, _)| (*of, *words));
        let claims: Vec<&str> =
            proven.chain(others).filter(|(of, _)| of == page).map(|(_, words)| words).collect();
        for words in claims.iter().filter(|words| !text.contains(**words)) {
            faults.push(format!("{page}: it does not say {words:?}"));
        }
        for shape in SHAPES {
            for (at, _) in text.match_indices(shape) {
                if !claims.iter().any(|words| is_within(text, at, words)) {
                    let words: String = text[at..].chars().take(60).collect();
                    faults.push(format!(
                        "{page}: nothing proves {words:?}: a row of CLAIMS or of NO_CLAIMS"
                    ));
                }
            }
        }
    }
    let known = |page: &str| pages.iter().any(|(path, _)| path == page);
    faults.extend(
        CLAIMS
            .iter()
            .filter(|(page, ..)| !known(page))
            .map(|(page, ..)| format!("{page}: no page")),
    );
    assert_none("claims without a proof, and proofs without a claim", &faults);
}

#[test]
fn every_claim_of_one_place_is_true() {
    let repository = Repository::open();
    let crates = repository.crates();
    let mut faults = Vec::new();
    for (page, words, proof) in CLAIMS {
        let found = match proof {
            Names { below, code, places } => misplaced(&repository, below, code, places),
            Apart(rooms, others) => {
                rooms.iter().flat_map(|room| linked(&crates, room, others)).collect()
            }
            Test(file, name) => {
                let is_there = repository.read(file).contains(&format!("#[test]\nfn {name}()"));
                (!is_there).then(|| format!("{file} has no test {name}")).into_iter().collect()
            }
        };
        faults.extend(found.into_iter().map(|fault| format!("{page}: {words:?}: {fault}")));
    }
    assert_none("claims that are not true", &faults);
}

/// Returns the lines with one of these that stand elsewhere, and the places that have none.
fn misplaced(repository: &Repository, below: &str, code: &[&str], places: &[&str]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut used = BTreeSet::new();
    for path in repository.files(below, &[".rs", ".ts", ".svelte"]) {
        let is_product =
            path.contains("/src/") && !path.contains("/tests") && !path.contains(".test.");
        if !is_product {
            continue;
        }
        let text = repository.read(&path);
        // Rust only: in TypeScript the `//` of an address would end a line.
        let text = if path.ends_with(".rs") { product_code(&text) } else { text };
        let place = places
            .iter()
            .find(|place| path == **place || place.ends_with('/') && path.starts_with(**place));
        for (at, line) in text.lines().enumerate() {
            if code.iter().any(|code| names(line, code)) {
                match place {
                    Some(place) => drop(used.insert(*place)),
                    None => faults.push(format!("{path}:{}: {}", at + 1, line.trim())),
                }
            }
        }
    }
    let unused = places.iter().filter(|place| !used.contains(**place));
    faults.extend(unused.map(|place| format!("{place} has none of {code:?}")));
    faults
}

/// Returns the rooms among these, or of these families, that a room links, by others too.
fn linked(crates: &[CrateManifest], room: &str, others: &[&str]) -> Vec<String> {
    let mut reached = BTreeSet::new();
    let mut next = vec![room];
    while let Some(room) = next.pop() {
        let Some(found) = crates.iter().find(|found| found.room == room) else {
            return vec![format!("there is no room {room}")];
        };
        for name in found.dependencies("dependencies") {
            let other = crates.iter().find(|other| other.package_of_room() == name);
            if let Some(other) = other.filter(|other| reached.insert(other.room.as_str())) {
                next.push(&other.room);
            }
        }
    }
    let is_meant = |room: &str, other: &str| {
        room.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let meant = reached.iter().filter(|room| others.iter().any(|other| is_meant(room, other)));
    meant.map(|other| format!("{room} links {other}")).collect()
}

#[test]
fn what_is_misplaced_or_linked_is_found() {
    let repository = Repository::open();
    let here = "crates/tidy/src/";
    assert!(
        misplaced(&repository, here, &["fs::read_dir"], &["crates/tidy/src/repository.rs"])
            .is_empty()
    );
    assert_eq!(misplaced(&repository, here, &["fs::read_dir"], &[]).len(), 1);
    assert_eq!(misplaced(&repository, here, &["fs::no_such"], &[here]).len(), 1);
    let crates = repository.crates();
    assert_eq!(linked(&crates, "sqs/server", &["core/mod", "cassandra"]), [""; 0]);
    assert_eq!(
        linked(&crates, "elastic/relay", &["core/model"]),
        ["elastic/relay links core/model"]
    );
}
