//! SIGHUP: reads the configuration anew, from where it came at the start, and takes over what can be changed while
//! the broker runs.

use std::convert::Infallible;
use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::cli::ConfigArgs;
use crate::config::{Config, Logging};
use crate::logging::LogLevel;

/// What waits for the signal, and what it changes.
pub(crate) struct Reload<'a> {
    hangup: Signal,
    sources: &'a ConfigArgs,
    level: LogLevel,
    in_force: Config,
}

impl<'a> Reload<'a> {
    /// Watches for the signal, which from now on does not end the process as it does by default.
    /// Needs a runtime.
    ///
    /// # Errors
    /// When the system refuses a handler.
    pub(crate) fn new(
        sources: &'a ConfigArgs,
        config: &Config,
        level: LogLevel,
    ) -> io::Result<Self> {
        let hangup = signal(SignalKind::hangup())?;
        Ok(Self { hangup, sources, level, in_force: config.clone() })
    }

    /// Obeys the signal whenever it comes, for ever.
    pub(crate) async fn run(&mut self) -> Infallible {
        loop {
            // It never ends: the handler stays.
            let _ = self.hangup.recv().await;
            self.reload();
        }
    }

    fn reload(&mut self) {
        let config = match self.sources.config() {
            Ok(config) => config,
            Err(error) => {
                tracing::error!(%error, "SIGHUP: the configuration is wrong, the old one stays");
                return;
            }
        };
        let Logging { level } = &config.logging;
        if let Err(error) = self.level.set(level) {
            tracing::error!("SIGHUP: logging.level = {error}; the old one stays");
            return;
        }
        tracing::info!(level, "SIGHUP: the configuration was read, logging.level is in force");
        self.in_force.logging = config.logging.clone();
        if self.in_force != config {
            tracing::warn!("SIGHUP: other settings have changed; they need a restart");
        }
    }
}
