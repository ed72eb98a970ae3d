//! Checks of the whole tree. Each gathers what is wrong and fails with the list.

mod circles;
mod clean_code;
mod configuration;
mod documentation;
mod executable;
mod experiments;
mod layers;
mod length;
mod numbers;
mod required_files;
mod sans_io;

/// Fails with everything that was found, a line each.
fn assert_none(what: &str, faults: &[String]) {
    assert!(faults.is_empty(), "{what}:\n  {}\n", faults.join("\n  "));
}
