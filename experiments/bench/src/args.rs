//! The command line of `quelea bench`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use quelea_model::Value;

use crate::amqp_suite::args::AmqpSuiteArgs;
use crate::bdqs::args::BdqsArgs;
use crate::byte_size::parse_bytes;
use crate::cmq::args::{CmqArgs, CmqMemoryArgs, CmqPushArgs, CmqSoakArgs};
use crate::elastic::args::ElasticArgs;
use crate::papers::PapersArgs;
use crate::queue_argument::parse_argument;
use crate::sqs::args::{SqsArgs, SqsHeldArgs, SqsLoadArgs, SqsPollsArgs};
use crate::uri::{BrokerUri, UriError};

/// `quelea bench …`.
#[derive(Debug, Clone, Args)]
pub struct BenchArgs {
    /// What to measure.
    #[command(subcommand)]
    pub command: BenchCommand,
}

/// The measurements.
#[derive(Debug, Clone, Subcommand)]
pub enum BenchCommand {
    /// Throughput, latency and the broker's cost over AMQP 0-9-1, against any broker
    Amqp(Box<AmqpArgs>),
    /// The benchmarks of Subramoni et al. over all message sizes: publishers, broker and consumers as processes of their own
    AmqpSuite(Box<AmqpSuiteArgs>),
    /// What consumers that attach to a backlog do to the publishers
    Backlog(Box<BacklogArgs>),
    /// The broker's memory for idle connections
    Connections(ConnectionsArgs),
    /// Durable queues declared and deleted on one channel without waiting for each answer
    Declares(DeclaresArgs),
    /// A bare append-and-fdatasync loop: what the disk gives at best
    Disk(DiskArgs),
    /// A bare loop of small writes over loopback: what the system gives a client that writes each message by itself
    Socket(SocketArgs),
    /// The experiment of the BDQS paper, against any SQS endpoint: rates, response times,
    /// duplication, loss and order
    Sqs(Box<SqsArgs>),
    /// SQS calls in closed loops: single, in batches, mixed
    SqsLoad(SqsLoadArgs),
    /// What many long polls cost an SQS endpoint, and how soon they wake up
    SqsPolls(SqsPollsArgs),
    /// What many messages in flight, or delayed, do to an SQS queue's rates
    SqsHeld(SqsHeldArgs),
    /// The experiments of the BDQS paper on replicated queues, with nodes of Cassandra and front-ends started for them
    Bdqs(Box<BdqsArgs>),
    /// CMQ one way and there and back: rates, round trips, CPU time of both ends
    Cmq(Box<CmqArgs>),
    /// What a push to a CMQ destination costs, by their number
    CmqPush(CmqPushArgs),
    /// The memory of idle CMQ queues and destinations
    CmqMemory(CmqMemoryArgs),
    /// CMQ flows of every mode for a long time: nothing lost, memory flat
    CmqSoak(CmqSoakArgs),
    /// Elastic queues: fan-out of one relay beside its rivals; growth, moves, failover of a queue
    Elastic(Box<ElasticArgs>),
    /// The experiments of the four papers, drawn as one report, by the script of a source tree
    Papers(PapersArgs),
}

/// Where the broker is, and how to look at it.
#[derive(Debug, Clone, Args)]
pub struct BrokerArgs {
    /// The broker
    #[arg(long, default_value = "amqp://guest:guest@127.0.0.1:5672/%2f", value_name = "URI")]
    pub uri: String,
    /// Wait so long for a broker that is still starting
    #[arg(long, default_value_t = 0.0, value_name = "SECONDS")]
    pub connect_timeout_s: f64,
    /// The broker's process, if it is not found by its port (only a local one is looked at)
    #[arg(long, value_name = "PID")]
    pub broker_pid: Option<u32>,
    /// The broker's data directory: report the bytes written to its device
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Write the report as JSON too (- is standard output, and then it is the only one)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// No line every second
    #[arg(long)]
    pub quiet: bool,
}

