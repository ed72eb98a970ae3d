//! The suite of AMQP benchmarks: three processes over a small broker, and over brokers that do not keep what they promise.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStderr, Command, Output, Stdio};

use serde_json::{Value, json};

use crate::small_broker::{Among, Fault, SmallBroker};

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

/// Starts a suite whose roles are elsewhere. Returns where it waits for them, and what it says after that.
fn awaiting(broker: &SmallBroker, options: &str) -> (Child, String, BufReader<ChildStderr>) {
    let mut suite = command(&broker.uri(), &format!("--listen 127.0.0.1:0 {options}"));
    let mut suite = suite.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(suite.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("waits for a publisher and a consumer at ");
    let address = address.unwrap_or_else(|| panic!("{line}")).to_owned();
    (suite, address, said)
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
        let broker = SmallBroker::start_with(fault, Among::Messages);
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
fn what_a_broker_does_to_a_reply_is_named() {
    let pings = "--experiments de-pp --messages 50";
    let fanout = "--experiments fe-spmc --fanouts 4 --messages 50";
    for (fault, options, complaint) in [
        (Fault::Damage, pings, "DE-PP, 64 B: 1 of 50 replies arrived with another body"),
        (Fault::Double, pings, "DE-PP, 64 B: 1 of 50 replies arrived out of order"),
        (Fault::Double, "--experiments de-pp --messages 5", "6 replies arrived of 5"),
        (Fault::Lose, pings, "no message moved for 3 s: 5 sent, 5 received"),
        (
            Fault::Damage,
            fanout,
            "FE-SPMC, fan-out 4, 64 B: 1 of 4 replies arrived with another body",
        ),
        (Fault::Lose, fanout, "no message moved for 3 s: 50 sent, 200 received"),
        (Fault::Double, fanout, "replies arrived"),
        // Consumers may overtake each other.
        (Fault::Swap, fanout, ""),
    ] {
        let broker = SmallBroker::start_with(fault, Among::Replies);
        let (report, output) = run(&broker, &format!("{options} --sizes 64 --stall-s 3"));
        let said = report["error"].as_str().unwrap_or_default();
        assert_eq!(output.status.success(), complaint.is_empty(), "{fault:?}: {said}");
        assert!(said.contains(complaint), "{fault:?}, {options}: {said}");
    }
}

/// A role that obeys the test, which says what a coordinator would say.
struct Ordered(Child);

impl Ordered {
    fn start(role: &str) -> Self {
        let mut command = Command::new(PROGRAM);
        command.args(["amqp-suite", "--role", role]).stdin(Stdio::piped()).stdout(Stdio::piped());
        Self(command.spawn().unwrap())
    }

    fn order(&mut self, order: &Value) {
        writeln!(self.0.stdin.as_mut().unwrap(), "{order}").unwrap();
    }

    /// Reads what it says next.
    fn word(&mut self) -> Value {
        let mut line = Vec::new();
        let out = self.0.stdout.as_mut().unwrap();
        while line.last() != Some(&b'\n') {
            let mut byte = [0];
            out.read_exact(&mut byte).unwrap();
            line.extend(byte);
        }
        serde_json::from_slice(&line).unwrap()
    }
}

#[test]
fn the_baselines_consumer_finds_what_a_relay_does_to_the_stream() {
    // A piece of two numbers: its own, and 8 bytes that both ends know.
    let number_1 = [0, 0, 0, 0, 0, 0, 0, 1];
    let known = (8..16_u64).map(|i| (i.wrapping_mul(0x9E37_79B9) >> 24) as u8);
    let piece: Vec<u8> = number_1.into_iter().chain(known).collect();
    let mut damaged = piece.clone();
    damaged[15] ^= 1;
    let relay = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut consumer = Ordered::start("consumer");
    assert_eq!(consumer.word()["Hello"]["role"], "consumer");
    let case =
        json!({"experiment": "baseline", "pairs": 1, "fanout": 1, "patterns": 1, "keys": "one"});
    let delivery =
        json!({"persistent": false, "confirm": 0, "prefetch": 0, "ack_every": null, "threads": 1});
    let target = relay.local_addr().unwrap().to_string();
    consumer.order(&json!({"Begin": {"case": case, "delivery": delivery, "target": target}}));
    let (mut stream, _) = relay.accept().unwrap();
    stream.read_exact(&mut [0]).unwrap();
    assert_eq!(consumer.word(), "Ready");
    let surplus = [&piece[..], &[7]].concat();
    for (sent, pieces, broken) in [(&piece, 1, 0), (&damaged, 1, 1), (&surplus, 2, 0)] {
        consumer.order(&json!({"Round": {"size": 16, "messages": 1}}));
        assert_eq!(consumer.word(), "Ready");
        stream.write_all(sent).unwrap();
        stream.read_exact(&mut [0]).unwrap();
        consumer.order(&json!("EndRound"));
        let audit = &consumer.word()["Consumed"]["audits"][0];
        let found = (&audit["ledger"]["count"], &audit["damaged"]);
        assert_eq!(found, (&json!(pieces), &json!(broken)));
    }
    consumer.order(&json!("Quit"));
    assert!(consumer.0.wait().unwrap().success());
}

#[test]
fn a_role_says_why_its_coordinator_has_no_orders_for_it_any_more() {
    let turned_away =
        json!({"TurnAway": {"why": "there is a consumer already"}}).to_string() + "\n";
    for (said_to_it, complaint) in [
        ("", "the coordinator ended, or its connection, before the suite did"),
        (&turned_away, "the coordinator does not take this role: there is a consumer already"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let options = format!("--role consumer --coordinator {address}");
        let mut command = command("amqp://127.0.0.1:1", &options);
        let role = command.stderr(Stdio::piped()).spawn().unwrap();
        let (mut coordinator, _) = listener.accept().unwrap();
        BufReader::new(&coordinator).read_line(&mut String::new()).unwrap();
        coordinator.write_all(said_to_it.as_bytes()).unwrap();
        drop(coordinator);
        let output = role.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(errors(&output).contains(complaint), "{}", errors(&output));
    }
}

#[test]
fn a_coordinator_says_why_it_does_not_take_a_role() {
    let broker = SmallBroker::start();
    let (suite, address, mut said) =
        awaiting(&broker, "--experiments de-spsc --sizes 8 --messages 50");
    let connect = |role: &str, version: &str| {
        let mut stream = TcpStream::connect(&address).unwrap();
        let hello = json!({"Hello": {"role": role, "version": version, "machine": ""}});
        writeln!(stream, "{hello}").unwrap();
        stream
    };
    let answer = |stream: TcpStream| {
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        let order: Value = serde_json::from_str(&line).unwrap();
        order["TurnAway"]["why"].as_str().unwrap().to_owned()
    };
    let own = env!("CARGO_PKG_VERSION");
    let expected = format!("it is of version 0.0.0, the coordinator of version {own}");
    assert_eq!(answer(connect("publisher", "0.0.0")), expected);
    let taken = connect("publisher", own);
    assert_eq!(answer(connect("publisher", own)), "there is a publisher already");
    let expected = "only a publisher and a consumer can be elsewhere";
    assert_eq!(answer(connect("relay", own)), expected);
    // One that is gone ends the suite, as one that has ended would.
    drop(taken);
    let consumer = connect("consumer", own);
    let mut errors = String::new();
    said.read_to_string(&mut errors).unwrap();
    assert!(errors.contains("the publisher ended"), "{errors}");
    assert!(!suite.wait_with_output().unwrap().status.success());
    drop(consumer);
}

#[test]
fn roles_that_were_started_elsewhere_are_awaited() {
    let broker = SmallBroker::start();
    let (suite, address, mut said) =
        awaiting(&broker, "--experiments baseline,de-spsc --sizes 8 --messages 50");
    let roles = ["publisher", "consumer"].map(|role| {
        let options = format!("--role {role} --coordinator {address} --connect-timeout-s 60");
        command(&broker.uri(), &options).spawn().unwrap()
    });
    let mut errors = String::new();
    said.read_to_string(&mut errors).unwrap();
    let output = suite.wait_with_output().unwrap();
    assert!(output.status.success(), "{errors}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    for case in [0, 1] {
        assert_eq!(report["cases"][case]["rounds"][0]["messages"], 50);
    }
    for mut role in roles {
        assert!(role.wait().unwrap().success());
    }
}

#[test]
fn a_broker_that_is_not_there_and_contradictions_are_refused_before_anything_starts() {
    for (target, options, complaint) in [
        ("amqp://me:secret@127.0.0.1:1/x", "", "amqp://me@127.0.0.1:1/x"),
        ("amqp://127.0.0.1:1", "--pairs 0", "--pairs takes 1 to 1000, not 0"),
        (
            "amqp://192.0.2.1",
            "--network 1gbit",
            "on this machine, such as 127.0.0.1, not 192.0.2.1",
        ),
        ("amqp://127.0.0.1:1", "--stall-s 0", "--stall-s takes 1 to 86400, not 0"),
        (
            "amqp://127.0.0.1:1",
            "--role relay --coordinator x:1",
            "publisher and consumer, not relay",
        ),
        ("http://127.0.0.1", "", "does not begin with amqp://"),
    ] {
        let output = command(target, options).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{options}");
        let said = errors(&output);
        assert!(said.contains(complaint) && !said.contains("secret"), "{said}");
    }
}
