//! Whole runs, as the command line starts them, and the reports they write.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use clap::Parser;
use quelea_bench::{BenchArgs, BenchError};
use serde_json::Value;

use crate::small_broker::SmallBroker;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    bench: BenchArgs,
}

/// Runs `quelea bench COMMAND OPTIONS` against `broker` and gives its JSON report.
fn run(broker: &SmallBroker, command: &str, options: &str) -> Result<Value, BenchError> {
    let report = Report::new();
    let words = ["bench", command, "--quiet", "--uri"].map(str::to_owned).into_iter();
    let rest = options.split_whitespace().map(str::to_owned);
    let path = report.0.to_string_lossy().into_owned();
    let line = words.chain([broker.uri(), "--json".to_owned(), path]).chain(rest);
    quelea_bench::run(Line::parse_from(line).bench)?;
    Ok(serde_json::from_slice(&std::fs::read(&report.0).unwrap()).unwrap())
}

/// A file that vanishes with the value.
struct Report(PathBuf);

impl Report {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("quelea-bench-it-{}-{number}.json", std::process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn a_counted_run_sends_confirms_and_receives_every_message_once() {
    let broker = SmallBroker::start();
    let options = "--messages 5000 --confirm 100 --producers 3 --consumers 2 --queues 4 --size 20";
    let report = run(&broker, "amqp", options).unwrap();
    for field in ["sent", "confirmed", "received", "messages"] {
        assert_eq!(report[field], 5000, "{field}");
    }
    assert_eq!(report["latency"]["count"], 5000);
    assert_eq!(report["confirm_latency"]["count"], 5000);
    assert_eq!(report["corrected"], false);
    assert!(report["broker"].as_str().unwrap().starts_with("Quelea "));
    // The small broker runs in this very process, and is found by its port.
    assert_eq!(report["broker_process"]["pid"], std::process::id());
}

#[test]
fn messages_of_one_byte_and_of_many_frames_are_timed() {
    let broker = SmallBroker::start();
    for size in [1, 300_000] {
        let options = format!("--messages 20 --size {size} --auto-ack --persistent");
        let report = run(&broker, "amqp", &options).unwrap();
        assert_eq!(report["received"], 20, "{size}");
        assert_eq!(report["latency"]["count"], 20, "{size}");
    }
}

#[test]
fn a_fanout_counts_its_copies() {
    let broker = SmallBroker::start();
    let report = run(&broker, "amqp", "--messages 100 --fanout 5 --consumers 2").unwrap();
    assert_eq!((&report["sent"], &report["received"]), (&100.into(), &500.into()));
    assert_eq!(report["messages"], 100);
}

#[test]
fn an_open_loop_is_reported_as_corrected() {
    let broker = SmallBroker::start();
    let report = run(&broker, "amqp", "--messages 200 --rate 20000 --producers 2").unwrap();
    assert_eq!((&report["received"], &report["corrected"]), (&200.into(), &true.into()));
}

#[test]
fn a_backlog_can_be_made_and_drained_by_two_runs() {
    let broker = SmallBroker::start();
    let made = run(&broker, "amqp", "--mode publish-only --messages 300 --batch 1").unwrap();
    assert_eq!((&made["sent"], &made["received"]), (&300.into(), &0.into()));
    let drained = run(&broker, "amqp", "--mode consume-only --messages 300").unwrap();
    assert_eq!((&drained["sent"], &drained["received"]), (&0.into(), &300.into()));
}

#[test]
fn what_the_broker_objects_to_is_the_error() {
    let broker = SmallBroker::start();
    let error = run(&broker, "amqp", "--queue cursed --messages 10").unwrap_err();
    assert_eq!(
        error.to_string(),
        "the broker closed the channel: 406 PRECONDITION_FAILED - cursed"
    );
}

#[test]
fn somebody_elses_queue_is_not_replaced() {
    let broker = SmallBroker::start();
    run(&broker, "amqp", "--queue orders --messages 10 --keep").unwrap();
    let error = run(&broker, "amqp", "--queue orders --messages 10").unwrap_err();
    assert!(matches!(error, BenchError::QueueExists { .. }), "{error}");
    let report = run(&broker, "amqp", "--queue orders --messages 10 --predeclared").unwrap();
    assert_eq!(report["received"], 10);
}

#[test]
fn idle_connections_are_opened_and_closed() {
    let broker = SmallBroker::start();
    let report = run(&broker, "connections", "--count 20 --settle-s 0").unwrap();
    assert_eq!(report["connections"], 20);
}

#[test]
fn a_broker_that_is_not_there_is_named_without_its_password() {
    let error = {
        let line = ["bench", "amqp", "--uri", "amqp://me:secret@127.0.0.1:1/x"];
        quelea_bench::run(Line::parse_from(line).bench).unwrap_err().to_string()
    };
    assert!(error.contains("amqp://me@127.0.0.1:1/x") && !error.contains("secret"), "{error}");
}
