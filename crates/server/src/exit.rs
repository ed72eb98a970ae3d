//! Exit codes, each with its message.

use std::fmt::Display;
use std::process::ExitCode;

/// Reports what the user has to correct, the command or the configuration. Returns exit code 2, as
/// clap has it. `command` is as it was typed, as in `quelea push`.
pub(crate) fn refuse(command: &str, error: impl Display) -> ExitCode {
    eprintln!("{command}: {error}");
    ExitCode::from(2)
}

/// Reports that something went wrong on the way. Returns exit code 1.
pub(crate) fn fail(command: &str, error: impl Display) -> ExitCode {
    eprintln!("{command}: {error}");
    ExitCode::FAILURE
}
