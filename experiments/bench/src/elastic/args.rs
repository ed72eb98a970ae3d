//! The command lines of `quelea bench elastic …`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::byte_size::parse_bytes;

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
    /// The EQS paper's workload: producers join one after the other, the queue grows; its figures 5 to 8
    Paper(PaperQueueArgs),
    /// Moves of producers under load: what they lose, and how long a producer pauses
    Moves(MovesArgs),
    /// How soon load is moved away when it exceeds a limit
    Reaction(ReactionArgs),
    /// Relays killed under load: how soon messages flow again, and what is missing
    Failover(FailoverArgs),
    /// The directory ended under load and started again: how long clients pause after kill -9 and after Ctrl-C
    Restart(RestartArgs),
    /// What a listener that takes nothing does to the others
    Stalled(StalledArgs),
}

/// Where elastic queues are measured, and where the report goes.
#[derive(Debug, Clone, Args)]
pub struct SiteArgs {
    /// A directory that runs already; without it, one is started for the run
    #[arg(long, value_name = "HOST:PORT")]
    pub directory: Option<String>,
    /// The HTTP interface of that directory
    #[arg(long, default_value = "127.0.0.1:15672", value_name = "HOST:PORT")]
    pub http: String,
    /// Its user
    #[arg(long, default_value = "guest:guest", value_name = "NAME:PASSWORD")]
    pub user: String,
    /// The program that is started as directory, if not the `quelea` beside this one
    #[arg(long, value_name = "FILE")]
    pub quelea: Option<PathBuf>,
    /// Write the report as JSON too (- is standard output, and then it is the only one)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// No progress on standard error
    #[arg(long)]
    pub quiet: bool,
}

/// Who sends how much to whom.
#[derive(Debug, Clone, Args)]
pub struct FleetArgs {
    /// Producers
    #[arg(long, short = 'x', default_value_t = 16, value_name = "COUNT")]
    pub producers: u32,
    /// Listeners; each takes everything
    #[arg(long, short = 'y', default_value_t = 20, value_name = "COUNT")]
    pub listeners: u32,
    /// Messages a second of all producers; the default is the paper's 16 x 3,400 a minute
    #[arg(long, default_value_t = 907.0, value_name = "PER_SECOND")]
    pub rate: f64,
    /// Bytes of a message's body
    #[arg(long, default_value = "5000", value_parser = parse_bytes, value_name = "BYTES")]
    pub size: usize,
}

/// `quelea bench elastic paper`.
#[derive(Debug, Clone, Args)]
pub struct PaperQueueArgs {
    /// Where.
    #[command(flatten)]
    pub site: SiteArgs,
    /// The rules that scale the queue
    #[arg(long, value_enum, default_value_t = RulesKind::Steady)]
    pub policy: RulesKind,
    /// Divides the joins' spacing and the sending time; rates stay. Policy `paper` looks once a minute all
    /// the same
    #[arg(long, default_value_t = 1.0, value_name = "FACTOR")]
    pub speed: f64,
    /// Producers
    #[arg(long, short = 'x', default_value_t = 16, value_name = "COUNT")]
    pub producers: u32,
    /// Listeners; each takes everything
    #[arg(long, short = 'y', default_value_t = 20, value_name = "COUNT")]
    pub listeners: u32,
    /// Seconds between two joins
    #[arg(long, default_value_t = 60.0, value_name = "SECONDS")]
    pub join_s: f64,
    /// Minutes that each producer sends
    #[arg(long, default_value_t = 45.0, value_name = "MINUTES")]
    pub send_min: f64,
    /// Messages a minute of each producer
    #[arg(long, default_value_t = 3_400.0, value_name = "COUNT")]
    pub per_min: f64,
    /// Bytes of a message's body
    #[arg(long, default_value = "5000", value_parser = parse_bytes, value_name = "BYTES")]
    pub size: usize,
    /// The most relays
    #[arg(long, default_value_t = 4, value_name = "COUNT")]
    pub relays_max: u32,
    /// The rule's limit: bytes of messages into one relay. The paper says outgoing, which a single producer
    /// would exceed three times
    #[arg(long, default_value_t = 15.0, value_name = "MBIT_PER_SECOND")]
    pub limit_mbit: f64,
    /// Write figure5.svg to figure8.svg there
    #[arg(long, value_name = "DIR")]
    pub figures: Option<PathBuf>,
}

