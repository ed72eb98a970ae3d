//! `quelea relay`: one relay of an elastic queue, started by a provider or a person.

mod zmtp;

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use quelea_elastic_core::relay::{default_settings, limits};
use quelea_elastic_proto::frame::{Acknowledge, RelaySettings, SlowPolicy};
use quelea_elastic_proto::{Named, RelayId};
use quelea_elastic_relay::{Config, Directory, RunError, SpillConfig, Stopped, Stopper};
use quelea_model::byte_size;

use crate::exit::{fail, refuse};
use crate::key_file::{self, KeyFileError};
use crate::logging::{self, LevelError};
use crate::pipe;
use crate::serve::elastic::exposure::is_exposed;
use crate::signals::{self, Signals};

/// Exit codes: 0, it was drained, or nobody needed it; 1, it could not start or was cut off; 2, the command is wrong.
#[derive(Debug, Args)]
pub(crate) struct RelayArgs {
    /// The elastic queue that it serves.
    #[arg(long, value_name = "NAME")]
    queue: String,
    /// Serve without a directory: clients have to be configured with the address.
    #[arg(long, conflicts_with_all = ["directory", "relay_id", "request"])]
    standalone: bool,
    /// The directories, any of which will do, as in 127.0.0.1:5670,127.0.0.1:5671.
    #[arg(
        long,
        value_name = "HOST:PORT",
        value_delimiter = ',',
        required_unless_present = "standalone"
    )]
    directory: Vec<String>,
    /// The number that the directory gave it.
    #[arg(long, value_name = "N", required_unless_present = "standalone")]
    relay_id: Option<u64>,
    /// The provider's request that started it.
    #[arg(long, value_name = "TEXT", required_unless_present = "standalone")]
    request: Option<String>,
    /// Where clients connect; port 0 takes a free one.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:0")]
    listen: String,
    /// The address that clients connect to, if it is not where it listens.
    #[arg(long, value_name = "HOST:PORT")]
    advertise: Option<String>,
    /// File with the secret that clients must show, and that is shown to the directory, 32 bytes or 64
    /// hexadecimal digits.
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// With --standalone: it may be reached from other machines without a key, and by ZeroMQ's sockets without plain or
    /// curve; everybody who reaches it may publish and listen then. Else that is refused.
    #[arg(long)]
    open_beyond_loopback: bool,
    /// Most connections.
    #[arg(long, value_name = "N", default_value_t = limits::CONNECTIONS_DEFAULT)]
    connections_max: usize,
    /// When a message is done (a directory overrides this, and the next two).
    #[arg(long, default_value = "relayed", value_parser = named(|level: Acknowledge| level != Acknowledge::Stored))]
    acknowledge: Acknowledge,
    /// What happens to a listener whose ring is full.
    #[arg(long, default_value = "drop-newest", value_parser = named(|_: SlowPolicy| true))]
    slow: SlowPolicy,
    /// A listener's ring.
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = ring_bytes)]
    ring_bytes: u64,
    /// Directory for what listeners are too slow for, at the policy spill; the system's directory for
    /// temporary files if it is not given. The files have no names in it.
    #[arg(long, value_name = "DIR")]
    spill_dir: Option<PathBuf>,
    /// How much that may be for each listener; 0 switches the policy off.
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = spill_bytes)]
    spill_bytes: u64,
    /// Memory that it may use; the limit of its control group if it is not given, else all that the machine has.
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = spill_bytes)]
    memory_max: u64,
    /// What its host's network carries a second in each direction; 0: not known.
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = spill_bytes)]
    network_bytes_max: u64,
    /// How long a stop by SIGTERM waits for producers to move away and rings to empty, in seconds. A
    /// second signal ends it at once.
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = pipe::seconds)]
    drain_timeout: Duration,
    /// Without a directory and without a client for so long, it ends.
    #[arg(long, value_name = "MS", default_value_t = 60_000)]
    orphan_timeout_ms: u64,
    #[command(flatten)]
    zmtp: zmtp::ZmtpArgs,
    /// Log level, as in info or quelea_elastic_relay=debug.
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    log: String,
}

/// Reads a name as the command line writes it, with hyphens.
fn named<T: Named + Send + Sync>(allowed: fn(T) -> bool) -> impl TypedValueParser<Value = T> {
    let values = T::NAMES.iter().filter(|(_, value)| allowed(*value));
    let names: Vec<String> = values.map(|(name, _)| name.replace('_', "-")).collect();
    PossibleValuesParser::new(names).try_map(|name| T::parse(&name.replace('-', "_")))
}

