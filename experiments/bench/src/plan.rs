//! A load with all its numbers settled: who publishes what to where, and who consumes it.

use quelea_model::{Table, Value};

use crate::args::{DEFAULT_QUEUE, ExchangeType, LoadArgs, Mode};
use crate::error::BenchError;
use crate::publisher::Pace;
use crate::schedule::Schedule;
use crate::subscriber::Acknowledge;

/// Connections of each side; more do not fit into the generator's file descriptors.
const CONNECTIONS_MAX: u32 = 10_000;
const QUEUES_MAX: u32 = 100_000;
const ACK_EVERY_MAX: u64 = 100;
const FANOUT_EXCHANGE: &str = "quelea-bench-fanout";

/// A checked load.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub producers: u32,
    pub consumers: u32,
    pub queues: Vec<String>,
    pub exchange: Option<(ExchangeType, String)>,
    /// Routing keys, published to in turn.
    pub keys: Vec<String>,
    /// Queues that each message reaches.
    pub copies: u64,
    pub size: usize,
    pub persistent: bool,
    pub mandatory: bool,
    pub durable: bool,
    pub arguments: Table,
    pub confirm: u64,
    /// Messages per write; 0 is no limit of its own.
    pub batch: u64,
    pub prefetch: u16,
    pub acknowledge: Acknowledge,
    pub rate: Option<u64>,
    pub predeclared: bool,
    pub keep: bool,
    pub threads: usize,
}

impl Plan {
    pub(crate) fn new(args: &LoadArgs, mode: Mode) -> Result<Self, BenchError> {
        check(args, mode)?;
        let (exchange, queue_count) = match (&args.exchange, args.fanout) {
            (_, Some(count)) => (Some((ExchangeType::Fanout, FANOUT_EXCHANGE.to_owned())), count),
            (exchange, None) => (exchange.clone(), args.queues),
        };
        let queues = names(&args.queue, queue_count);
        let is_fanout = matches!(exchange, Some((ExchangeType::Fanout, _)));
        let keys = if is_fanout { vec![String::new()] } else { queues.clone() };
        let mut arguments = Table::new();
        for (name, value) in &args.queue_args {
            arguments.set(name, value.clone());
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Self {
            producers: if mode == Mode::ConsumeOnly { 0 } else { args.producers },
            consumers: if mode == Mode::PublishOnly { 0 } else { args.consumers },
            copies: if is_fanout { u64::from(queue_count) } else { 1 },
            queues,
            exchange,
            keys,
            size: args.size,
            persistent: args.persistent,
            mandatory: args.mandatory,
            durable: !args.transient_queues,
            arguments,
            confirm: args.confirm,
            batch: args.batch,
            prefetch: args.prefetch,
            acknowledge: acknowledge(args),
            rate: args.rate,
            predeclared: args.predeclared || mode == Mode::ConsumeOnly,
            keep: args.keep || mode == Mode::PublishOnly,
            threads: args.threads.unwrap_or(cores / 2).max(1),
        })
    }

    /// Returns the indices of the keys of producer `index`: with fewer producers than keys each
    /// takes its share of them in turn, otherwise producers share a key.
    pub(crate) fn keys_of(&self, index: u32) -> Vec<usize> {
        share(index, self.producers, self.keys.len())
    }

    /// Returns the indices of the queues of consumer `index`, by the same rule.
    pub(crate) fn queues_of(&self, index: u32) -> Vec<usize> {
        share(index, self.consumers, self.queues.len())
    }

    /// Returns how many of `messages` in all are those of producer `index`.
    pub(crate) fn messages_of(&self, index: u32, messages: u64) -> u64 {
        let (count, producers) = (messages, u64::from(self.producers));
        count / producers + u64::from(u64::from(index) < count % producers)
    }

    /// Returns the pace of producer `index` in a run that starts at `start_ns`.
    pub(crate) fn pace_of(&self, index: u32, start_ns: u64) -> Pace {
        self.rate.map_or(Pace::Free, |rate| {
            let (index, producers) = (u64::from(index), u64::from(self.producers));
            Pace::Scheduled(Schedule::share(rate, index, producers, start_ns))
        })
    }

