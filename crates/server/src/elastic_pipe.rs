//! `quelea elastic publish` and `listen`: an elastic queue as a shell sees it. A message is a line, or a
//! record, whose first word is its topic.

mod listen;
mod publish;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, Subcommand};
use quelea_elastic_client::{Client, Error, Options};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;

use crate::config::byte_size;
use crate::exit::{fail, refuse};
use crate::key_file::{self, KeyFileError};
use crate::pipe::{self, Framing};
use crate::signals::on_signal;

/// `quelea elastic`.
#[derive(Debug, Args)]
pub(crate) struct ElasticArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Publish each line of standard input; its first word is the topic.
    Publish(publish::PublishArgs),
    /// Print what comes, a line each: the topic, a space, the body.
    Listen(listen::ListenArgs),
}

/// How to get to a queue, and how messages stand in the pipe.
#[derive(Debug, Args)]
struct ConnectionArgs {
    /// The directories, any of which will do, as in 127.0.0.1:5670,127.0.0.1:5671.
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',', default_value = "127.0.0.1:5670")]
    directory: Vec<String>,
    /// File with the key of the site, if it has one: 32 bytes or 64 hexadecimal digits.
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// How long the queue may take to open, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = pipe::seconds)]
    open_timeout: std::time::Duration,
    /// Messages with their length before them (32 bits, big-endian) instead of lines.
    #[arg(long)]
    records: bool,
    /// Report on standard error at the end what was counted.
    #[arg(long)]
    stats: bool,
}

/// What either may fail of.
#[derive(Debug, thiserror::Error)]
enum ConnectFailure {
    #[error(transparent)]
    Key(#[from] KeyFileError),
    #[error(transparent)]
    Client(#[from] Error),
    #[error("cannot start: {0}")]
    Start(std::io::Error),
}

impl ConnectFailure {
    /// Returns whether the command has to be mended.
    const fn is_usage_error(&self) -> bool {
        matches!(self, Self::Key(_) | Self::Client(Error::Invalid { .. } | Error::NoDirectory))
    }
}

impl ConnectionArgs {
    fn client(&self, name: &str, acknowledge_by_hand: bool) -> Result<Client, ConnectFailure> {
        let key = self.key_file.as_deref().map(key_file::read).transpose()?;
        let options = Options {
            name: name.to_owned(),
            key: key.map(Vec::from).unwrap_or_default().into(),
            open_timeout: self.open_timeout,
            acknowledge_by_hand,
            ..Options::default()
        };
        Ok(Client::connect(self.directory.iter().cloned(), options)?)
    }

    const fn framing(&self) -> Framing {
        if self.records { Framing::Records } else { Framing::Lines }
    }
}

/// Runs one of the two.
pub(crate) fn run(args: &ElasticArgs) -> ExitCode {
    match &args.command {
        Command::Publish(args) => publish::run(args),
        Command::Listen(args) => listen::run(args),
    }
}

/// Starts a runtime of one thread; returns it, and what notifies of the first signal.
fn start() -> Result<(Runtime, Arc<Notify>), ConnectFailure> {
    let runtime =
        Builder::new_current_thread().enable_all().build().map_err(ConnectFailure::Start)?;
    let signalled = Arc::new(Notify::new());
    let notified = Arc::clone(&signalled);
    on_signal(move || notified.notify_one()).map_err(ConnectFailure::Start)?;
    Ok((runtime, signalled))
}

/// Returns exit code 0, or prints the error and returns its exit code: 2 if the command has to be
/// mended, else 1.
fn exit<E: std::fmt::Display>(
    command: &str,
    outcome: Result<(), E>,
    is_usage_error: impl Fn(&E) -> bool,
) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_usage_error(&error) => refuse(command, error),
        Err(error) => fail(command, error),
    }
}

fn message_bytes_max(text: &str) -> Result<usize, String> {
    byte_size::parse_within(text, 1..=quelea_elastic_proto::limits::MESSAGE_BYTES_MAX)
}
