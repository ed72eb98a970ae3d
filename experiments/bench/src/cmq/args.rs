//! The command lines of `quelea bench cmq…`.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::byte_size::parse_bytes;

/// `quelea bench cmq`: the paper's ping-ping (one-way) and ping-pong.
#[derive(Debug, Clone, Args)]
pub struct CmqArgs {
    /// Be one end only, with orders as lines on standard input (docs/benchmarks/bench.md)
    #[arg(long, value_enum)]
    pub role: Option<CmqRole>,
    /// Where the receiver binds; with --role send, where to send
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDRESS:PORT")]
    pub address: SocketAddr,
    /// With --role receive: the multicast group to join
    #[arg(long, value_name = "ADDRESS")]
    pub join: Option<IpAddr>,
    /// What is pushed, and how.
    #[command(flatten)]
    pub wire: WireArgs,
    /// What to measure
    #[arg(long, value_enum, value_delimiter = ',', default_value = "one-way,ping-pong")]
    pub kinds: Vec<Kind>,
    /// Bytes of a message
    #[arg(
        long, value_delimiter = ',', value_parser = parse_bytes, value_name = "BYTES",
        default_value = "4,64,512,1KiB,4KiB,16KiB"
    )]
    pub sizes: Vec<usize>,
    /// Messages of the paper's measure
    #[arg(long, default_value_t = 1_000, value_name = "COUNT")]
    pub messages: u64,
    /// Runs of it
    #[arg(long, default_value_t = 30, value_name = "COUNT")]
    pub samples: u32,
    /// Seconds of a sustained run; 0 is none
    #[arg(long, short = 'z', default_value_t = 0.5, value_name = "SECONDS")]
    pub duration_s: f64,
    /// Sustained runs
    #[arg(long, default_value_t = 5, value_name = "COUNT")]
    pub repeat: u32,
    /// Both ends as threads of this process, not as processes of their own
    #[arg(long)]
    pub threads: bool,
    /// Write the report as JSON too (- is standard output, and then it is the only one)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// What kind of traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// All messages one after the other, nothing comes back (the paper's ping-ping)
    OneWay,
    /// Each message is answered before the next
    PingPong,
}

/// How messages travel; the same at both ends.
#[derive(Debug, Clone, Args)]
pub struct WireArgs {
    /// What is done about losses
    #[arg(long, value_enum, default_value_t = CmqMode::Lossy)]
    pub mode: CmqMode,
    /// Do not wait for the receiver's credit (lossy modes only)
    #[arg(long)]
    pub no_credit: bool,
    /// The paper's datagrams, 512 bytes and 200 ms
    #[arg(long)]
    pub classic: bool,
    /// Encrypted, with a key that everybody knows
    #[arg(long, conflicts_with = "classic")]
    pub sealed: bool,
    /// Bytes of a batch (qthresh)
    #[arg(long, value_parser = parse_bytes, value_name = "BYTES")]
    pub qthresh: Option<usize>,
    /// The longest that a message waits in a batch
    #[arg(long, value_name = "MICROSECONDS")]
    pub timeout_us: Option<u64>,
    /// Bytes of one datagram at most
    #[arg(long, value_parser = parse_bytes, value_name = "BYTES")]
    pub segment: Option<usize>,
    /// Messages of one call of the library: 1 is push and pop one by one
    #[arg(long, default_value_t = 256, value_name = "COUNT")]
    pub batch: usize,
}

/// Which end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CmqRole {
    /// Pushes; pings
    Send,
    /// Pops; answers pings
    Receive,
}

/// A destination's mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CmqMode {
    /// As UDP, losses counted
    Lossy,
    /// Lossy, and only what is newer than what was delivered
    LatestOnly,
    /// Each message once
    ReliableUnordered,
    /// Each message once, in order
    ReliableOrdered,
}

/// `quelea bench cmq-push`.
#[derive(Debug, Clone, Args)]
pub struct CmqPushArgs {
    /// Numbers of destinations
    #[arg(long, value_delimiter = ',', default_value = "1,100,10000,100000", value_name = "COUNT")]
    pub destinations: Vec<usize>,
    /// Bytes of a message
    #[arg(long, default_value = "64", value_parser = parse_bytes, value_name = "BYTES")]
    pub size: usize,
    /// Rounds that are measured
    #[arg(long, default_value_t = 20, value_name = "COUNT")]
    pub rounds: u32,
    /// Write the report as JSON too (- is standard output, and then it is the only one)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// `quelea bench cmq-memory`.
#[derive(Debug, Clone, Args)]
pub struct CmqMemoryArgs {
    /// Queues, each with a socket of its own
    #[arg(long, default_value_t = 32, value_name = "COUNT")]
    pub queues: u32,
    /// Destinations
    #[arg(long, default_value_t = 100_000, value_name = "COUNT")]
    pub destinations: u32,
    /// Write the report as JSON too (- is standard output, and then it is the only one)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// `quelea bench cmq-soak`.
#[derive(Debug, Clone, Args)]
pub struct CmqSoakArgs {
    /// How long
    #[arg(long, short = 'z', default_value_t = 600.0, value_name = "SECONDS")]
    pub duration_s: f64,
    /// Messages a second of each flow
    #[arg(long, default_value_t = 20_000, value_name = "PER_SECOND")]
    pub rate: u64,
    /// Draw the memory of the run into this file, as SVG (the paper's figure 7)
    #[arg(long, value_name = "FILE")]
    pub figure: Option<PathBuf>,
    /// No line every ten seconds
    #[arg(long)]
    pub quiet: bool,
    /// Write the report as JSON too (- is standard output, and then it is the only one)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}
