//! The command line of `quelea bench bdqs`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::byte_size::parse_bytes;
use crate::sqs::args::parse_probability;

/// `quelea bench bdqs`: without options as large as the paper's, or as issue 15 has it.
#[derive(Debug, Clone, Args)]
pub struct BdqsArgs {
    /// Which experiments, in this order
    #[arg(required = true, value_enum, value_delimiter = ',')]
    pub experiments: Vec<BdqsExperiment>,
    /// The nodes, the front-ends, and where the report goes.
    #[command(flatten)]
    pub site: BdqsSiteArgs,
    /// What is other than in the paper.
    #[command(flatten)]
    pub load: BdqsLoadArgs,
    /// Write the report as JSON too (- is standard output, and then it is the only one)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the figures there, as SVG
    #[arg(long, value_name = "DIRECTORY")]
    pub figures: Option<PathBuf>,
    /// No progress on standard error
    #[arg(long)]
    pub quiet: bool,
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BdqsExperiment {
    /// Client batches of ten beside raw rows through the same driver
    Rates,
    /// Requests to Cassandra of a message over its life
    Requests,
    /// Rates by queues, front-ends and nodes (figure 4)
    Scalability,
    /// Response time by rate, beside M/M/k (figure 5)
    Response,
    /// Duplication and order by K and by receivers (figure 6)
    Consistency,
    /// Requests and responses lost (figure 7)
    Network,
    /// Receivers that quit before they delete (figure 7)
    Clients,
    /// Servers that fail: a node and the front-end beside it, together (figure 8)
    Servers,
    /// Front-ends that fail alone
    FrontEnds,
    /// Queues of Consistency ONE beside those of LOCAL_QUORUM: rates, requests, order, losses, servers that fail
    Cap,
    /// FIFO queues beside standard ones: rates, requests, order
    Fifo,
    /// The head of a queue that many messages have passed through, beside a fresh queue's
    Head,
    /// How soon a long poll is answered that waits at another front-end
    Poll,
    /// A front-end's CPU time of a call beside that of a broker with its own log
    Cpu,
    /// Front-ends over a store that answers late: what another front-end costs the others
    ShareNothing,
}

/// Where it is measured.
#[derive(Debug, Clone, Args)]
pub struct BdqsSiteArgs {
    /// Nodes of a Cassandra that runs already; without it, nodes are started for the run, on 127.0.0.1 and the addresses
    /// that follow
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',')]
    pub nodes: Vec<String>,
    /// How many nodes are started
    #[arg(long, default_value_t = 3, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=9))]
    pub cassandra: u32,
    /// Replicas of each row; without it 3, or as many as there are nodes
    #[arg(long, value_name = "COUNT")]
    pub replication: Option<u32>,
    /// How many front-ends are started
    #[arg(long, default_value_t = 3, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub front_ends: u32,
    /// A setting of those front-ends, as `cassandra.consistency=ONE`; several with further --set
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = parse_setting)]
    pub settings: Vec<(String, String)>,
    /// The program that is started as front-end, if not the `quelea` beside this one
    #[arg(long, value_name = "FILE")]
    pub quelea: Option<PathBuf>,
    /// The directory `tests` of the checkout, whose harness starts Cassandra; without it that of the build
    #[arg(long, value_name = "DIRECTORY")]
    pub tests: Option<PathBuf>,
}

/// What is other than in the paper.
#[derive(Debug, Clone, Args)]
pub struct BdqsLoadArgs {
    /// Small and short: to see that everything runs and nothing is lost, not to publish
    #[arg(long)]
    pub smoke: bool,
    /// Runs of each row: mean, least and most are shown
    #[arg(long, default_value_t = 1, value_name = "RUNS", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub repeat: u32,
    /// Queues (Q); of `scalability` several
    #[arg(long, value_name = "COUNT", value_delimiter = ',')]
    pub queues: Vec<u32>,
    /// Sending threads of a queue (T_send)
    #[arg(long, value_name = "COUNT")]
    pub senders: Option<u32>,
    /// Receiving threads of a queue (T_recv); of `consistency` several
    #[arg(long, value_name = "COUNT", value_delimiter = ',')]
    pub receivers: Vec<u32>,
    /// Messages of a sending thread (m)
    #[arg(long, value_name = "COUNT")]
    pub messages: Option<u32>,
    /// Bytes of a body (L)
    #[arg(long, default_value = "2KiB", value_parser = parse_bytes, value_name = "BYTES")]
    pub size: usize,
    /// Pause of a sending thread after each message (delta_send)
    #[arg(long, value_name = "SECONDS")]
    pub send_delay_s: Option<f64>,
    /// Time that a receiving thread processes a message (delta_recv)
    #[arg(long, value_name = "SECONDS")]
    pub receive_delay_s: Option<f64>,
    /// K of `consistency`; 1000 stands for the paper's infinity
    #[arg(long, value_name = "K", value_delimiter = ',')]
    pub order_hints: Vec<String>,
    /// Failures of `network` and `clients`
    #[arg(long, value_name = "P", value_delimiter = ',', value_parser = parse_probability)]
    pub probabilities: Vec<f64>,
    /// Mean times to failure of `servers` and `front-ends`; the first is that of `cap`
    #[arg(long, value_name = "SECONDS", value_delimiter = ',')]
    pub mttf_s: Vec<f64>,
    /// Repeats each row of `servers` and `front-ends` until so many failures have come, over at most 100 runs
    #[arg(long, default_value_t = 0, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(..=10_000))]
    pub failures: u64,
    /// Mean time to recovery of `servers`: they are frozen for so long
    #[arg(long, default_value_t = 10.0, value_name = "SECONDS")]
    pub mttr_s: f64,
    /// Servers are killed and started again, not frozen
    #[arg(long)]
    pub kill: bool,
    /// Divides all times of `servers` and `front-ends`: delays, MTTF, MTTR
    #[arg(long, default_value_t = 1.0, value_name = "FACTOR")]
    pub compress: f64,
    /// Messages that pass through the queue of `head`
    #[arg(long, value_name = "COUNT")]
    pub passed: Option<u32>,
    /// Seconds of a closed loop
    #[arg(long, short = 'z', value_name = "SECONDS")]
    pub duration_s: Option<f64>,
    /// Front-ends of `scalability` and `share-nothing`
    #[arg(long, value_name = "COUNT", value_delimiter = ',')]
    pub widths: Vec<u32>,
    /// Nodes of `scalability`
    #[arg(long, value_name = "COUNT", value_delimiter = ',')]
    pub depths: Vec<u32>,
    /// Seed of failures and payloads
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

impl BdqsLoadArgs {
    /// Returns the values that are named; if none are, the fewest for a smoke run, and all the
    /// usual ones otherwise.
    pub(crate) fn series<T: Clone>(
        named: &[T],
        usual: &[T],
        smoke: &[T],
        is_smoke: bool,
    ) -> Vec<T> {
        match (named, is_smoke) {
            ([], true) => smoke.to_vec(),
            ([], false) => usual.to_vec(),
            (named, _) => named.to_vec(),
        }
    }

    /// Returns the usual figure, or the one of a smoke run in such a run.
    pub(crate) const fn or_smoke<T: Copy>(&self, usual: T, smoke: T) -> T {
        if self.smoke { smoke } else { usual }
    }
}

fn parse_setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}