/// What is published, how, and by whom.
#[derive(Debug, Clone, Args)]
pub struct LoadArgs {
    /// Publishing connections
    #[arg(long, short = 'x', default_value_t = 1)]
    pub producers: u32,
    /// Consuming connections
    #[arg(long, short = 'y', default_value_t = 1)]
    pub consumers: u32,
    /// Bytes of a message's body (1KiB, 64k, 1MiB, 5kB are understood; k is KiB, and kB 1,000)
    #[arg(long, short, default_value = "16", value_parser = parse_bytes)]
    pub size: usize,
    /// Publish with delivery mode 2
    #[arg(long)]
    pub persistent: bool,
    /// Publisher confirms: at most so many messages unconfirmed per producer; 0 is no confirms
    #[arg(long, short, default_value_t = 0, value_name = "WINDOW")]
    pub confirm: u64,
    /// Unacknowledged deliveries per consumer; 0 is no limit
    #[arg(long, short = 'q', default_value_t = 0, value_name = "COUNT")]
    pub prefetch: u16,
    /// Acknowledge once every so many deliveries, or 4 MiB of them; 0 is half the prefetch, at most 100
    #[arg(long, short = 'A', default_value_t = 0, value_name = "COUNT")]
    pub multi_ack: u64,
    /// Consume without acknowledgements
    #[arg(long, short)]
    pub auto_ack: bool,
    /// Publish so many messages a second in all, at their intended times whatever the broker does;
    /// latencies count from the intended time. Without it: as fast as the broker takes them
    #[arg(long, value_name = "PER_SECOND")]
    pub rate: Option<u64>,
    /// Messages per write at most; 1 writes each by itself, as simple clients do; 0 is 64 KiB of them
    #[arg(long, default_value_t = 0, value_name = "COUNT")]
    pub batch: u64,
    /// Queues that the messages are spread over
    #[arg(long, default_value_t = 1)]
    pub queues: u32,
    /// Name of the queue, or the beginning of the queues' names
    #[arg(long, default_value = DEFAULT_QUEUE, value_name = "NAME")]
    pub queue: String,
    /// Queue arguments, such as x-queue-type=quorum or x-durability=os; several with commas
    #[arg(long, value_name = "NAME=VALUE", value_delimiter = ',', value_parser = parse_argument)]
    pub queue_args: Vec<(String, Value)>,
    /// Declare the queues as transient
    #[arg(long)]
    pub transient_queues: bool,
    /// Publish through an exchange instead of the default one: fanout/NAME, direct/NAME, topic/NAME
    #[arg(long, value_name = "TYPE/NAME", value_parser = parse_exchange)]
    pub exchange: Option<(ExchangeType, String)>,
    /// Publish through a fanout exchange to so many queues
    #[arg(long, value_name = "QUEUES", conflicts_with_all = ["exchange", "queues"])]
    pub fanout: Option<u32>,
    /// Publish with the mandatory flag
    #[arg(long)]
    pub mandatory: bool,
    /// Use queues and exchange as they are: nothing is declared, purged or deleted
    #[arg(long)]
    pub predeclared: bool,
    /// Leave the queues in place at the end
    #[arg(long)]
    pub keep: bool,
    /// Threads that carry the connections; default: half the machine's cores
    #[arg(long, value_name = "COUNT")]
    pub threads: Option<usize>,
}

/// `quelea bench amqp`.
#[derive(Debug, Clone, Args)]
pub struct AmqpArgs {
    /// The broker.
    #[command(flatten)]
    pub broker: BrokerArgs,
    /// The load.
    #[command(flatten)]
    pub load: LoadArgs,
    /// The rest of the run.
    #[command(flatten)]
    pub span: SpanArgs,
}

/// How long a run lasts.
#[derive(Debug, Clone, Args)]
pub struct SpanArgs {
    /// Which side runs
    #[arg(long, value_enum, default_value_t = Mode::Both)]
    pub mode: Mode,
    /// Seconds that are measured
    #[arg(long, short = 'z', default_value_t = 10.0, value_name = "SECONDS")]
    pub duration_s: f64,
    /// Seconds before that
    #[arg(long, default_value_t = 1.0, value_name = "SECONDS")]
    pub warmup_s: f64,
    /// Publish (or only consume) so many messages in all and measure until the last has arrived,
    /// instead of measuring for a time
    #[arg(long, value_name = "COUNT")]
    pub messages: Option<u64>,
}

/// `quelea bench backlog`.
#[derive(Debug, Clone, Args)]
pub struct BacklogArgs {
    /// The broker.
    #[command(flatten)]
    pub broker: BrokerArgs,
    /// The load.
    #[command(flatten)]
    pub load: LoadArgs,
    /// Messages in the backlog before the consumers attach
    #[arg(long, default_value_t = 5_000_000, value_name = "COUNT")]
    pub messages: u64,
    /// Seconds before the attachment whose rate counts as the publishers' own
    #[arg(long, default_value_t = 10.0, value_name = "SECONDS")]
    pub before_s: f64,
    /// Seconds after it whose rate is compared
    #[arg(long, default_value_t = 20.0, value_name = "SECONDS")]
    pub after_s: f64,
    /// Fill the backlog at full speed with so many messages unconfirmed per producer, before the
    /// measured load begins
    #[arg(long, default_value_t = 2_000, value_name = "WINDOW")]
    pub fill_confirm: u64,
}

