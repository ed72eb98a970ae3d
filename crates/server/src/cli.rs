//! The command line: `quelea serve`, `config`, `admin`, `bench`, `push`, `pop`, `elastic`, `relay`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use quelea_elastic_directory::provider::process::hold;

use crate::config::{Config, ConfigError, Settings, reference};
use crate::{admin, bench, elastic_pipe, exit, pop, push, relay, serve};

/// A message queue in which every queue picks its own point between speed and guarantees.
#[derive(Debug, Parser)]
#[command(name = "quelea", version, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start the broker.
    Serve(ConfigArgs),
    /// Print the configuration that is in force, or the reference of all keys.
    Config(ShowArgs),
    /// Manage users, virtual hosts, permissions and queues of a running broker.
    Admin(admin::AdminArgs),
    /// Put a broker under load and measure it.
    Bench(bench::BenchArgs),
    /// Send each line of standard input to a CMQ peer (UDP, no broker).
    Push(push::PushArgs),
    /// Print what CMQ peers send here, a line each (UDP, no broker).
    Pop(pop::PopArgs),
    /// Publish to and listen to elastic queues.
    Elastic(elastic_pipe::ElasticArgs),
    /// Run one relay of an elastic queue.
    Relay(Box<relay::RelayArgs>),
    /// Wait for a directory's word, then become a relay. Only directories use it.
    #[command(hide = true)]
    Hold(HoldArgs),
}

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
struct HoldArgs {
    /// The relay's command line.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

#[derive(Debug, Args)]
struct ShowArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// Print the reference of all keys in Markdown.
    #[arg(long, conflicts_with = "show")]
    markdown: bool,
    /// Print what is in force, as TOML (the default).
    #[arg(long)]
    show: bool,
}

impl Cli {
    /// Runs what was asked for.
    pub(crate) fn run(self) -> ExitCode {
        match self.command {
            Command::Serve(args) => args.config().map_or_else(refuse, |config| serve::run(&config)),
            Command::Config(args) if args.markdown => {
                print!("{}", reference::markdown());
                ExitCode::SUCCESS
            }
            Command::Config(args) => args.config.config().map_or_else(refuse, |config| {
                print!("{}", reference::show(&config));
                ExitCode::SUCCESS
            }),
            Command::Admin(args) => admin::run(args),
            Command::Push(args) => push::run(&args),
            Command::Pop(args) => pop::run(&args),
            Command::Elastic(args) => elastic_pipe::run(&args),
            Command::Relay(args) => relay::run(&args),
            Command::Hold(args) => hold::run(&args.arguments),
            Command::Bench(args) => bench::run(&args),
        }
    }
}

impl ConfigArgs {
    /// All sources, in their order.
    fn config(&self) -> Result<Config, ConfigError> {
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

fn refuse(error: ConfigError) -> ExitCode {
    exit::refuse("quelea", error)
}
