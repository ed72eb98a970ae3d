//! The example worker as a process of its own, killed in the middle of its work.

use std::collections::{BTreeMap, HashSet};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use quelea_sqs_client::{Client, OutgoingMessage};

use crate::small_service::SmallService;

/// Returns the path of `target/debug/examples/worker`, which cargo builds before the tests run.
fn example() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().and_then(|deps| deps.parent()).unwrap().join("examples/worker")
}

fn start(service: &SmallService, milliseconds: u32) -> Child {
    Command::new(example())
        .args(["--endpoint", &service.endpoint(), "--queue", "q"])
        .args(["--work-ms", &milliseconds.to_string(), "--visibility-timeout-s", "3"])
        .args(["--concurrency", "4"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn what_a_killed_worker_had_in_hand_is_processed_by_another() {
    let service = SmallService::start();
    let mut client = Client::new(service.endpoint().parse().unwrap(), None);
    let url = client.create_queue("q", &BTreeMap::new()).unwrap();
    for number in 0..120 {
        client.send(&url, &OutgoingMessage::new(number.to_string())).unwrap();
    }
    // It never finishes anything beyond what it is given time for.
    let mut doomed = start(&service, 100);
    let mut lines = BufReader::new(doomed.stdout.take().unwrap()).lines();
    let mut done: HashSet<String> = HashSet::new();
    while done.len() < 5 {
        let line = lines.next().unwrap().unwrap();
        done.extend(line.strip_prefix("done ").map(str::to_owned));
    }
    doomed.kill().unwrap(); // SIGKILL
    doomed.wait().unwrap();
    done.extend(
        lines.map_while(Result::ok).filter_map(|line| Some(line.strip_prefix("done ")?.to_owned())),
    );
    assert!(service.messages("q") > 0, "it was killed before the end");

    let mut second = start(&service, 0);
    service.wait_for_messages("q", 0);
    second.kill().unwrap();
    let output = second.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    done.extend(text.lines().filter_map(|line| Some(line.strip_prefix("done ")?.to_owned())));
    assert_eq!(done, (0..120).map(|number| number.to_string()).collect());
}
