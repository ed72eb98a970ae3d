//! A path in backticks on a page is a place in the tree.

use std::collections::BTreeSet;

use quelea_tidy::{Page, Repository};

use crate::assert_none;
use crate::numbers::COUNTS;

/// A page that says what once was.
const HISTORY: &str = "CHANGELOG.md";

/// Where a path may begin, if it is not written out from the root of the tree: the map has most of its paths below
/// `crates/`. It may begin beside its page too.
const ROOTS: [&str; 3] = ["", "crates/", "docs/"];

/// A word with one of these is a source, with a folder before it or without.
const ENDINGS: [&str; 16] = [
    ".rs", ".py", ".toml", ".md", ".ts", ".svelte", ".js", ".sh", ".json", ".yaml", ".html",
    ".css", ".c", ".h", ".java", ".go",
];

/// What looks like a path of the tree and is none.
const EXCEPTIONS: [(&str, &str); 2] = [
    ("quelea.toml", "a user's configuration, in their working directory"),
    ("elastic/relays", "a folder of the data directory"),
];

/// The files and folders of the tree.
struct Tree {
    paths: BTreeSet<String>,
    names: BTreeSet<String>,
    /// What the first part of a path may be: a folder of the root or of `crates/`.
    folders: BTreeSet<String>,
}

impl Tree {
    fn of(repository: &Repository) -> Self {
        let mut paths = BTreeSet::new();
        let mut names = BTreeSet::new();
        for file in repository.files("", &[]) {
            names.extend(file.rsplit('/').next().map(str::to_owned));
            let folders = file.match_indices('/').map(|(end, _)| file[..end].to_owned());
            paths.extend(folders.collect::<Vec<_>>());
            paths.insert(file);
        }
        let below = |root: &str| {
            let inner = paths.iter().filter_map(|path| path.strip_prefix(root)?.split_once('/'));
            inner.map(|(folder, _)| folder.to_owned()).collect::<BTreeSet<_>>()
        };
        let folders = &below("") | &below("crates/");
        Self { paths, names, folders }
    }

    /// Returns the words of a code that are meant as paths of the tree: sources by their ending, and what begins
    /// with one of its folders. What begins with `/` is an address, or a file of the machine.
    fn paths_in<'a>(&self, code: &'a str) -> impl Iterator<Item = &'a str> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "/._-*".contains(c);
        code.split_whitespace()
            .map(|word| word.trim_start_matches("./").trim_end_matches([':', ',', ';']))
            .filter(move |word| word.chars().all(plain) && !word.starts_with('/'))
            .filter(|word| {
                let (folder, _) = word.split_once('/').unwrap_or_default();
                self.folders.contains(folder) || ENDINGS.iter().any(|ending| is_named(word, ending))
            })
    }

    fn has(&self, page: &str, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        if !path.contains('/') {
            return self.names.contains(path) || self.folders.contains(path);
        }
        let beside = page.rsplit_once('/').map(|(folder, _)| format!("{folder}/"));
        let mut roots = ROOTS.into_iter().chain(beside.as_deref());
        roots.any(|root| match path.contains('*') {
            true => self.paths.iter().any(|found| matches(&format!("{root}{path}"), found)),
            false => self.paths.contains(&format!("{root}{path}")),
        })
    }
}

/// Returns whether a word ends so and is more than that: `.rs` alone is what files end with.
fn is_named(word: &str, ending: &str) -> bool {
    word.strip_suffix(ending).is_some_and(|name| !name.is_empty() && !name.ends_with(['/', '*']))
}

/// Returns whether a path is one of those that a pattern stands for: a `*` is any text within one
/// part.
fn matches(pattern: &str, path: &str) -> bool {
    let is_part = |(pattern, part): (&str, &str)| match pattern.split_once('*') {
        Some((start, end)) => {
            part.len() >= start.len() + end.len() && part.starts_with(start) && part.ends_with(end)
        }
        None => pattern == part,
    };
    pattern.split('/').count() == path.split('/').count()
        && pattern.split('/').zip(path.split('/')).all(is_part)
}

#[test]
fn every_path_on_a_page_exists() {
    let repository = Repository::open();
    let tree = Tree::of(&repository);
    let mut count = 0;
    let mut faults = Vec::new();
    for name in repository.files("", &[".md"]).iter().filter(|name| *name != HISTORY) {
        for (line, code) in Page::parse(&repository.read(name)).codes {
            let is_exception = |path: &&str| EXCEPTIONS.iter().any(|(word, _)| word == path);
            for path in tree.paths_in(&code).filter(|path| !is_exception(path)) {
                count += 1;
                if !tree.has(name, path) {
                    faults.push(format!("{name}:{line}: {path}"));
                }
            }
        }
    }
    assert!(count > 400, "the paths were found, {count}");
    assert_none("paths that do not exist, nor are in EXCEPTIONS", &faults);
}

#[test]
fn paths_are_told_from_other_words() {
    let tree = Tree::of(&Repository::open());
    let code =
        "cargo run ./crates/tidy/ core/broker/src/gone.rs: x.svelte /api/x.json .rs */a.b a/b";
    let found: Vec<_> = tree.paths_in(code).collect();
    assert_eq!(found, ["crates/tidy/", "core/broker/src/gone.rs", "x.svelte"]);
    assert!(tree.has("README.md", "crates/tidy/") && tree.has("docs/sqs/x.md", "service.md"));
    assert!(tree.has("README.md", "crates/*/m*l/clippy.toml"));
    assert!(!tree.has("README.md", "core/broker/src/gone.rs") && !tree.has("a.md", "x.svelte"));
    assert!(!tree.has("README.md", "crates/*/clippy.toml"));
}

/// The paragraph from `main` to the call that appends a message: so many files as it says, from the one to the other.
#[test]
fn the_way_from_main_to_the_log_has_as_many_files_as_said() {
    let repository = Repository::open();
    let text = repository.read("ARCHITECTURE.md");
    let found = text.split("\n\n").find(|paragraph| paragraph.starts_with("From `main` to "));
    let paragraph = found.expect("the map has the way from main to the log");
    let codes = Page::parse(paragraph).codes;
    let files: Vec<&str> =
        codes.iter().map(|(_, code)| code.as_str()).filter(|code| code.contains('/')).collect();
    let (said, _) = paragraph.split_once(" files:").expect("it says how many files there are");
    let count = COUNTS.iter().position(|count| said.ends_with(&format!(" {count}")));
    assert_eq!(count, Some(files.len()), "{said}: {files:?}");
    let missing = files.iter().filter(|file| !repository.path(file).is_file());
    assert_none("missing files", &missing.map(|file| (*file).to_owned()).collect::<Vec<_>>());
    let holds = |file: Option<&&str>, code| file.is_some_and(|f| repository.read(f).contains(code));
    assert!(holds(files.first(), "fn main("), "it begins with main");
    assert!(holds(files.last(), ".append_message("), "it ends with the call");
}
