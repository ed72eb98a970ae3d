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

/// The level that is in force, to change it.
pub(crate) struct LogLevel(Box<dyn Fn(EnvFilter) -> Result<(), String>>);

/// Logs what `level` lets through, such as `info` or `info,quelea_node=debug`.
///
/// # Errors
/// [`LevelError`] when that is neither a level nor a filter.
pub(crate) fn to_stderr(level: &str) -> Result<LogLevel, LevelError> {
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter(level)?)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_filter_reloading();
    let handle = builder.reload_handle();
    builder.init();
    let set = move |filter| handle.reload(filter).map_err(|error| error.to_string());
    Ok(LogLevel(Box::new(set)))
}

impl LogLevel {
    /// From now on this level is in force.
    ///
    /// # Errors
    /// [`LevelError`], as [`to_stderr`]; nothing has changed then.
    pub(crate) fn set(&self, level: &str) -> Result<(), LevelError> {
        let failed = |reason| LevelError { level: level.to_owned(), reason };
        (self.0)(filter(level)?).map_err(failed)
    }
}

fn filter(level: &str) -> Result<EnvFilter, LevelError> {
    EnvFilter::try_new(level)
        .map_err(|error| LevelError { level: level.to_owned(), reason: error.to_string() })
}
