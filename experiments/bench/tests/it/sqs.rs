//! The measurements of SQS, whole runs against a small service of the tests' own.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use clap::Parser;
use quelea_bench::{BenchArgs, BenchError};
use serde_json::Value;

use crate::small_service::SmallService;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    bench: BenchArgs,
}

/// Runs `quelea bench COMMAND OPTIONS` against `service` and gives its JSON report.
fn run(service: &SmallService, command: &str, options: &str) -> Result<Value, BenchError> {
    let (report, judged) = judged(service, command, options);
    judged.map(|()| report.unwrap())
}

/// Runs the command. Returns its report, if there is one, and how the command ended.
fn judged(
    service: &SmallService,
    command: &str,
    options: &str,
) -> (Option<Value>, Result<(), BenchError>) {
    let report = report_path();
    let words = ["bench", command, "--quiet", "--endpoint"].map(str::to_owned).into_iter();
    let rest = options.split_whitespace().map(str::to_owned);
    let path = report.to_string_lossy().into_owned();
    let line = words.chain([service.endpoint(), "--json".to_owned(), path]).chain(rest);
    let judged = quelea_bench::run(Line::parse_from(line).bench);
    let text = std::fs::read(&report).ok();
    let _ = std::fs::remove_file(report);
    (text.map(|text| serde_json::from_slice(&text).unwrap()), judged)
}

fn report_path() -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("quelea-bench-sqs-{}-{number}.json", std::process::id()))
}

#[test]
fn an_undisturbed_experiment_finds_nothing_wrong() {
    let service = SmallService::start();
    for side in ["", "--concurrent"] {
        let options =
            format!("--queues 3 --senders 2 --receivers 2 --messages 20 --size 64 {side}");
        let report = run(&service, "sqs", &options).unwrap();
        assert_eq!(report["send"]["operations"], 120, "{side}");
        assert_eq!(report["receive"]["operations"], 120, "{side}");
        let found = &report["consistency"];
        for rate in ["duplication_rate", "loss_rate", "provably_out_of_order_rate"] {
            assert_eq!(found[rate], 0.0, "{side} {rate}");
        }
        assert_eq!((&found["messages"], &found["corrupted"]), (&120.into(), &0.into()));
    }
    assert_eq!(service.queues(), 0, "its queues are deleted");
}

#[test]
fn one_receiver_of_an_ordered_service_sees_no_disorder() {
    let service = SmallService::start();
    let options = "--queues 2 --senders 1 --receivers 1 --messages 50 --size 64";
    let report = run(&service, "sqs", options).unwrap();
    let found = &report["consistency"];
    for measure in ["out_of_order_rate", "out_of_order_rate_of_queues", "average_displacement"] {
        assert_eq!(found[measure], 0.0, "{measure}");
    }
}

#[test]
fn injected_failures_cost_duplicates_and_order_but_no_message() {
    let service = SmallService::start();
    let options = "--queues 2 --senders 2 --receivers 2 --messages 100 --size 64 \
                   --visibility-timeout-s 1 --request-loss 0.05 --response-loss 0.05 \
                   --crash 0.03 --forget 0.03";
    let report = run(&service, "sqs", options).unwrap();
    let found = &report["consistency"];
    assert_eq!((&found["messages"], &found["lost"]), (&400.into(), &0.into()));
    assert!(report["crashed"].as_u64().unwrap() > 0 && report["forgotten"].as_u64().unwrap() > 0);
    assert!(found["duplicates"].as_u64().unwrap() > 0, "{found}");
    assert!(found["provably_out_of_order_rate"].as_f64().unwrap() > 0.0, "{found}");
}

#[test]
fn messages_that_the_service_loses_are_named_and_their_queue_stays() {
    for how in ["", " --batch"] {
        let service = SmallService::start();
        service.drop_sent(3);
        let options = "--queues 1 --senders 1 --receivers 1 --messages 10 --size 64 \
                       --visibility-timeout-s 1";
        let (report, judged) = judged(&service, "sqs", &format!("{options}{how}"));
        assert_eq!(judged.unwrap_err().to_string(), "3 of 10 messages were lost", "{how}");
        let report = report.unwrap();
        let found = &report["consistency"];
        assert_eq!((&found["messages"], &found["lost"]), (&10.into(), &3.into()), "{how}");
        assert_eq!(found["loss_rate"], 0.3);
        let lost = report["lost_messages"].as_array().unwrap();
        let ids: Vec<_> = lost.iter().map(|one| one["message_id"].as_str().unwrap()).collect();
        assert_eq!(ids, ["0", "1", "2"], "{how}");
        assert_eq!((&lost[2]["sender"], &lost[2]["of_sender"]), (&0.into(), &2.into()));
        assert!(lost[0]["queue_url"].as_str().unwrap().contains("quelea-bench"), "{report}");
        assert_eq!(service.queues(), 1, "the queue can be looked into");
    }
}