/// `quelea bench connections`.
#[derive(Debug, Clone, Args)]
pub struct ConnectionsArgs {
    /// The broker.
    #[command(flatten)]
    pub broker: BrokerArgs,
    /// Idle connections, each with one open channel
    #[arg(long, default_value_t = 5_000)]
    pub count: u32,
    /// Seconds between the last connection and the look at the memory
    #[arg(long, default_value_t = 2.0, value_name = "SECONDS")]
    pub settle_s: f64,
}

/// `quelea bench declares`.
#[derive(Debug, Clone, Args)]
pub struct DeclaresArgs {
    /// The broker.
    #[command(flatten)]
    pub broker: BrokerArgs,
    /// Queues
    #[arg(long, default_value_t = 20_000)]
    pub queues: u32,
    /// Methods sent whose answers are not there, at most; 1 waits for each
    #[arg(long, default_value_t = 1_000, value_name = "COUNT")]
    pub window: u32,
}

/// `quelea bench disk`.
#[derive(Debug, Clone, Args)]
pub struct DiskArgs {
    /// A directory on the disk; a temporary file set in it is deleted at the end
    #[arg(long, value_name = "DIR")]
    pub dir: PathBuf,
    /// Bytes of each append
    #[arg(long, default_value = "64KiB", value_parser = parse_bytes, value_name = "BYTES")]
    pub batch_bytes: usize,
    /// Seconds
    #[arg(long, short = 'z', default_value_t = 10.0, value_name = "SECONDS")]
    pub duration_s: f64,
    /// Pre-zeroed files that are written in turn
    #[arg(long, default_value_t = 4)]
    pub segments: u32,
    /// Bytes of each of them
    #[arg(long, default_value = "64MiB", value_parser = parse_bytes, value_name = "BYTES")]
    pub segment_bytes: usize,
    /// Write the report as JSON too (- is standard output, and then it is the only one)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// `quelea bench socket`.
#[derive(Debug, Clone, Args)]
pub struct SocketArgs {
    /// Bytes of each write; 75 is what an AMQP publish of 16 B takes
    #[arg(long, default_value = "75", value_parser = parse_bytes, value_name = "BYTES")]
    pub write_bytes: usize,
    /// Microseconds that the reader pauses after a read that was not full, so that the next finds several writes
    #[arg(long, default_value_t = 50, value_name = "MICROSECONDS")]
    pub pause_us: u64,
    /// Seconds
    #[arg(long, short = 'z', default_value_t = 4.0, value_name = "SECONDS")]
    pub duration_s: f64,
    /// Write the report as JSON too (- is standard output, and then it is the only one)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// Which sides of the load run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// Producers and consumers
    Both,
    /// Producers only; the queues stay
    PublishOnly,
    /// Consumers only, on the queues as they are; ends when they are empty
    ConsumeOnly,
}

/// Exchange types that a load can be routed by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExchangeType {
    /// `direct`
    Direct,
    /// `fanout`
    Fanout,
    /// `topic`
    Topic,
}

impl ExchangeType {
    /// Returns its name in `exchange.declare`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Fanout => "fanout",
            Self::Topic => "topic",
        }
    }
}

/// Queues whose names begin so belong to the benchmark: it replaces and deletes them.
pub const DEFAULT_QUEUE: &str = "quelea-bench";

impl BrokerArgs {
    /// Returns the URI's parts.
    ///
    /// # Errors
    /// [`UriError`] for what is wrong with it.
    pub fn parsed_uri(&self) -> Result<BrokerUri, UriError> {
        self.uri.parse()
    }
}

fn parse_exchange(text: &str) -> Result<(ExchangeType, String), String> {
    let (kind, name) = text.split_once('/').ok_or("expected TYPE/NAME, such as topic/events")?;
    let kind = match kind {
        "direct" => ExchangeType::Direct,
        "fanout" => ExchangeType::Fanout,
        "topic" => ExchangeType::Topic,
        other => return Err(format!("unknown exchange type '{other}' (direct, fanout, topic)")),
    };
    if name.is_empty() || name.len() > 255 {
        return Err("an exchange's name has 1 to 255 bytes".to_owned());
    }
    Ok((kind, name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exchange_is_a_type_and_a_name() {
        let found = parse_exchange("topic/a/b").unwrap();
        assert_eq!((found.0, found.1.as_str()), (ExchangeType::Topic, "a/b"));
        for wrong in ["topic", "topic/", "x-hash/a"] {
            assert!(parse_exchange(wrong).is_err(), "{wrong}");
        }
    }
}
