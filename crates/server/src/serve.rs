//! `quelea serve`.

use std::process::ExitCode;

use crate::config::Config;

/// Runs the broker until it is told to stop.
pub(crate) fn run(config: &Config) -> ExitCode {
    let _ = config;
    ExitCode::FAILURE
}
