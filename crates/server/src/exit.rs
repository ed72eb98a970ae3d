//! Exit codes, each with its message.

use std::fmt::Display;
use std::process::ExitCode;

/// The user has to correct the command or the configuration: exit code 2, as clap has it. `command` is
/// as it was typed, as in `quelea push`.
pub(crate) fn refuse(command: &str, error: impl Display) -> ExitCode {
    eprintln!("{command}: {error}");
    ExitCode::from(2)
}

/// Something went wrong on the way: exit code 1.
pub(crate) fn fail(command: &str, error: impl Display) -> ExitCode {
    eprintln!("{command}: {error}");
    ExitCode::FAILURE
}