    /// Returns whether a queue may be replaced and deleted: only the benchmark's own.
    pub(crate) fn owns(queue: &str) -> bool {
        queue.starts_with(DEFAULT_QUEUE)
    }

    /// Returns a description on one line, for people.
    pub(crate) fn describe(&self) -> String {
        let plural =
            |count: u64, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
        let mut words = vec![format!("{} B", self.size)];
        words.push(if self.persistent { "persistent" } else { "transient" }.to_owned());
        words.push(plural(self.producers.into(), "producer"));
        words.push(plural(self.consumers.into(), "consumer"));
        words.push(plural(self.queues.len() as u64, "queue"));
        if let Some((kind, _)) = &self.exchange {
            words.push(format!("{} exchange", kind.name()));
        }
        for (name, value) in self.arguments.iter() {
            let text = match value {
                Value::I64(number) => number.to_string(),
                Value::Bool(truth) => truth.to_string(),
                other => other.as_text().unwrap_or("…").to_owned(),
            };
            words.push(format!("{name}={text}"));
        }
        match self.confirm {
            0 => words.push("no confirms".to_owned()),
            window => words.push(format!("confirms, window {window}")),
        }
        if self.batch > 0 && self.producers > 0 {
            words.push(format!("{} per write", self.batch));
        }
        if self.consumers > 0 {
            words.push(match self.acknowledge {
                Acknowledge::Automatic => "auto-ack".to_owned(),
                Acknowledge::Every(every) => {
                    format!("ack every {every}, prefetch {}", self.prefetch)
                }
            });
        }
        words.push(
            self.rate.map_or_else(|| "full speed".to_owned(), |rate| format!("{rate} msg/s")),
        );
        words.join(", ")
    }
}

fn check(args: &LoadArgs, mode: Mode) -> Result<(), BenchError> {
    let refuse = |words: &str| Err(BenchError::Arguments(words.to_owned()));
    if mode != Mode::ConsumeOnly && args.producers == 0 {
        return refuse("--producers 0: use --mode consume-only");
    }
    if mode != Mode::PublishOnly && args.consumers == 0 {
        return refuse("--consumers 0: use --mode publish-only");
    }
    if args.producers > CONNECTIONS_MAX || args.consumers > CONNECTIONS_MAX {
        return refuse("at most 10,000 producers and 10,000 consumers");
    }
    let queues = args.fanout.unwrap_or(args.queues);
    if queues == 0 || queues > QUEUES_MAX {
        return refuse("--queues and --fanout take 1 to 100,000");
    }
    if args.queue.is_empty() || args.queue.len() > 240 {
        return refuse("--queue takes a name of 1 to 240 bytes");
    }
    if args.rate == Some(0) {
        return refuse("--rate 0 would never send anything");
    }
    if args.size > 128 * 1024 * 1024 {
        return refuse("--size takes at most 128 MiB");
    }
    if args.prefetch > 0 && args.multi_ack > u64::from(args.prefetch) {
        return refuse("--multi-ack above --prefetch would stop the consumer for ever");
    }
    Ok(())
}

fn acknowledge(args: &LoadArgs) -> Acknowledge {
    if args.auto_ack {
        return Acknowledge::Automatic;
    }
    Acknowledge::Every(match args.multi_ack {
        0 => acknowledge_every(args.prefetch),
        every => every,
    })
}

/// Returns how many deliveries are acknowledged together: half of what the prefetch allows, and no
/// more than a hundred.
pub(crate) fn acknowledge_every(prefetch: u16) -> u64 {
    match prefetch {
        0 => ACK_EVERY_MAX,
        prefetch => u64::from(prefetch / 2).clamp(1, ACK_EVERY_MAX),
    }
}

/// Returns the names of so many queues: one queue keeps the name; several get numbers.
fn names(name: &str, count: u32) -> Vec<String> {
    match count {
        1 => vec![name.to_owned()],
        _ => (1..=count).map(|number| format!("{name}-{number}")).collect(),
    }
}

