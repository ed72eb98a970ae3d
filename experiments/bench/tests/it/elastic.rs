//! Whole runs of `quelea bench elastic`, and the reports they write.

use clap::Parser;
use quelea_bench::{BenchArgs, BenchError};
use serde_json::Value;

use crate::report_file::ReportFile;
use crate::small_nats::{Fault, SmallNats};
use crate::small_relay::SmallRelay;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    bench: BenchArgs,
}

/// Runs `quelea bench elastic fanout` and gives its JSON report.
fn fanout(wire: &str, address: &str, options: &str) -> Result<Value, BenchError> {
    let report = ReportFile::new();
    let fixed = ["bench", "elastic", "fanout", "--wire", wire, "--producers-at", address];
    let line = fixed.into_iter().chain(["--json", report.path()]);
    let line = Line::parse_from(line.chain(options.split_whitespace()));
    quelea_bench::run(line.bench)?;
    Ok(report.read())
}

/// 300 messages a second for a third of a second, of one producer to two listeners.
const SHORT: &str = "-x 1 -y 2 --size 100 --rate 300 -z 0.25 --warmup-s 0.1 --patience-s 0.3";

fn order(report: &Value) -> [u64; 3] {
    ["lost", "duplicates", "out_of_order"].map(|name| report["order"][name].as_u64().unwrap())
}

#[test]
fn a_good_server_delivers_everything_once_and_in_order() {
    let server = SmallNats::start(Fault::None);
    let options = "-x 3 -y 4 --size 1000 --rate 2000 -z 0.3 --warmup-s 0.1 --listener-threads 2";
    let report = fanout("nats", &server.address(), options).unwrap();
    assert_eq!(order(&report), [0, 0, 0]);
    let sent = report["sent_in_all"].as_u64().unwrap();
    assert!(sent > 0);
    assert_eq!(report["order"]["received"], 4 * sent);
    assert!(report["latency"]["count"].as_u64().unwrap() > 0);
    assert_eq!(report["corrected"], true);
    // The server runs in this very process, and is found by its port.
    assert!(report["server_cpu_us_per_delivery"].is_number());
}

#[test]
fn a_flood_with_a_window_is_delivered_whole() {
    let server = SmallNats::start(Fault::None);
    let options = "-x 2 -y 3 --size 100 --window 10 -z 0.2 --warmup-s 0";
    let report = fanout("nats", &server.address(), options).unwrap();
    let sent = report["sent_in_all"].as_u64().unwrap();
    assert!(sent > 20, "{sent}");
    assert_eq!((&report["order"]["received"], order(&report)), (&(3 * sent).into(), [0, 0, 0]));
}

#[test]
fn what_a_server_loses_repeats_or_swaps_is_in_the_report() {
    let cases = [
        (Fault::Lose(20), [2, 0, 0]),
        (Fault::Repeat(20), [0, 2, 0]),
        (Fault::Swap(20), [0, 0, 2]),
    ];
    for (fault, expected) in cases {
        let server = SmallNats::start(fault);
        let report = fanout("nats", &server.address(), SHORT).unwrap();
        assert_eq!(order(&report), expected, "{fault:?}");
    }
}

#[test]
fn a_foreign_message_and_an_error_of_the_server_end_the_run() {
    for (fault, words) in [(Fault::Damage(20), "no stamp"), (Fault::Refuse(20), "Slow Consumer")] {
        let server = SmallNats::start(fault);
        let error = fanout("nats", &server.address(), SHORT).unwrap_err().to_string();
        assert!(error.contains(words) && error.contains("listener"), "{error}");
    }
}

#[test]
fn a_native_producer_never_sends_beyond_its_credit() {
    for credit_messages in [1, 7] {
        let relay = SmallRelay::start(credit_messages);
        let options = "-x 2 -y 3 --size 300 -z 0.2 --warmup-s 0";
        let report = fanout("native", &relay.address(), options).unwrap();
        let sent = report["sent_in_all"].as_u64().unwrap();
        assert!(sent > 2 * credit_messages, "{sent}");
        assert_eq!((&report["order"]["received"], order(&report)), (&(3 * sent).into(), [0, 0, 0]));
        assert_eq!(relay.overdrawn(), 0);
    }
}

#[test]
fn a_listener_that_never_reads_is_not_waited_for() {
    let relay = SmallRelay::start(1_000);
    let report = fanout("native", &relay.address(), &format!("{SHORT} --stalled 1")).unwrap();
    assert_eq!(order(&report), [0, 0, 0]);
}

#[test]
fn options_out_of_range_and_a_missing_server_are_named() {
    let cases = [("--size 31", "--size"), ("--producers 0", "--producers"), ("--rate 0", "--rate")];
    for (options, name) in cases {
        let error = fanout("nats", "127.0.0.1:1", options).unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
    }
    let error = fanout("nats", "127.0.0.1:1", "").unwrap_err().to_string();
    assert!(error.contains("cannot connect to 127.0.0.1:1"), "{error}");
}
