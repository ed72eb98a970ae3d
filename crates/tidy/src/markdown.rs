//! Markdown pages: their links and the anchors that others can link to.

use std::collections::BTreeMap;

/// A page, read for its links.
#[derive(Debug, Default)]
pub struct Page {
    /// Targets as written, with the number of their line.
    pub links: Vec<(usize, String)>,
    /// What can follow a `#`: the slugs of headings and the identifiers of anchors.
    pub anchors: Vec<String>,
    /// What stands between backticks, with the number of the line where it begins; it may go on in the next
    /// line. Code in fences is not among it.
    pub codes: Vec<(usize, String)>,
}

impl Page {
    /// Reads a page. Code, in fences or between backticks, has no links and no headings.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut page = Self::default();
        let mut slugs: BTreeMap<String, usize> = BTreeMap::new();
        let mut fence: Option<&str> = None;
        // A code ends in its paragraph: one backtick too many spoils no more than that.
        let mut paragraph = String::new();
        for (at, line) in text.lines().enumerate() {
            let trimmed = line.trim_start();
            let mark = ["```", "~~~"].into_iter().find(|mark| trimmed.starts_with(mark));
            if trimmed.is_empty() || mark.is_some() {
                page.take_codes(&mut paragraph, at);
            } else if fence.is_none() {
                paragraph.push_str(line);
                paragraph.push('\n');
            }
            match (fence, mark) {
                (None, Some(mark)) => fence = Some(mark),
                (Some(open), Some(mark)) if open == mark => fence = None,
                (None, None) => {
                    let (prose, _) = split_codes(line);
                    page.links.extend(targets(&prose).map(|target| (at + 1, target)));
                    page.anchors.extend(identifiers(&prose));
                    if let Some(slug) = heading(line) {
                        let count = slugs.entry(slug.clone()).or_insert(0);
                        let repeated = format!("{slug}-{count}");
                        page.anchors.push(if *count == 0 { slug } else { repeated });
                        *count += 1;
                    }
                }
                _ => {}
            }
        }
        page.take_codes(&mut paragraph, text.lines().count());
        page
    }

    /// Takes the codes of a paragraph, behind whose last line so many lines have been read.
    fn take_codes(&mut self, paragraph: &mut String, read: usize) {
        let first = read - paragraph.lines().count() + 1;
        let (_, codes) = split_codes(paragraph);
        let line = |at: usize| first + paragraph[..at].matches('\n').count();
        self.codes.extend(codes.into_iter().map(|(at, code)| (line(at), code.to_owned())));
        paragraph.clear();
    }
}

/// Returns the text with its codes blanked, and what stands between backticks, each with its place.
fn split_codes(text: &str) -> (String, Vec<(usize, &str)>) {
    let mut prose = String::with_capacity(text.len());
    let mut codes = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find('`') {
        let ticks = rest[start..].len() - rest[start..].trim_start_matches('`').len();
        let after = &rest[start + ticks..];
        let Some(end) = after.find(&"`".repeat(ticks)) else { break };
        prose.push_str(&rest[..start]);
        prose.push('`');
        codes.push((text.len() - after.len(), &after[..end]));
        rest = &after[end + ticks..];
    }
    prose.push_str(rest);
    (prose, codes)
}

/// Returns the targets of `[text](target)`, `[name]: target`, `<a href="target">` and
/// `src="target"`.
fn targets(prose: &str) -> impl Iterator<Item = String> {
    let inline = prose.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
    let defined = prose
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("]: "))
        .and_then(|(_, target)| target.split_whitespace().next());
    let html = prose.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
    let images = prose.split("src=\"").skip(1).filter_map(|rest| rest.split('"').next());
    inline
        .chain(defined)
        .chain(html)
        .chain(images)
        .map(str::to_owned)
        .collect::<Vec<_>>()
        .into_iter()
}

/// Returns the identifiers of `<a id="…">` and `<a name="…">`.
fn identifiers(prose: &str) -> impl Iterator<Item = String> {
    let ids = prose.split("<a id=\"").skip(1).chain(prose.split("<a name=\"").skip(1));
    ids.filter_map(|rest| rest.split('"').next()).map(str::to_owned).collect::<Vec<_>>().into_iter()
}

/// Returns the slug of a heading, as the common hosts of repositories make it: lower case, without
/// marks, spaces as hyphens.
fn heading(line: &str) -> Option<String> {
    let text = line.trim_start_matches('#');
    let level = line.len() - text.len();
    if !(1..=6).contains(&level) || !text.starts_with(' ') {
        return None;
    }
    let text = link_texts(text.trim().trim_end_matches('#').trim());
    let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    Some(kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect())
}

/// Returns a text whose links are replaced by what one reads.
fn link_texts(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(middle) = rest.find("](") {
        let Some(end) = rest[middle..].find(')') else { break };
        out.push_str(&rest[..middle]);
        rest = &rest[middle + end + 1..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_in_prose_and_not_in_code() {
        let text = "See [a](a.md#x) and [b](<b>), `[no](no.md)`.\n```\n[no](no.md)\n```\n[c]: c.md \"t\"\n";
        let page = Page::parse(text);
        let targets: Vec<_> = page.links.iter().map(|(line, to)| (*line, to.as_str())).collect();
        assert_eq!(targets, [(1, "a.md#x"), (1, "<b>"), (5, "c.md")]);
    }

    #[test]
    fn codes_are_found_over_lines_and_not_in_fences() {
        let text = "A `b` and ``c`d``, `e\nf`.\n```\n`no`\n```\nAn odd ` one.\n\n`g`\n";
        let page = Page::parse(text);
        let codes: Vec<_> = page.codes.iter().map(|(line, code)| (*line, code.as_str())).collect();
        assert_eq!(codes, [(1, "b"), (1, "c`d"), (1, "e\nf"), (8, "g")]);
    }

    #[test]
    fn headings_have_slugs_that_are_counted_when_they_repeat() {
        let text = "# The *log*: `fsync`, or not?\n## Part\n## Part\n### A [link](x.md) (2)\n#no\n";
        let page = Page::parse(text);
        assert_eq!(page.anchors, ["the-log-fsync-or-not", "part", "part-1", "a-link-2"]);
    }
}