/// Policies of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RulesKind {
    /// Quelea's default
    Steady,
    /// The paper's algorithm as printed
    Paper,
}

impl RulesKind {
    /// Returns its name in a queue's definition.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Steady => "steady",
            Self::Paper => "paper",
        }
    }
}

/// `quelea bench elastic moves`.
#[derive(Debug, Clone, Args)]
pub struct MovesArgs {
    /// Where.
    #[command(flatten)]
    pub site: SiteArgs,
    /// The load.
    #[command(flatten)]
    pub fleet: FleetArgs,
    /// Moves, one after the other
    #[arg(long, default_value_t = 1_000, value_name = "COUNT")]
    pub moves: u32,
    /// Relays among which producers are moved
    #[arg(long, default_value_t = 4, value_name = "COUNT")]
    pub relays: u32,
}

/// `quelea bench elastic reaction`.
#[derive(Debug, Clone, Args)]
pub struct ReactionArgs {
    /// Where.
    #[command(flatten)]
    pub site: SiteArgs,
    /// The load; its rate is that of the overload.
    #[command(flatten)]
    pub fleet: FleetArgs,
    /// How often, each time with a new queue
    #[arg(long, default_value_t = 5, value_name = "COUNT")]
    pub rounds: u32,
    /// The overload, in parts of what one relay may carry
    #[arg(long, default_value_t = 1.5, value_name = "FACTOR")]
    pub overload: f64,
    /// Seconds at a third of the overload before it
    #[arg(long, default_value_t = 5.0, value_name = "SECONDS")]
    pub settle_s: f64,
}

/// `quelea bench elastic failover`.
#[derive(Debug, Clone, Args)]
pub struct FailoverArgs {
    /// Where.
    #[command(flatten)]
    pub site: SiteArgs,
    /// The load.
    #[command(flatten)]
    pub fleet: FleetArgs,
    /// How often a relay is killed
    #[arg(long, default_value_t = 10, value_name = "COUNT")]
    pub rounds: u32,
    /// Relays of the queue
    #[arg(long, default_value_t = 2, value_name = "COUNT")]
    pub relays: u32,
    /// When messages are acknowledged
    #[arg(long, value_enum, default_value_t = AcknowledgeKind::Relayed)]
    pub acknowledge: AcknowledgeKind,
}

/// `quelea bench elastic restart`.
#[derive(Debug, Clone, Args)]
pub struct RestartArgs {
    /// Where; the directory has to be one that is started for the run.
    #[command(flatten)]
    pub site: SiteArgs,
    /// The load.
    #[command(flatten)]
    pub fleet: FleetArgs,
    /// How often it is ended in each way
    #[arg(long, default_value_t = 5, value_name = "COUNT")]
    pub rounds: u32,
    /// Relays of the queue
    #[arg(long, default_value_t = 2, value_name = "COUNT")]
    pub relays: u32,
    /// When messages are acknowledged
    #[arg(long, value_enum, default_value_t = AcknowledgeKind::Relayed)]
    pub acknowledge: AcknowledgeKind,
}

/// Levels of acknowledgement that need no durable queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AcknowledgeKind {
    /// Written to the listeners
    Relayed,
    /// Taken by the listeners
    Delivered,
}

impl AcknowledgeKind {
    /// Returns its name in a queue's definition.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Relayed => "relayed",
            Self::Delivered => "delivered",
        }
    }
}

/// `quelea bench elastic stalled`.
#[derive(Debug, Clone, Args)]
pub struct StalledArgs {
    /// Where.
    #[command(flatten)]
    pub site: SiteArgs,
    /// The load.
    #[command(flatten)]
    pub fleet: FleetArgs,
    /// Listeners that take nothing
    #[arg(long, default_value_t = 1, value_name = "COUNT")]
    pub stalled: u32,
    /// Seconds that are measured, without and with them
    #[arg(long, short = 'z', default_value_t = 10.0, value_name = "SECONDS")]
    pub duration_s: f64,
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
    /// Quelea's own (docs/formats/elastic.md), to a relay
    Native,
    /// ZMTP 3.0: PUB and SUB
    Zmtp,
    /// NATS
    Nats,
}

impl WireKind {
    /// Returns its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Zmtp => "zmtp",
            Self::Nats => "nats",
        }
    }
}