#[test]
fn an_order_hint_that_the_service_refuses_is_left_out() {
    let service = SmallService::start();
    let options = "--queues 2 --senders 1 --receivers 1 --messages 2 --size 64";
    let report = run(&service, "sqs", &format!("{options} --order-hint 3")).unwrap();
    assert_eq!(report["order_hint"], Value::Null);
    let error = run(&service, "sqs", &format!("{options} --queue-attributes OrderHint=3"));
    assert!(error.unwrap_err().to_string().contains("InvalidAttributeName"));
}

#[test]
fn every_phase_of_a_load_moves_messages() {
    let service = SmallService::start();
    let report = run(&service, "sqs-load", "--connections 3 --sizes 10,2k -z 0.2").unwrap();
    let phases = report["phases"].as_array().unwrap();
    assert_eq!(phases.len(), 10);
    for phase in phases {
        let calls = phase["calls"].as_u64().unwrap();
        assert!(phase["messages"].as_u64().unwrap() > 0 && calls > 0, "{phase}");
        assert_eq!((&phase["errors"], phase["first_error"].as_str()), (&0.into(), None));
        assert!(phase["latency"]["count"].as_u64().unwrap() > 0, "{phase}");
    }
    let batches = &phases[2];
    assert_eq!(batches["messages"].as_u64(), batches["calls"].as_u64().map(|calls| calls * 10));
}

#[test]
fn errors_of_the_service_are_counted_with_the_first_ones_text() {
    let service = SmallService::start();
    service.fail("SendMessage", &[500; 5]);
    let report = run(&service, "sqs-load", "--connections 2 --phases send -z 0.2").unwrap();
    let phase = &report["phases"][0];
    assert_eq!(phase["errors"], 5);
    assert!(phase["first_error"].as_str().unwrap().contains("InternalFailure"), "{phase}");
}

#[test]
fn waiting_polls_are_woken_by_messages() {
    let service = SmallService::start();
    let options = "--connections 30 --queues 5 --idle-s 0 --wakeups 40 --wakeup-rate 1000";
    let report = run(&service, "sqs-polls", options).unwrap();
    assert_eq!((&report["polls"], &report["missed"]), (&30.into(), &0.into()));
    assert_eq!(report["wakeup"]["count"], 40);
}

#[test]
fn held_messages_stay_while_others_come_and_go() {
    let service = SmallService::start();
    for held in ["in-flight", "delayed"] {
        let options = format!("--held {held} --messages 50 --connections 2 -z 0.1");
        let report = run(&service, "sqs-held", &options).unwrap();
        assert_eq!(report["messages"], 50);
        assert!(report["send_ratio"].as_f64().unwrap() > 0.0, "{report}");
        assert!(report["receive_ratio"].as_f64().unwrap() > 0.0, "{report}");
    }
}

#[test]
fn options_out_of_their_range_are_refused() {
    let service = SmallService::start();
    let cases = [
        ("sqs", "--queues 0", "--queues"),
        ("sqs", "--size 10", "--size takes 64"),
        ("sqs", "--queues 100000 --senders 3", "threads a side"),
        ("sqs", "--request-loss 0.6 --response-loss 0.6", "together"),
        ("sqs", "--visibility-timeout-s 0", "--visibility-timeout-s"),
        ("sqs", "--send-delay-s 3601", "--send-delay-s"),
        ("sqs-load", "--connections 0", "--connections"),
        ("sqs-load", "--queues 17", "--queues"),
        ("sqs-load", "--sizes 2MiB", "--sizes"),
        ("sqs-polls", "--wait-s 21", "--wait-s"),
        ("sqs-polls", "--wakeup-rate 0", "--wakeup-rate"),
        ("sqs-held", "--held delayed --messages 0", "--messages"),
    ];
    for (command, options, expected) in cases {
        let error = run(&service, command, options).unwrap_err().to_string();
        assert!(error.contains(expected), "{command} {options}: {error}");
    }
    let line = Line::parse_from(["bench", "sqs-load", "--endpoint", "https://h"]);
    let error = quelea_bench::run(line.bench).unwrap_err().to_string();
    assert!(error.starts_with("--endpoint: https://"), "{error}");
}
