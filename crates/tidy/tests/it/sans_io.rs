//! L0 to L2 and every L1 do no I/O (DESIGN.md, invariant 1).

use quelea_tidy::{Repository, code_lines};

use crate::assert_none;

const CRATES: [&str; 11] = [
    "core/model",
    "amqp/codec",
    "sqs/protocol",
    "cassandra/fifo",
    "cmq/proto",
    "elastic/zmtp",
    "elastic/proto",
    "core/store",
    "core/broker",
    "amqp/session",
    "elastic/core",
];

/// What such a crate may depend on besides ours: pure computation. Whoever adds one here has looked
/// at what it pulls in.
const PURE: &[&str] = &[
    "base64",
    "bytes",
    "crc32c",
    "crypto_box",
    "fastrand",
    "form_urlencoded",
    "hashbrown",
    "hex",
    "hmac",
    "jiff",
    "md-5",
    "memchr",
    "percent-encoding",
    "quick-xml",
    "regex",
    "ring",
    "rustc-hash",
    "serde",
    "schemars",
    "serde_json",
    "sha2",
    "slab",
    "slotmap",
    "smallvec",
    "thiserror",
    "uuid",
];

/// Paths that have no place in such a crate, each with whose matter it is.
const BANNED: [(&str, &str); 13] = [
    ("std::net", "sockets belong to the shell"),
    ("std::os", "descriptors belong to the shell"),
    ("std::process", "processes belong to the shell"),
    ("std::thread", "threads belong to the shell"),
    ("std::fs", "files only behind the Disk trait"),
    ("std::env", "configuration comes in as an argument"),
    ("std::sync::Mutex", "a queue has one owner"),
    ("std::sync::RwLock", "a queue has one owner"),
    ("Instant", "time comes in as an argument"),
    ("SystemTime", "time comes in as an argument"),
    ("RandomState", "randomness comes in as a seeded generator"),
    ("tokio", "the runtime belongs to the shell"),
    ("println!", "effects go out as data"),
];

/// Where a banned path is right, with the reason.
const EXCEPTIONS: [(&str, &str, &str); 1] = [(
    "crates/core/store/src/fake_disk",
    "std::sync::Mutex",
    "a test's Disk is shared by its threads",
)];

#[test]
fn the_sans_io_crates_have_the_same_bans_for_clippy() {
    let repository = Repository::open();
    let expected = repository.read("crates/core/model/clippy.toml");
    assert!(expected.contains("disallowed-methods") && expected.contains("disallowed-types"));
    let faults: Vec<String> = CRATES
        .iter()
        .map(|name| format!("crates/{name}/clippy.toml"))
        .filter(|path| repository.read(path) != expected)
        .collect();
    assert_none("not the same as crates/core/model/clippy.toml", &faults);
}

#[test]
fn the_sans_io_crates_depend_on_nothing_that_does_io() {
    let mut faults = Vec::new();
    for found in Repository::open().crates() {
        if !CRATES.contains(&found.room.as_str()) {
            continue;
        }
        for section in ["dependencies", "build-dependencies"] {
            let names = found.dependencies(section);
            let foreign = names.iter().filter(|name| !name.starts_with("quelea-"));
            for name in foreign.filter(|name| !PURE.contains(&name.as_str())) {
                faults.push(format!("{}: {name} is not known to be pure", found.path));
            }
        }
    }
    assert_none("dependencies of sans-I/O crates", &faults);
}

#[test]
fn the_sans_io_crates_name_no_socket_file_thread_or_clock() {
    let repository = Repository::open();
    let mut faults = Vec::new();
    for name in CRATES {
        for path in repository.files(&format!("crates/{name}/src"), &[".rs"]) {
            let source = repository.read(&path);
            for line in code_lines(&source) {
                for (needle, why) in BANNED {
                    if names(line.code, needle) && !is_exception(&path, needle) {
                        faults.push(format!("{path}:{}: {needle}: {why}", line.number));
                    }
                }
            }
        }
    }
    assert_none("I/O in sans-I/O crates", &faults);
}

/// Returns whether it stands in the code as such and not as a part of a longer word.
pub(crate) fn names(code: &str, needle: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let (begins, ends) = (needle.starts_with(is_word), needle.ends_with(is_word));
    code.match_indices(needle).any(|(at, _)| {
        let before = code[..at].chars().next_back().is_some_and(is_word);
        let after = code[at + needle.len()..].chars().next().is_some_and(is_word);
        !(begins && before || ends && after)
    })
}

fn is_exception(path: &str, needle: &str) -> bool {
    EXCEPTIONS.iter().any(|(place, what, _)| path.starts_with(place) && *what == needle)
}
