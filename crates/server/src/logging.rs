//! Log lines on standard error.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

/// A level or a filter that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{level:?}: {reason}")]
pub(crate) struct LevelError {
    level: String,
    reason: String,
}

/// Logs what `level` lets through, such as `info` or `info,quelea_node=debug`.
///
/// # Errors
/// [`LevelError`] when that is neither a level nor a filter.
pub(crate) fn to_stderr(level: &str) -> Result<(), LevelError> {
    let filter = EnvFilter::try_new(level)
        .map_err(|error| LevelError { level: level.to_owned(), reason: error.to_string() })?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
    Ok(())
}
