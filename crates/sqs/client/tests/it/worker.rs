//! The worker loop within one process.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use quelea_sqs_client::{Client, OutgoingMessage, Tally, Task, Verdict, Worker, WorkerError};

use crate::small_service::{SILENCE, SmallService, TOO_LONG};

/// Returns a service with a queue `q` of `count` messages, and a client of it.
fn filled(count: usize) -> (SmallService, Client, String) {
    let service = SmallService::start();
    let mut client = Client::new(service.endpoint().parse().unwrap(), None);
    let url = client.create_queue("q", &BTreeMap::new()).unwrap();
    for number in 0..count {
        client.send(&url, &OutgoingMessage::new(number.to_string())).unwrap();
    }
    (service, client, url)
}

/// Runs `worker` until its queue is empty.
fn run_dry(
    service: &SmallService,
    worker: Worker,
    handler: impl Fn(&Task) -> Verdict + Sync,
) -> Tally {
    let stop = worker.stop_handle();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| worker.run(&handler));
        service.wait_for_messages("q", 0);
        stop.stop();
        running.join().unwrap().unwrap()
    })
}

#[test]
fn every_message_is_processed_and_deleted() {
    let (service, client, url) = filled(50);
    let seen = Mutex::new(Vec::new());
    let tally = run_dry(&service, Worker::new(client, url).concurrency(4), |task| {
        seen.lock().unwrap().push(task.message().body.parse::<usize>().unwrap());
        Verdict::Done
    });
    let mut seen = seen.into_inner().unwrap();
    seen.sort_unstable();
    assert_eq!(seen, (0..50).collect::<Vec<_>>());
    assert_eq!((tally.received, tally.done, tally.failed), (50, 50, 0));
}

#[test]
fn no_more_than_the_concurrency_is_handled_at_once() {
    let (service, client, url) = filled(40);
    let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    run_dry(&service, Worker::new(client, url).concurrency(3), |_| {
        most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        std::thread::yield_now();
        now.fetch_sub(1, Ordering::SeqCst);
        Verdict::Done
    });
    assert!((1..=3).contains(&most.into_inner()));
}

#[test]
fn a_failed_message_comes_again_and_a_panic_is_a_failure() {
    let (service, client, url) = filled(5);
    let tally = run_dry(&service, Worker::new(client, url).concurrency(2), |task| {
        match (task.message().body.as_str(), task.message().receive_count()) {
            ("1", 1 | 2) => Verdict::Failed,
            ("3", 1) => panic!("on purpose"),
            _ => Verdict::Done,
        }
    });
    assert_eq!((tally.received, tally.done, tally.failed), (8, 5, 3));
}

/// The visibility timeout is one second; the handler takes more than two of them.
#[test]
fn a_message_stays_invisible_while_its_handler_works() {
    let (service, client, url) = filled(1);
    let worker = Worker::new(client, url).concurrency(2).visibility_timeout_seconds(1);
    let calls = || service.calls("ChangeMessageVisibilityBatch");
    let handled = AtomicUsize::new(0);
    let tally = run_dry(&service, worker, |task| {
        handled.fetch_add(1, Ordering::SeqCst);
        // Seven extensions by a third of the timeout each are more than two timeouts.
        while calls() < 7 && task.is_ours() {
            std::thread::yield_now();
        }
        Verdict::Done
    });
    assert_eq!((handled.into_inner(), tally.received, tally.lost), (1, 1, 0));
}

/// That no answer comes is seen after a sixth of the timeout.
#[test]
fn an_extension_that_is_not_answered_costs_no_message() {
    let (service, client, url) = filled(3);
    service.fail("ChangeMessageVisibilityBatch", &[SILENCE]);
    let worker = Worker::new(client, url).concurrency(3).visibility_timeout_seconds(3);
    let calls = || service.calls("ChangeMessageVisibilityBatch");
    let tally = run_dry(&service, worker, |task| {
        while calls() < 5 && task.is_ours() {
            std::thread::yield_now();
        }
        Verdict::Done
    });
    assert_eq!((tally.received, tally.done, tally.lost), (3, 3, 0));
}

