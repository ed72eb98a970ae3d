//! Reads the repository for the checks in `tests/`: which files there are, the workspace's manifests,
//! Markdown's links, Rust without its comments. It is never part of the product.
//! Start with [`Repository`]; each check is a file in `tests/it`.

mod imports;
mod markdown;
mod repository;
mod rust;

pub use imports::Imports;
pub use markdown::Page;
pub use repository::{CrateManifest, Repository};
pub use rust::{CodeLine, code_lines, product_code};
