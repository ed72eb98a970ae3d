//! The command line of `quelea bench amqp-suite`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use quelea_model::Value;

use crate::byte_size::parse_bytes;
use crate::queue_argument::parse_argument;

/// `quelea bench amqp-suite`.
#[derive(Debug, Clone, Args)]
pub struct AmqpSuiteArgs {
    /// The broker
    #[arg(long, default_value = "amqp://guest:guest@127.0.0.1:5672/%2f", value_name = "URI")]
    pub target: String,
    /// Wait so long for a broker that is still starting
    #[arg(long, default_value_t = 0.0, value_name = "SECONDS")]
    pub connect_timeout_s: f64,
    /// The broker's process, if it is not found by its port (only a local one is looked at)
    #[arg(long, value_name = "PID")]
    pub broker_pid: Option<u32>,
    /// Only these experiments; all without it
    #[arg(long, value_delimiter = ',', value_enum)]
    pub experiments: Vec<Experiment>,
    /// Message sizes (default: 1, 4, 16, … 1 MiB)
    #[arg(long, value_delimiter = ',', value_parser = parse_bytes, value_name = "BYTES")]
    pub sizes: Vec<usize>,
    /// de-mpmc: publisher-consumer pairs
    #[arg(long, value_delimiter = ',', default_value = "1,2,4,8", value_name = "COUNT")]
    pub pairs: Vec<u32>,
    /// fe-spmc: consumers that each get every message
    #[arg(long, value_delimiter = ',', default_value = "1,2,4,8,16,32", value_name = "COUNT")]
    pub fanouts: Vec<u32>,
    /// te-spsc: binding keys, of which one matches
    #[arg(long, value_delimiter = ',', default_value = "1,64,256,1024", value_name = "COUNT")]
    pub patterns: Vec<u32>,
    /// te-spsc: the paper's one routing key, or keys that never repeat, or both
    #[arg(long, value_delimiter = ',', value_enum, default_values_t = [Keys::One, Keys::Unique])]
    pub keys: Vec<Keys>,
    /// How long a round is meant to take: its messages are counted by the rate of a short one before
    #[arg(long, default_value_t = 2.0, value_name = "SECONDS")]
    pub round_s: f64,
    /// Messages that each publisher sends in a round, instead
    #[arg(long, value_name = "COUNT", conflicts_with = "round_s")]
    pub messages: Option<u64>,
    /// Three sizes (1 B, 1 KiB, 64 KiB) and rounds of half a second
    #[arg(long, conflicts_with_all = ["sizes", "round_s", "messages"])]
    pub quick: bool,
    /// How messages are delivered.
    #[command(flatten)]
    pub delivery: DeliveryArgs,
    /// The link to the broker; all but `loopback` need root, and a broker on this machine that listens on all addresses
    #[arg(long, value_enum, default_value_t = Network::Loopback, conflicts_with = "listen")]
    pub network: Network,
    /// What this process does
    #[arg(long, value_enum, default_value_t = Role::Coordinator)]
    pub role: Role,
    /// Of a role other than the coordinator: where that listens; without it, it is asked over standard input
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "listen")]
    pub coordinator: Option<String>,
    /// Wait here for a publisher and a consumer that were started elsewhere, instead of starting them
    #[arg(long, value_name = "HOST:PORT")]
    pub listen: Option<String>,
    /// A run in which no message moves for so long has failed
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    pub stall_s: u64,
    /// A case whose queues and bindings the broker does not declare in so long is left out, and named at the end
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    pub declare_timeout_s: u64,
    /// Threads of the publisher's process, and of the consumer's
    #[arg(long, default_value_t = 1, value_name = "COUNT")]
    pub threads: usize,
    /// Write the report as JSON too (- is standard output, and then it is the only one)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// No line for each round
    #[arg(long)]
    pub quiet: bool,
}

/// How messages are delivered. Without any of these: transient, without confirms, acknowledged by the hundred or each
/// 4 MiB.
#[derive(Debug, Clone, Args)]
pub struct DeliveryArgs {
    /// Durable queues, and delivery mode 2
    #[arg(long)]
    pub persistent: bool,
    /// Publisher confirms: at most so many messages unconfirmed per publisher; 0 is no confirms
    #[arg(long, default_value_t = 0, value_name = "WINDOW")]
    pub confirm: u64,
    /// Unacknowledged deliveries per consumer; 0 is no limit
    #[arg(long, default_value_t = 0, value_name = "COUNT")]
    pub prefetch: u16,
    /// Consume without acknowledgements
    #[arg(long)]
    pub auto_ack: bool,
    /// Queue arguments, such as x-queue-type=quorum or x-durability=os; several with commas
    #[arg(long, value_name = "NAME=VALUE", value_delimiter = ',', value_parser = parse_argument)]
    pub queue_args: Vec<(String, Value)>,
    /// Declare queues without x-expires, which some brokers refuse: then they stay if the suite is killed
    #[arg(long)]
    pub no_expires: bool,
}

/// The benchmarks of `papers/amqp-benchmarks.txt`, section 3, and the transport's own rate of section 4.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Experiment {
    /// Raw sockets from publisher to consumer through a relay: what the transport gives
    Baseline,
    /// Direct exchange, single publisher, single consumer
    DeSpsc,
    /// Direct exchange, multiple publisher-consumer pairs
    DeMpmc,
    /// Direct exchange, ping-pong
    DePp,
    /// Fanout exchange, single publisher, multiple consumers
    FeSpmc,
    /// Topic exchange, single publisher, single matching consumer
    TeSpsc,
}

/// Routing keys of te-spsc.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Keys {
    /// The same on every message, as the paper has it
    One,
    /// Another on every message: no cache of routes answers
    Unique,
}

/// The link between the broker's host and those of publisher and consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Network {
    /// None: all on one host
    Loopback,
    /// Network namespaces of their own, 1 Gbit/s
    #[value(name = "1gbit")]
    #[serde(rename = "1gbit")]
    Gigabit,
    /// Network namespaces of their own, 10 Gbit/s
    #[value(name = "10gbit")]
    #[serde(rename = "10gbit")]
    TenGigabit,
}

/// Processes of a run, beside the broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Declares, starts the others, measures the broker, prints the report
    Coordinator,
    /// All publishers
    Publisher,
    /// All consumers
    Consumer,
    /// The baseline's relay, on the broker's host
    Relay,
}

impl Network {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Loopback => "loopback",
            Self::Gigabit => "1gbit",
            Self::TenGigabit => "10gbit",
        }
    }
}

impl Role {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Coordinator => "coordinator",
            Self::Publisher => "publisher",
            Self::Consumer => "consumer",
            Self::Relay => "relay",
        }
    }
}

impl Experiment {
    /// All of them, in the order of the report.
    pub(crate) const ALL: [Self; 6] =
        [Self::Baseline, Self::DeSpsc, Self::DeMpmc, Self::DePp, Self::FeSpmc, Self::TeSpsc];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::DeSpsc => "DE-SPSC",
            Self::DeMpmc => "DE-MPMC",
            Self::DePp => "DE-PP",
            Self::FeSpmc => "FE-SPMC",
            Self::TeSpsc => "TE-SPSC",
        }
    }
}
