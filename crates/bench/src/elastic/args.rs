//! The command lines of `quelea bench elastic …`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::args::parse_bytes;

/// `quelea bench elastic`.
#[derive(Debug, Clone, Args)]
pub struct ElasticArgs {
    /// What to measure.
    #[command(subcommand)]
    pub command: ElasticCommand,
}

/// The measurements of elastic queues.
#[derive(Debug, Clone, Subcommand)]
pub enum ElasticCommand {
    /// One relay (or libzmq's proxy, or NATS) that gives each message to every listener
    Fanout(FanoutArgs),
}

/// `quelea bench elastic fanout`.
#[derive(Debug, Clone, Args)]
pub struct FanoutArgs {
    /// What the server speaks
    #[arg(long, value_enum, default_value_t = WireKind::Native)]
    pub wire: WireKind,
    /// Where producers connect
    #[arg(long, value_name = "HOST:PORT")]
    pub producers_at: String,
    /// Where listeners connect, if elsewhere
    #[arg(long, value_name = "HOST:PORT")]
    pub listeners_at: Option<String>,
    /// The queue (native)
    #[arg(long, default_value = "bench", value_name = "NAME")]
    pub queue: String,
    /// Producers, a connection each
    #[arg(long, short = 'x', default_value_t = 16, value_name = "COUNT")]
    pub producers: u32,
    /// Listeners, a connection each; each takes everything
    #[arg(long, short = 'y', default_value_t = 20, value_name = "COUNT")]
    pub listeners: u32,
    /// More listeners, that connect and never read
    #[arg(long, default_value_t = 0, value_name = "COUNT")]
    pub stalled: u32,
    /// Bytes of a message's body
    #[arg(long, default_value = "5000", value_parser = parse_bytes, value_name = "BYTES")]
    pub size: usize,
    /// Messages a second of all producers; without it, as many as are taken
    #[arg(long, value_name = "PER_SECOND")]
    pub rate: Option<f64>,
    /// Messages of a producer that not every listener has yet: beyond it the producer waits (0: no such limit).
    /// For servers that do not hold back their producers
    #[arg(long, default_value_t = 0, value_name = "COUNT")]
    pub window: u64,
    /// Threads that carry the listeners
    #[arg(long, default_value_t = 1, value_name = "COUNT")]
    pub listener_threads: usize,
    /// Seconds that are measured
    #[arg(long, short = 'z', default_value_t = 5.0, value_name = "SECONDS")]
    pub duration_s: f64,
    /// Seconds before that
    #[arg(long, default_value_t = 1.0, value_name = "SECONDS")]
    pub warmup_s: f64,
    /// At the end, wait so long for what is on its way after the last message came
    #[arg(long, default_value_t = 3.0, value_name = "SECONDS")]
    pub patience_s: f64,
    /// The server's process, if it is not found by its port
    #[arg(long, value_name = "PID")]
    pub server_pid: Option<u32>,
    /// Write the report as JSON too (- is standard output, and then it is the only one)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// A protocol of the raw clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WireKind {
    /// Quelea's own (docs/elastic-protocol.md), to a relay
    Native,
    /// ZMTP 3.0: PUB and SUB
    Zmtp,
    /// NATS
    Nats,
}

impl WireKind {
    /// As on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Zmtp => "zmtp",
            Self::Nats => "nats",
        }
    }
}
