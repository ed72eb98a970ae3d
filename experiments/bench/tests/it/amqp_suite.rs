//! The suite of AMQP benchmarks: three processes over a small broker, and over brokers that do not keep what they promise.

use std::net::TcpListener;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::small_broker::{Fault, SmallBroker};

const PROGRAM: &str = env!("CARGO_BIN_EXE_quelea-bench");

fn command(target: &str, options: &str) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(["amqp-suite", "--quiet", "--json", "-", "--target", target]);
    command.args(options.split_whitespace()).stdin(Stdio::null());
    command
}

fn run(broker: &SmallBroker, options: &str) -> (Value, Output) {
    let output = command(&broker.uri(), options).output().unwrap();
    (serde_json::from_slice(&output.stdout).unwrap_or_default(), output)
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn every_experiment_ends_with_its_replies() {
    let broker = SmallBroker::start();
    let options = "--experiments baseline,de-spsc,de-mpmc,de-pp,fe-spmc --pairs 1,3 --fanouts 4 \
        --sizes 1,64,5000 --messages 50 --threads 2";
    let (report, output) = run(&broker, options);
    assert!(output.status.success(), "{}", errors(&output));
    let cases = report["cases"].as_array().unwrap();
    let shapes: Vec<_> = cases
        .iter()
        .map(|case| {
            let of = |name: &str| case[name].as_u64().unwrap();
            (case["experiment"].as_str().unwrap(), of("pairs"), of("fanout"))
        })
        .collect();
    let expected = [
        ("baseline", 1, 1),
        ("de-spsc", 1, 1),
        ("de-mpmc", 1, 1),
        ("de-mpmc", 3, 1),
        ("de-pp", 1, 1),
        ("fe-spmc", 1, 4),
    ];
    assert_eq!(shapes, expected);
    for (case, (experiment, pairs, fanout)) in cases.iter().zip(shapes) {
        let rounds = case["rounds"].as_array().unwrap();
        assert_eq!(rounds.len(), 3, "{experiment}");
        for round in rounds {
            assert_eq!(round["confirm"]["count"], 0, "{experiment}");
            assert_eq!(round["messages"], 50 * pairs, "{experiment}");
            assert_eq!(round["deliveries"], 50 * pairs * fanout, "{experiment}");
            let (latencies, replies) = match experiment {
                "baseline" => (0, 0),
                "de-pp" => (50, 50),
                _ => (50 * pairs * fanout, 0),
            };
            assert_eq!(round["latency"]["count"], latencies, "{experiment}");
            assert_eq!(round["round_trip"]["count"], replies, "{experiment}");
            assert!(round["cpu"]["broker_percent"].is_number(), "{experiment}: {round}");
        }
    }
}

#[test]
fn what_a_broker_does_to_a_message_is_named_and_earlier_sizes_are_kept() {
    for (fault, complaint) in [
        (Fault::Damage, "DE-SPSC, 64 B: 1 of 50 messages arrived with another body"),
        (Fault::Swap, "DE-SPSC, 64 B: 1 of 50 messages arrived out of order"),
        (Fault::Double, "DE-SPSC, 64 B: 1 of 50 messages arrived out of order"),
        (Fault::Lose, "no message moved for 3 s: 50 sent, 49 received"),
        (
            Fault::Refuse,
            "the publisher: the broker closed the channel: 406 PRECONDITION_FAILED - enough",
        ),
    ] {
        let broker = SmallBroker::start_with(fault);
        let options = "--experiments de-spsc --sizes 8,64 --messages 50 --stall-s 3";
        let (report, output) = run(&broker, options);
        assert_eq!(output.status.code(), Some(1), "{fault:?}");
        let rounds = report["cases"][0]["rounds"].as_array().unwrap();
        assert_eq!((rounds.len(), &rounds[0]["size"]), (1, &8.into()), "{fault:?}");
        let said = report["error"].as_str().unwrap_or_default();
        if fault == Fault::Double {
            // The fiftieth is the forty-ninth, and one more may have come before the round was ended.
            assert!(said.contains("arrived"), "{said}");
        } else {
            assert_eq!(said, complaint, "{fault:?}: {}", errors(&output));
        }
        assert!(errors(&output).contains(said), "{}", errors(&output));
    }
}

#[test]
fn roles_that_were_started_elsewhere_are_awaited() {
    let broker = SmallBroker::start();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let options = format!("--listen {free} --experiments de-spsc --sizes 8 --messages 50");
    let suite = command(&broker.uri(), &options).stdout(Stdio::piped()).spawn().unwrap();
    let roles = ["publisher", "consumer"].map(|role| {
        let options = format!("--role {role} --coordinator {free} --connect-timeout-s 60");
        command(&broker.uri(), &options).spawn().unwrap()
    });
    let output = suite.wait_with_output().unwrap();
    assert!(output.status.success());
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["cases"][0]["rounds"][0]["messages"], 50);
    for mut role in roles {
        assert!(role.wait().unwrap().success());
    }
}

#[test]
fn a_broker_that_is_not_there_and_contradictions_are_refused_before_anything_starts() {
    for (target, options, complaint) in [
        ("amqp://me:secret@127.0.0.1:1/x", "", "amqp://me@127.0.0.1:1/x"),
        ("amqp://127.0.0.1:1", "--pairs 0", "--pairs takes 1 to 1000, not 0"),
        ("http://127.0.0.1", "", "does not begin with amqp://"),
    ] {
        let output = command(target, options).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{options}");
        let said = errors(&output);
        assert!(said.contains(complaint) && !said.contains("secret"), "{said}");
    }
}