#[test]
fn an_answer_that_is_too_long_does_not_end_the_worker() {
    let (service, client, url) = filled(3);
    service.fail("ReceiveMessage", &[TOO_LONG]);
    let tally = run_dry(&service, Worker::new(client, url), |_| Verdict::Done);
    assert_eq!((tally.received, tally.done), (3, 3));
}

#[test]
fn a_handler_learns_that_its_message_is_lost() {
    let (service, client, url) = filled(1);
    service.fail("ChangeMessageVisibilityBatch", &[400; 3]);
    let worker = Worker::new(client, url).visibility_timeout_seconds(1);
    let tally = run_dry(&service, worker, |task| {
        while task.is_ours() {
            std::thread::yield_now();
        }
        Verdict::Done
    });
    assert_eq!((tally.lost, tally.done), (1, 1));
}

#[test]
fn a_message_whose_deletion_failed_is_not_processed_again() {
    let (service, client, url) = filled(1);
    service.fail("DeleteMessage", &[403]);
    let worker = Worker::new(client, url).visibility_timeout_seconds(1);
    let handled = AtomicUsize::new(0);
    let tally = run_dry(&service, worker, |_| {
        handled.fetch_add(1, Ordering::SeqCst);
        Verdict::Done
    });
    assert_eq!(handled.into_inner(), 1);
    assert_eq!((tally.received, tally.not_deleted, tally.repeated), (2, 1, 1));
}

#[test]
fn a_service_that_is_away_for_a_while_is_waited_for() {
    let (service, client, url) = filled(3);
    service.fail("ReceiveMessage", &[500, 503, 500]);
    service.fail("DeleteMessage", &[500, 500]);
    let tally = run_dry(&service, Worker::new(client, url), |_| Verdict::Done);
    assert_eq!((tally.received, tally.done), (3, 3));
}

#[test]
fn a_queue_that_is_gone_ends_the_worker() {
    let (_service, mut client, url) = filled(0);
    client.delete_queue(&url).unwrap();
    let error = Worker::new(client, url).run(|_| Verdict::Done).unwrap_err();
    assert!(matches!(error, WorkerError::Receive { .. }), "{error}");
    assert!(error.to_string().contains("QueueDoesNotExist"), "{error}");
}

#[test]
fn a_stop_finishes_what_is_handled_and_gives_back_the_rest() {
    let (service, client, url) = filled(10);
    let worker = Worker::new(client.clone(), url.clone()).concurrency(2);
    let stop = worker.stop_handle();
    let tally = worker.run(|_| {
        stop.stop();
        Verdict::Done
    });
    let done = tally.unwrap().done;
    assert!((1..=2).contains(&done), "{done}");
    assert_eq!(service.messages("q") as u64, 10 - done);
    // None of the others is held back by a visibility timeout.
    let rest = run_dry(&service, Worker::new(client, url), |_| Verdict::Done);
    assert_eq!(rest.received, 10 - done);
}

#[test]
fn settings_out_of_their_range_are_refused() {
    let (_service, client, url) = filled(0);
    let worker = || Worker::new(client.clone(), url.clone());
    let cases = [
        (worker().concurrency(0), "1 to 1024 handlers"),
        (worker().wait_seconds(21), "0 to 20 seconds"),
        (worker().visibility_timeout_seconds(0), "1 to 43200 seconds"),
    ];
    for (worker, expected) in cases {
        let error = worker.run(|_| Verdict::Done).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_back_off_keeps_a_failed_message_away() {
    let (service, client, url) = filled(1);
    let worker = Worker::new(client, url).back_off(Duration::from_secs(1), Duration::from_secs(9));
    let tally = run_dry(&service, worker, |task| {
        if task.message().receive_count() == 1 { Verdict::Failed } else { Verdict::Done }
    });
    assert_eq!((tally.failed, tally.done), (1, 1));
    assert_eq!(service.visibility_changes(), [Duration::from_secs(1)]);
}
