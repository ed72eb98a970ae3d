//! The page of the tests says of every suite what it is.

use std::collections::BTreeSet;
use std::process::Command;

use quelea_tidy::Repository;

use crate::assert_none;

const PAGE: &str = "tests/README.md";

#[test]
fn every_suite_has_a_row_and_every_row_is_a_suite() {
    let repository = Repository::open();
    let page = repository.read(PAGE);
    let (suites, rows) = (suites(&repository), rows(&page));
    let mut faults = Vec::new();
    faults.extend(suites.difference(&rows).map(|suite| format!("{PAGE} has no row of {suite}")));
    faults.extend(rows.difference(&suites).map(|row| format!("{PAGE}: {row} is no suite")));
    assert_none("suites of tests/run.py", &faults);
}

/// Returns the suites as tests/run.py has them: functions and constants name some, which a search
/// of its text would miss.
fn suites(repository: &Repository) -> BTreeSet<String> {
    let mut command = Command::new("python3");
    let listed = command.args(["-B", "tests/run.py", "--list"]).current_dir(repository.path(""));
    let output = listed.output().expect("python3, which runs the suites, starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "tests/run.py --list: {errors}");
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

/// Returns the names in the first column of the page's tables.
fn rows(page: &str) -> BTreeSet<String> {
    let first_cells = page.lines().filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
    let names = first_cells.flat_map(|cell| cell.split(", "));
    names.map(|name| name.trim_matches('`').to_owned()).collect()
}
