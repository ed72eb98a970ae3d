//! The options that name where the configuration comes from, and `quelea config`.

use std::path::PathBuf;

use clap::Args;

use crate::config::{Config, ConfigError, Settings, reference};
use crate::stdout;

/// Where the configuration comes from, on top of the defaults and the environment.
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    /// Directory of the log.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<String>,
    /// Configuration file; without it, quelea.toml in the working directory if there is one.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Set one key, as in --set amqp.listen=0.0.0.0:5672. May be given more than once.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    assignments: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// Print the reference of all keys in Markdown.
    #[arg(long, conflicts_with = "show")]
    markdown: bool,
    /// Print what is in force, as TOML (the default).
    #[arg(long)]
    show: bool,
}

impl ShowArgs {
    /// Prints the configuration, or the reference.
    ///
    /// # Errors
    /// [`ConfigError`] if a source is not valid.
    pub(crate) fn print(&self) -> Result<(), ConfigError> {
        if self.markdown {
            stdout::print(format_args!("{}", reference::markdown()));
        } else {
            stdout::print(format_args!("{}", reference::show(&self.config.config()?)));
        }
        Ok(())
    }
}

impl ConfigArgs {
    /// Returns the configuration of all sources, in their order.
    pub(crate) fn config(&self) -> Result<Config, ConfigError> {
        const FILE: &str = "quelea.toml";
        let mut settings = Settings::default();
        match &self.config {
            Some(path) => settings.file(path)?,
            None if std::path::Path::new(FILE).exists() => settings.file(FILE.as_ref())?,
            None => {}
        }
        // A variable that is not UTF-8 cannot be one of ours with a valid value.
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        settings.environment(variables)?;
        if let Some(dir) = &self.data_dir {
            settings.text("--data-dir", "data_dir", dir)?;
        }
        for assignment in &self.assignments {
            settings.assignment(assignment)?;
        }
        Ok(settings.config())
    }
}
