//! The report of a suite, for people and as JSON.

use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

use super::args::{AmqpSuiteArgs, Network};
use super::case::Case;
use super::network::Links;
use super::protocol::{Consumed, Published};
use crate::latency::Percentiles;
use crate::units::{milliseconds, thousands};

/// All that was measured.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// Product and version, as the broker says.
    broker: String,
    /// Seconds since the Unix epoch at the start.
    started_unix_s: u64,
    machine: Machine,
    network: Network,
    /// How the links are limited.
    shaped_by: Option<&'static str>,
    persistent: bool,
    confirm: u64,
    prefetch: u16,
    auto_ack: bool,
    pub cases: Vec<CaseReport>,
    /// Cases whose queues and bindings the broker did not make in time.
    pub left_out: Vec<String>,
    /// Why there is no more.
    pub error: Option<String>,
}

#[derive(Debug, Serialize)]
struct Machine {
    processor: String,
    cores: usize,
    kernel: String,
}

/// An experiment with one value of its parameter.
#[derive(Debug, Serialize)]
pub(crate) struct CaseReport {
    #[serde(flatten)]
    case: Case,
    /// In words.
    name: String,
    pub rounds: Vec<Round>,
}

/// One size.
#[derive(Debug, Serialize)]
pub(crate) struct Round {
    /// Bytes of a message.
    size: usize,
    /// Messages of all publishers.
    messages: u64,
    deliveries: u64,
    /// From the first message to the last reply.
    seconds: f64,
    pub messages_per_s: f64,
    deliveries_per_s: f64,
    /// 10^6 bytes of bodies published per second.
    megabytes_per_s: f64,
    /// From publisher to consumer; none if they have no common clock.
    latency: Option<Percentiles>,
    /// Ping-pong: from sending to the answer.
    round_trip: Percentiles,
    /// From sending to the broker's confirm.
    confirm: Percentiles,
    cpu: Cpu,
    /// CPU time of the broker, or of the baseline's relay, for each published message, µs.
    broker_cpu_us_per_message: Option<f64>,
    broker_cpu_us_per_delivery: Option<f64>,
    broker_cpu_ns_per_byte: Option<f64>,
}

/// CPU time over the round's time, in percent of one core, as in section 4.3.
#[derive(Debug, Serialize)]
struct Cpu {
    publisher_percent: f64,
    broker_percent: Option<f64>,
    consumer_percent: f64,
}

impl Report {
    pub(crate) fn new(args: &AmqpSuiteArgs, broker: &str, links: Option<&Links>) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            broker: broker.to_owned(),
            started_unix_s: since.as_secs(),
            machine: Machine::look(),
            network: args.network,
            shaped_by: links.map(|links| links.shaped_by),
            persistent: args.delivery.persistent,
            confirm: args.delivery.confirm,
            prefetch: args.delivery.prefetch,
            auto_ack: args.delivery.auto_ack,
            cases: Vec::new(),
            left_out: Vec::new(),
            error: None,
        }
    }

    pub(crate) fn to_text(&self) -> String {
        let machine = &self.machine;
        let mut text = format!(
            "{} on {} cores of {}, kernel {}\n",
            self.broker, machine.cores, machine.processor, machine.kernel
        );
        // Writing to a String does not fail.
        for case in &self.cases {
            let _ = writeln!(text, "{}", case.name);
            for round in &case.rounds {
                let _ = writeln!(text, "  {}", row(round));
            }
        }
        for case in &self.left_out {
            let _ = writeln!(text, "left out: {case}");
        }
        if let Some(error) = &self.error {
            let _ = writeln!(text, "ended early: {error}");
        }
        text
    }
}

impl Machine {
    fn look() -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let processor = read("/proc/cpuinfo")
            .lines()
            .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
            .map_or_else(|| "an unnamed processor".to_owned(), |(_, name)| name.to_owned());
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self { processor, cores, kernel: read("/proc/sys/kernel/osrelease").trim().to_owned() }
    }
}

impl CaseReport {
    pub(crate) fn new(case: &Case) -> Self {
        Self { case: *case, name: case.describe(), rounds: Vec::new() }
    }
}

impl Round {
    pub(crate) fn new(
        case: &Case,
        (size, each): (usize, u64),
        published: &Published,
        consumed: &Consumed,
        broker_cpu_us: Option<u64>,
        has_latency: bool,
    ) -> Self {
        let seconds = published.seconds;
        let messages = each * u64::from(case.pairs);
        let deliveries = messages * u64::from(case.fanout);
        let percent = |cpu_us: u64| cpu_us as f64 / (seconds * 1e6) * 100.0;
        let per = |count: u64| broker_cpu_us.map(|us| us as f64 / count.max(1) as f64);
        let rate = messages as f64 / seconds;
        let (round_trip, confirm) = match case.is_ping_pong() {
            true => (published.answer, Percentiles::default()),
            false => (Percentiles::default(), published.answer),
        };
        Self {
            size,
            messages,
            deliveries,
            seconds,
            messages_per_s: rate,
            deliveries_per_s: deliveries as f64 / seconds,
            megabytes_per_s: rate * size as f64 / 1e6,
            latency: has_latency.then_some(consumed.latency),
            round_trip,
            confirm,
            cpu: Cpu {
                publisher_percent: percent(published.cpu_us),
                broker_percent: broker_cpu_us.map(percent),
                consumer_percent: percent(consumed.cpu_us),
            },
            broker_cpu_us_per_message: per(messages),
            broker_cpu_us_per_delivery: per(deliveries),
            broker_cpu_ns_per_byte: per(messages * size as u64).map(|us| us * 1e3),
        }
    }
}

pub(crate) fn row(round: &Round) -> String {
    let ms = milliseconds;
    let mut row = format!(
        "{:>9} B  {:>10} messages  {:>9} msg/s  {:>8.2} MB/s",
        thousands(round.size as f64),
        thousands(round.messages as f64),
        thousands(round.messages_per_s),
        round.megabytes_per_s,
    );
    // Writing to a String does not fail.
    if round.deliveries > round.messages {
        let _ = write!(row, "  {} deliveries/s", thousands(round.deliveries_per_s));
    }
    if round.round_trip.count > 0 {
        // The paper's latency is half the round trip.
        let found = &round.round_trip;
        let half = found.mean_ms / 2.0;
        let (p50, p99) = (ms(found.p50_ms), ms(found.p99_ms));
        let _ = write!(row, "  latency {}  round trip p50 {p50} p99 {p99}", ms(half));
    } else if let Some(found) = round.latency.filter(|found| found.count > 0) {
        let (mean, p50, p99) = (ms(found.mean_ms), ms(found.p50_ms), ms(found.p99_ms));
        let _ = write!(row, "  latency mean {mean} p50 {p50} p99 {p99}");
    }
    if round.confirm.count > 0 {
        let (p50, p99) = (ms(round.confirm.p50_ms), ms(round.confirm.p99_ms));
        let _ = write!(row, "  confirm p50 {p50} p99 {p99}");
    }
    let cpu = &round.cpu;
    let broker = cpu.broker_percent.map_or_else(|| "–".to_owned(), |cpu| format!("{cpu:.0}"));
    let _ = write!(
        row,
        "  CPU {:.0} / {broker} / {:.0} %",
        cpu.publisher_percent, cpu.consumer_percent
    );
    if let Some(cost) = round.broker_cpu_us_per_message {
        let _ = write!(row, "  broker {cost:.2} µs");
    }
    row
}