/// Why a relay does not run.
#[derive(Debug, thiserror::Error)]
enum RelayFailure {
    #[error("--log {0}")]
    Level(#[from] LevelError),
    #[error(transparent)]
    KeyFile(#[from] KeyFileError),
    #[error(
        "{option} {address:?} is reached from other machines, and nothing is asked for there: give {instead}, or \
         --open-beyond-loopback if everybody who reaches it may publish and listen"
    )]
    Open { option: &'static str, address: String, instead: &'static str },
    #[error("cannot wait for signals: {0}")]
    Signals(io::Error),
    #[error(transparent)]
    Run(#[from] RunError),
}

/// Runs a relay until it is stopped.
pub(crate) fn run(args: &RelayArgs) -> ExitCode {
    match relay(args) {
        Ok(Stopped::Drained | Stopped::Orphaned) => ExitCode::SUCCESS,
        Ok(Stopped::Cut) => ExitCode::FAILURE,
        Err(
            error @ (RelayFailure::Level(_)
            | RelayFailure::KeyFile(_)
            | RelayFailure::Open { .. }
            | RelayFailure::Run(RunError::Config(_))),
        ) => refuse("quelea relay", error),
        Err(error) => fail("quelea relay", error),
    }
}

fn relay(args: &RelayArgs) -> Result<Stopped, RelayFailure> {
    logging::to_stderr(&args.log)?;
    let config = args.config()?;
    quelea_node::raise_file_limit();
    let (stopper, stop) = Stopper::new();
    // Drains at the first signal, ends at the second.
    let watch = async move |mut signals: Signals| {
        loop {
            signals.next().await;
            stopper.stop();
        }
    };
    signals::watch(watch).map_err(RelayFailure::Signals)?;
    let stopped = quelea_elastic_relay::run(&config, stop, |addresses| {
        let mut out = io::stdout().lock();
        // Whoever started it may wait for this line; if nobody reads it, nobody needs it.
        let line = format!("relay of {:?} ready at {}", config.queue, addresses.native);
        let _ = writeln!(out, "{line}{}", zmtp::ready(&addresses.zmtp));
        let _ = out.flush();
    })?;
    // The last line of its log is what its provider says of its end.
    let why = match stopped {
        Stopped::Drained => "it is drained",
        Stopped::Cut => "its time was over, or it was to end at once",
        Stopped::Orphaned => "no directory knows it, and nobody uses it",
    };
    eprintln!("relay of {:?} ends: {why}", config.queue);
    Ok(stopped)
}

impl RelayArgs {
    /// Checks that a relay that stands alone is, without a key, for this machine only, as a
    /// directory's are. (Where those listen the directory's settings say, which are checked there.)
    fn check_exposure(&self) -> Result<(), RelayFailure> {
        if !self.standalone || self.open_beyond_loopback {
            return Ok(());
        }
        let by_key = self.key_file.is_none().then_some(("--listen", self.listen.as_str()));
        let by_key = by_key.into_iter().map(|open| (open, "--key-file"));
        let by_mechanism = self.zmtp.open_addresses().map(|open| (open, "--zmtp-security"));
        let mut open = by_key.chain(by_mechanism);
        match open.find(|((_, address), _)| is_exposed(address)) {
            Some(((option, address), instead)) => {
                Err(RelayFailure::Open { option, address: address.to_owned(), instead })
            }
            None => Ok(()),
        }
    }

    fn config(&self) -> Result<Config, RelayFailure> {
        self.check_exposure()?;
        let directory = self.relay_id.map(|relay| Directory {
            addresses: self.directory.clone(),
            relay: RelayId(relay),
            request: proven(self.request.clone().unwrap_or_default()),
            orphan_timeout: Duration::from_millis(self.orphan_timeout_ms),
        });
        // As the directory reads it, which starts relays with its own file.
        let key = self.key_file.as_deref().map(key_file::read).transpose()?;
        Ok(Config {
            listen: self.listen.clone(),
            advertise: self.advertise.clone(),
            key: key.map(Vec::from).unwrap_or_default().into(),
            connections_max: self.connections_max,
            settings: RelaySettings {
                acknowledge: self.acknowledge,
                slow: self.slow,
                ring_bytes_max: self.ring_bytes,
                ..default_settings()
            },
            directory,
            zmtp: self.zmtp.config()?,
            spill: self.spill(),
            memory_bytes_max: self.memory_max,
            network_bytes_per_s_max: self.network_bytes_max,
            drain: self.drain_timeout,
            ..Config::standalone(&self.queue)
        })
    }

    fn spill(&self) -> Option<SpillConfig> {
        let directory = self.spill_dir.clone().unwrap_or_else(std::env::temp_dir);
        let bytes_max = self.spill_bytes;
        (bytes_max > 0).then_some(SpillConfig { directory, bytes_max })
    }
}

/// Returns the request as REGISTER has it: with the token that proves it, if the provider has handed
/// one over.
fn proven(request: String) -> String {
    match std::env::var(quelea_elastic_directory::TOKEN_VARIABLE) {
        Ok(token) => format!("{request}#{token}"),
        Err(_) => request,
    }
}

fn spill_bytes(text: &str) -> Result<u64, String> {
    byte_size::parse(text).map_err(|_| "not a size such as 65536 or 1GiB".to_owned())
}

fn ring_bytes(text: &str) -> Result<u64, String> {
    let least = limits::RING_BYTES_MIN;
    match byte_size::parse(text) {
        Ok(bytes) if bytes >= least => Ok(bytes),
        Ok(_) => Err(format!("less than {}", byte_size::format(least))),
        Err(_) => Err("not a size such as 65536 or 64MiB".to_owned()),
    }
}