fn share(index: u32, of: u32, things: usize) -> Vec<usize> {
    let (index, of) = (index as usize, of as usize);
    if of >= things {
        return vec![index % things];
    }
    (index..things).step_by(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{BenchArgs, BenchCommand};
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        bench: BenchArgs,
    }

    fn plan(line: &str) -> Result<Plan, BenchError> {
        let words = ["bench", "amqp"].into_iter().chain(line.split_whitespace());
        let BenchCommand::Amqp(args) = Line::parse_from(words).bench.command else {
            panic!("another command");
        };
        Plan::new(&args.load, args.span.mode)
    }

    #[test]
    fn the_defaults_are_one_of_each_on_one_queue() {
        let plan = plan("").unwrap();
        assert_eq!((plan.producers, plan.consumers, plan.copies), (1, 1, 1));
        assert_eq!(
            (plan.queues, plan.keys),
            (vec!["quelea-bench".to_owned()], vec!["quelea-bench".to_owned()])
        );
        assert_eq!(plan.acknowledge, Acknowledge::Every(100));
    }

    #[test]
    fn few_producers_take_turns_over_many_queues() {
        let plan = plan("--producers 2 --consumers 3 --queues 5").unwrap();
        assert_eq!(plan.keys_of(0), [0, 2, 4]);
        assert_eq!(plan.keys_of(1), [1, 3]);
        assert_eq!(plan.queues_of(2), [2]);
        assert_eq!(plan.queues[4], "quelea-bench-5");
    }

    #[test]
    fn many_producers_share_few_queues() {
        let plan = plan("--producers 5 --queues 2").unwrap();
        let taken: Vec<Vec<usize>> = (0..5).map(|index| plan.keys_of(index)).collect();
        assert_eq!(taken, [[0], [1], [0], [1], [0]]);
    }

    #[test]
    fn a_fanout_reaches_all_its_queues_by_one_key() {
        let plan = plan("--fanout 20 --consumers 4").unwrap();
        assert_eq!((plan.copies, plan.queues.len(), plan.keys.len()), (20, 20, 1));
        assert_eq!(plan.queues_of(3), [3, 7, 11, 15, 19]);
        assert_eq!(plan.keys_of(0), [0]);
    }

    #[test]
    fn the_messages_of_all_producers_add_up() {
        let plan = plan("--producers 3").unwrap();
        let shares: Vec<u64> = (0..3).map(|index| plan.messages_of(index, 11)).collect();
        assert_eq!(shares, [4, 4, 3]);
    }

    #[test]
    fn acknowledgements_never_wait_for_more_than_the_prefetch() {
        let every = |line: &str| plan(line).unwrap().acknowledge;
        assert_eq!(every("--prefetch 10"), Acknowledge::Every(5));
        assert_eq!(every("--prefetch 1"), Acknowledge::Every(1));
        assert_eq!(every("--prefetch 1000"), Acknowledge::Every(100));
        assert_eq!(every("--prefetch 10 --multi-ack 10"), Acknowledge::Every(10));
        assert_eq!(every("--auto-ack"), Acknowledge::Automatic);
    }

    #[test]
    fn one_sided_runs_leave_the_queues_to_the_other_side() {
        let fill = plan("--mode publish-only").unwrap();
        assert!(fill.keep && !fill.predeclared && fill.consumers == 0);
        let drain = plan("--mode consume-only").unwrap();
        assert!(drain.predeclared && drain.producers == 0);
    }

    #[test]
    fn contradictions_are_refused_with_words() {
        let cases = [
            ("--producers 0", "consume-only"),
            ("--consumers 0", "publish-only"),
            ("--rate 0", "--rate 0"),
            ("--queues 0", "--queues"),
            ("--prefetch 5 --multi-ack 6", "for ever"),
            ("--producers 10001", "10,000"),
        ];
        for (line, expected) in cases {
            let error = plan(line).unwrap_err().to_string();
            assert!(error.contains(expected), "{line}: {error}");
        }
    }

    #[test]
    fn only_the_benchmarks_own_queues_are_its_to_delete() {
        assert!(Plan::owns("quelea-bench-7"));
        assert!(!Plan::owns("orders"));
    }
}
