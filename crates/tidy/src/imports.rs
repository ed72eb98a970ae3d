//! Which file of a crate names which other, read off its `use` lines and paths. Text, not types: a name
//! that only a macro makes is not seen.

use std::collections::{BTreeMap, BTreeSet};

use crate::rust::product_code;

/// Path of a module within its crate; empty for the root.
type Module = Vec<String>;

/// The files of one crate and what they import from each other.
#[derive(Debug, Default)]
pub struct Imports {
    edges: BTreeMap<Module, BTreeSet<Module>>,
}

impl Imports {
    /// Reads a crate's sources: paths below `src/`, and their text.
    #[must_use]
    pub fn read(sources: &[(String, String)]) -> Self {
        let sources: BTreeMap<Module, String> =
            sources.iter().map(|(path, text)| (module_of(path), product_code(text))).collect();
        let exports = sources.iter().map(|(module, text)| (module.clone(), reexports(text)));
        let crate_ =
            Crate { modules: sources.keys().cloned().collect(), exports: exports.collect() };
        let mut imports = Self::default();
        for (module, text) in &sources {
            let named = paths(text).into_iter().filter_map(|path| crate_.resolve(module, &path, 0));
            let others = named.filter(|other| other != module);
            imports.edges.insert(module.clone(), others.collect());
        }
        imports
    }

    /// Returns the sets of files that reach each other, as their modules' paths. A parent and the
    /// files of its folder may know each other, so a circle that one of its files is the parent of
    /// is none.
    #[must_use]
    pub fn circles(&self) -> Vec<Vec<String>> {
        let modules = self.edges.keys();
        let folders: BTreeSet<&[String]> =
            modules.flat_map(|module| (0..module.len()).map(|depth| &module[..depth])).collect();
        folders.into_iter().flat_map(|folder| self.circles_in(folder)).collect()
    }

    /// Returns the circles between a folder's files, each with its own folder, without the folder's
    /// parent: through it they may all lead.
    fn circles_in(&self, folder: &[String]) -> Vec<Vec<String>> {
        let depth = folder.len();
        let is_in = |module: &&Module| module.len() > depth && module.starts_with(folder);
        let mut left: BTreeSet<&Module> = self.edges.keys().filter(is_in).collect();
        let reached: BTreeMap<&Module, BTreeSet<&Module>> =
            left.iter().map(|start| (*start, self.reached_from(start, &left))).collect();
        let mut circles = Vec::new();
        while let Some(start) = left.pop_first() {
            let there_and_back = |other: &&Module| reached[other].contains(start);
            let circle: Vec<&Module> =
                reached[start].iter().copied().filter(there_and_back).collect();
            left.retain(|module| !circle.contains(module));
            if circle.iter().any(|other| other[depth] != start[depth]) {
                circles.push(circle.iter().map(|module| module.join("/")).collect());
            }
        }
        circles
    }

    /// Returns what `start` leads to by way of these files alone.
    fn reached_from<'a>(
        &'a self,
        start: &Module,
        files: &BTreeSet<&Module>,
    ) -> BTreeSet<&'a Module> {
        let mut reached = BTreeSet::new();
        let mut next: Vec<&Module> = self.edges.get(start).into_iter().flatten().collect();
        while let Some(module) = next.pop() {
            if files.contains(module) && reached.insert(module) {
                next.extend(self.edges.get(module).into_iter().flatten());
            }
        }
        reached
    }
}

/// The modules of a crate and what each hands on from others by `pub use`.
struct Crate {
    modules: BTreeSet<Module>,
    exports: BTreeMap<Module, BTreeMap<String, Vec<String>>>,
}

impl Crate {
    /// Returns the file that a path named in `module` leads to; `None` for a path out of the crate.
    fn resolve(&self, module: &Module, path: &[String], depth: usize) -> Option<Module> {
        /// A chain of re-exports that is longer leads in a circle.
        const DEPTH_MAX: usize = 5;
        let (mut at, mut rest) = match path.first()?.as_str() {
            "crate" => (Module::new(), &path[1..]),
            "self" => (module.clone(), &path[1..]),
            "super" => (module.clone(), path),
            first if self.modules.contains(&child(module, first)) => (module.clone(), path),
            _ => return None,
        };
        while rest.first().is_some_and(|part| part == "super") {
            at.pop()?;
            rest = &rest[1..];
        }
        while let Some(part) = rest.first().filter(|part| self.modules.contains(&child(&at, part)))
        {
            at.push(part.clone());
            rest = &rest[1..];
        }
        let exported = rest.first().and_then(|name| self.exports.get(&at)?.get(name));
        match exported.filter(|_| depth < DEPTH_MAX) {
            Some(path) => self.resolve(&at, path, depth + 1).or(Some(at)),
            None => Some(at),
        }
    }
}

fn child(module: &Module, part: &str) -> Module {
    let mut child = module.clone();
    child.push(part.to_owned());
    child
}

/// Returns the module of a file: `queue/groups.rs` is `queue::groups`, `lib.rs` and `main.rs` are
/// the root.
fn module_of(path: &str) -> Module {
    match path.trim_end_matches(".rs") {
        "lib" | "main" => Module::new(),
        path => path.trim_end_matches("/mod").split('/').map(str::to_owned).collect(),
    }
}

