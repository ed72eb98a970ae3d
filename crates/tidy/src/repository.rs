//! The checked-out tree.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use toml::Table;

/// Directories that hold nothing of ours: builds, downloads, data.
const SKIPPED: [&str; 8] = [
    "target",
    "node_modules",
    "quelea-data",
    "__pycache__",
    "artifacts",
    "build",
    "dist",
    "coverage",
];

/// The tree that holds this crate.
#[derive(Debug)]
pub struct Repository {
    root: PathBuf,
}

/// One crate of the workspace, by its manifest.
#[derive(Debug)]
pub struct CrateManifest {
    /// The room: the directory's path below `crates/`, such as `core/broker`.
    pub room: String,
    /// The directory's path from the root of the tree.
    pub path: String,
    /// The whole manifest.
    pub manifest: Table,
}

impl Repository {
    /// Finds the tree from this crate's place in it.
    ///
    /// # Panics
    /// If this crate was moved out of `crates/`.
    #[must_use]
    pub fn open() -> Self {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = here.ancestors().nth(2).expect("the crate stands at crates/tidy");
        Self { root: root.to_owned() }
    }

    /// Returns where a path of the tree stands.
    #[must_use]
    pub fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// Returns a file's text.
    ///
    /// # Panics
    /// If it cannot be read as UTF-8: the check that asked for it has found its first fault.
    #[must_use]
    pub fn read(&self, path: &str) -> String {
        match fs::read_to_string(self.path(path)) {
            Ok(text) => text,
            Err(error) => panic!("{path}: {error}"),
        }
    }

    /// Returns all files below a directory with one of these endings (`.rs`), sorted; hidden ones
    /// and builds are left out. Paths are relative to the tree and use `/`. No directory: no files.
    ///
    /// # Panics
    /// If a directory cannot be read.
    #[must_use]
    pub fn files(&self, below: &str, endings: &[&str]) -> Vec<String> {
        let mut files = Vec::new();
        self.walk(&self.path(below), &mut |path| {
            let path = path.strip_prefix(&self.root).expect("a walk stays in the tree");
            let path = path.to_string_lossy().replace('\\', "/");
            if endings.is_empty() || endings.iter().any(|ending| path.ends_with(ending)) {
                files.push(path);
            }
        });
        files.sort();
        files
    }

    /// Returns the crates under `crates/`, by family and room.
    ///
    /// # Panics
    /// If a manifest cannot be read.
    #[must_use]
    pub fn crates(&self) -> Vec<CrateManifest> {
        let manifests = self.files("crates", &["/Cargo.toml"]);
        let paths = manifests.iter().filter_map(|path| path.strip_suffix("/Cargo.toml"));
        paths
            .map(|path| CrateManifest {
                room: path.trim_start_matches("crates/").to_owned(),
                path: path.to_owned(),
                manifest: self.toml(&format!("{path}/Cargo.toml")),
            })
            .collect()
    }

    /// Reads a TOML file.
    ///
    /// # Panics
    /// If it is none.
    #[must_use]
    pub fn toml(&self, path: &str) -> Table {
        match self.read(path).parse() {
            Ok(table) => table,
            Err(error) => panic!("{path}: {error}"),
        }
    }

    fn walk(&self, directory: &Path, visit: &mut dyn FnMut(&Path)) {
        let Ok(entries) = fs::read_dir(directory) else {
            assert!(!directory.exists(), "{} cannot be read", directory.display());
            return;
        };
        for entry in entries {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => panic!("{}: {error}", directory.display()),
            };
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with('.') || SKIPPED.contains(&&*name) {
                continue;
            }
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => self.walk(&entry.path(), visit),
                Ok(kind) if kind.is_file() => visit(&entry.path()),
                _ => {}
            }
        }
    }
}

impl CrateManifest {
    /// Returns the package's name as its room says it: `quelea-FAMILY-ROOM`, without the family in
    /// `core`, and `quelea-cmq` for the library that programs link.
    #[must_use]
    pub fn package_of_room(&self) -> String {
        match self.room.as_str() {
            "cmq/lib" => "quelea-cmq".to_owned(),
            room => format!("quelea-{}", room.trim_start_matches("core/").replace('/', "-")),
        }
    }

    /// Returns the names in a section such as `dependencies`, of all targets.
    #[must_use]
    pub fn dependencies(&self, section: &str) -> Vec<String> {
        let targets = self.manifest.get("target").and_then(|t| t.as_table()).into_iter().flatten();
        let tables = targets.filter_map(|(_, target)| target.as_table()).chain([&self.manifest]);
        let sections = tables.filter_map(|table| table.get(section)?.as_table());
        let mut names: BTreeMap<&str, ()> = BTreeMap::new();
        for section in sections {
            names.extend(section.keys().map(|name| (name.as_str(), ())));
        }
        names.into_keys().map(str::to_owned).collect()
    }
}
