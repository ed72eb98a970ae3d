//! Log lines on standard error.

use std::io::IsTerminal as _;

use tracing::level_filters::LevelFilter;
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
    /// Puts this level in force from now on.
    ///
    /// # Errors
    /// [`LevelError`], as [`to_stderr`]; nothing has changed then.
    pub(crate) fn set(&self, level: &str) -> Result<(), LevelError> {
        let failed = |reason| LevelError { level: level.to_owned(), reason };
        (self.0)(filter(level)?).map_err(failed)
    }
}

fn filter(level: &str) -> Result<EnvFilter, LevelError> {
    let refuse = |reason: String| LevelError { level: level.to_owned(), reason };
    // The library takes a word that is no level for the name of a module, and then logs nothing else.
    let is_level = |word: &str| word.parse::<LevelFilter>().is_ok();
    let unknown = level
        .split(',')
        .map(str::trim)
        .find(|part| !part.is_empty() && !part.contains(['=', '[']) && !is_level(part));
    if let Some(word) = unknown {
        let levels = "error, warn, info, debug, trace or off";
        return Err(refuse(format!("{word:?} is none of {levels}, nor MODULE=LEVEL")));
    }
    EnvFilter::try_new(level).map_err(|error| refuse(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::filter;

    #[test]
    fn a_level_is_one_that_there_is_or_that_of_a_module() {
        for level in ["info", "WARN", "off", "info,quelea_node=debug", "quelea_node=trace"] {
            assert!(filter(level).is_ok(), "{level}");
        }
        for level in ["verbose", "info,verbose", "quelea_node", "quelea_node=verbose"] {
            let error = filter(level).expect_err(level).to_string();
            assert!(error.contains(level), "{error}");
        }
    }
}