/// Returns what the source hands on by `pub use`: its name here, and where it is from.
fn reexports(text: &str) -> BTreeMap<String, Vec<String>> {
    let public =
        uses(text).filter(|(before, _)| before.ends_with("pub ") || before.ends_with(") "));
    let paths = public.flat_map(|(_, tree)| expand(tree));
    paths.filter_map(|path| Some((path.last()?.clone(), path))).collect()
}

/// Returns every path of the source: those of its `use` lines, and those that stand in its code.
fn paths(text: &str) -> Vec<Vec<String>> {
    let mut paths: Vec<_> = uses(text).flat_map(|(_, tree)| expand(tree)).collect();
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let words = text.split(|c| !is_word(c)).filter(|word| word.contains("::"));
    paths.extend(words.map(|word| parts(word.trim_matches(':'))));
    paths
}

/// Returns each `use` with the text before it and its tree.
fn uses(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.match_indices("use ").filter_map(move |(at, needle)| {
        let before = &text[..at];
        let starts = before.is_empty() || before.ends_with(['\n', ' ']);
        let tree = text[at + needle.len()..].split(';').next()?;
        starts.then_some((before, tree))
    })
}

/// Expands a tree: `a::{b, c::{d, e}}` as `a::b`, `a::c::d`, `a::c::e`.
fn expand(tree: &str) -> Vec<Vec<String>> {
    let Some((prefix, rest)) = tree.split_once('{') else { return vec![parts(tree)] };
    let inner = rest.rsplit_once('}').map_or(rest, |(inner, _)| inner);
    let (mut depth, mut start, mut items) = (0, 0, Vec::new());
    for (at, c) in inner.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                items.push(&inner[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    items.push(&inner[start..]);
    let items = items.into_iter().filter(|item| !item.trim().is_empty());
    items.flat_map(|item| expand(&format!("{}{}", prefix.trim(), item.trim()))).collect()
}

fn parts(path: &str) -> Vec<String> {
    let path = path.split(" as ").next().unwrap_or_default();
    path.split("::").map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circles(sources: &[(&str, &str)]) -> Vec<Vec<String>> {
        let sources: Vec<_> =
            sources.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        Imports::read(&sources).circles()
    }

    #[test]
    fn files_that_import_each_other_are_a_circle() {
        let found = circles(&[
            ("lib.rs", "mod a;\nmod b;\nmod c;\npub use c::C;\n"),
            ("a.rs", "use crate::b::{B, X};\n"),
            ("b.rs", "fn f() -> crate::C { todo }\n"),
            ("c.rs", "use super::a;\n"),
            ("d.rs", "// use crate::a;\nuse crate::a::A;\n"),
        ]);
        assert_eq!(found, [["a", "b", "c"]]);
    }

    #[test]
    fn a_circle_through_a_parent_counts_where_it_leaves_the_parents_folder() {
        let found = circles(&[
            ("lib.rs", "mod api;\nmod sampler;\n"),
            ("api.rs", "mod listing;\nmod routes;\nuse crate::sampler::run;\nstruct Answer;\n"),
            ("api/listing.rs", "use super::Answer;\n"),
            ("api/routes.rs", "use super::listing::list;\n"),
            ("sampler.rs", "use crate::api::listing::by_turns;\n"),
        ]);
        assert_eq!(found, [["api", "api/listing", "sampler"]]);
        let found = circles(&[
            ("lib.rs", "mod a;\n"),
            ("a.rs", "mod b;\nmod c;\nuse b::B;\n"),
            ("a/b.rs", "mod inner;\nuse super::c::C;\n"),
            ("a/b/inner.rs", "use super::B;\n"),
            ("a/c.rs", "use super::A;\nuse super::b::inner::I;\n"),
        ]);
        assert_eq!(found, [["a/b", "a/b/inner", "a/c"]]);
    }

    #[test]
    fn what_stands_behind_an_item_for_tests_counts() {
        let tests = "#[cfg(test)]\n#[derive(Debug)]\nstruct Double {\n    a: u8,\n}\n#[cfg(test)]\nmod tests;\n";
        let found = circles(&[
            ("lib.rs", "mod a;\nmod b;\n"),
            ("a.rs", &format!("{tests}use crate::b::B;\n")),
            ("b.rs", "use crate::a::A;\n"),
        ]);
        assert_eq!(found, [["a", "b"]]);
    }

    #[test]
    fn parents_tests_and_other_crates_make_no_circle() {
        let found = circles(&[
            ("lib.rs", "mod a;\nmod b;\nuse a::A;\n"),
            ("a.rs", "mod inner;\nuse inner::I;\nuse bytes::Bytes;\n"),
            ("a/inner.rs", "use super::A;\nuse crate::L;\n"),
            ("b.rs", "use crate::a::A;\n"),
            ("a/other.rs", "fn f() {}\n#[cfg(test)]\nmod tests { use crate::b::B; }\n"),
        ]);
        assert_eq!(found, Vec::<Vec<String>>::new());
    }
}
