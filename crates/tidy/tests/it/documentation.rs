//! Links lead somewhere, every page is linked, the changelog is kept.

use std::collections::BTreeMap;

use quelea_tidy::{Page, Repository};

use crate::assert_none;

#[test]
fn every_link_between_pages_leads_somewhere() {
    let repository = Repository::open();
    let pages: BTreeMap<String, Page> = repository
        .files("", &[".md"])
        .into_iter()
        .map(|path| (path.clone(), Page::parse(&repository.read(&path))))
        .collect();
    assert!(pages.len() > 5, "the pages were found");
    let mut faults = Vec::new();
    for (path, page) in &pages {
        for (line, link) in &page.links {
            if let Some(fault) = fault_of(&repository, &pages, path, link) {
                faults.push(format!("{path}:{line}: {link}: {fault}"));
            }
        }
    }
    assert_none("dead links", &faults);
}

fn fault_of(
    repository: &Repository,
    pages: &BTreeMap<String, Page>,
    from: &str,
    link: &str,
) -> Option<&'static str> {
    let link = link.trim_start_matches('<').trim_end_matches('>');
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = if file.is_empty() { Some(from.to_owned()) } else { resolve(from, file) };
    let Some(target) = target else { return Some("it leaves the repository") };
    if !repository.path(&target).exists() {
        return Some("there is no such file");
    }
    let page = pages.get(&target);
    let known =
        anchor.is_empty() || page.is_none_or(|page| page.anchors.iter().any(|a| a == anchor));
    (!known).then_some("there is no such heading")
}

/// Returns a link's target relative to the tree; `None` if it goes above it.
fn resolve(from: &str, link: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// `docs/README.md` leads to each folder's index, and that to each page of its folder.
#[test]
fn every_page_of_the_documentation_is_linked_from_an_index() {
    let repository = Repository::open();
    let mut faults = Vec::new();
    for path in repository.files("docs", &[".md"]).iter().filter(|path| *path != "docs/README.md") {
        let (folder, name) = path.rsplit_once('/').unwrap_or_default();
        let index = match name {
            "README.md" => "docs/README.md".to_owned(),
            _ => format!("{folder}/README.md"),
        };
        let page = Page::parse(&repository.read(&index));
        let links = page.links.iter().filter_map(|(_, link)| link.split('#').next());
        if !links.filter_map(|link| resolve(&index, link)).any(|linked| linked == *path) {
            faults.push(format!("{path}: {index} does not link it"));
        }
    }
    assert_none("pages that no index links", &faults);
}

#[test]
fn every_rust_example_of_the_documentation_is_compiled_by_a_crate() {
    let repository = Repository::open();
    let has_example = |path: &String| {
        repository.read(path).lines().any(|line| line.trim_start().starts_with("```rust"))
    };
    let pages: Vec<_> =
        repository.files("docs", &[".md"]).into_iter().filter(has_example).collect();
    assert!(!pages.is_empty(), "the examples were found");
    let crates: Vec<_> =
        repository.files("crates", &["/lib.rs"]).iter().map(|path| repository.read(path)).collect();
    let is_compiled = |page: &String| {
        crates.iter().any(|code| code.contains(&format!("include_str!(\"../../../../{page}\")")))
    };
    let faults: Vec<_> = pages.into_iter().filter(|page| !is_compiled(page)).collect();
    assert_none("pages with Rust that no crate takes as a doctest", &faults);
}

#[test]
fn the_changelog_begins_with_what_is_unreleased() {
    let text = Repository::open().read("CHANGELOG.md");
    let first = text.lines().find(|line| line.starts_with("## "));
    assert_eq!(first, Some("## Unreleased"));
}
