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

/// A link's target relative to the tree; `None` if it goes above it.
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

#[test]
fn every_page_of_the_documentation_is_linked_from_its_front_page() {
    let repository = Repository::open();
    let front = Page::parse(&repository.read("docs/README.md"));
    let linked: Vec<String> = front
        .links
        .iter()
        .filter_map(|(_, link)| resolve("docs/README.md", link.split('#').next()?))
        .collect();
    let faults: Vec<String> = repository
        .files("docs", &[".md"])
        .into_iter()
        .filter(|path| path != "docs/README.md" && !linked.contains(path))
        .collect();
    assert_none("not linked from docs/README.md", &faults);
}

#[test]
fn the_changelog_begins_with_what_is_unreleased() {
    let text = Repository::open().read("CHANGELOG.md");
    let first = text.lines().find(|line| line.starts_with("## "));
    assert_eq!(first, Some("## Unreleased"));
}
