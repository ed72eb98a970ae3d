//! What an endpoint costs while nothing goes on. A program of its own: others' threads and memory
//! would be counted too.

#![allow(clippy::unwrap_used)]
#![cfg(target_os = "linux")]

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use quelea_cmq::{Config, DestinationOptions, Endpoint, Key, MailboxOptions, Mode};

const LONG: Duration = Duration::from_secs(30);

/// The paper's queue had 80 kB of heap; ours may have this in all, its thread's stack included.
const QUEUE_BYTES_MAX: usize = 300_000;

/// Returns the threads that serve sockets.
fn threads() -> Vec<PathBuf> {
    let all = fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
    all.filter(|task| {
        fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == "cmq-io")
    })
    .collect()
}

/// Returns how often each of them went to sleep.
fn sleeps() -> Vec<u64> {
    let of = |task: &PathBuf| {
        let status = fs::read_to_string(task.join("status")).unwrap();
        let line = status.lines().find(|line| line.starts_with("voluntary_ctxt")).unwrap();
        line.split_whitespace().last().unwrap().parse().unwrap()
    };
    threads().iter().map(of).collect()
}

fn resident_bytes() -> usize {
    let statm = fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4_096
}

fn open() -> Endpoint {
    Endpoint::bind("127.0.0.1:0", Config::default()).unwrap()
}

#[test]
fn nothing_wakes_and_little_is_kept_while_nothing_is_due() {
    // Traffic first, in a mode that has timers, and of both kinds of poppers.
    let (a, b) = (open(), open());
    let queue = b.queue(0, MailboxOptions::default()).unwrap();
    let options = DestinationOptions { mode: Mode::ReliableOrdered, ..Default::default() };
    let dest = a.dest(Key::new(b.local_addr(), 0), options).unwrap();
    for _ in 0..100 {
        dest.push(&[1; 100]).unwrap();
        dest.flush();
        assert!(queue.pop_timeout(LONG).is_some());
    }
    assert!(dest.wait_acknowledged(LONG).is_acknowledged());

    // The passing of time is shown by another endpoint, whose mailbox stays empty. As soon as the
    // threads were not woken for a while, they are never woken again.
    let clock = open();
    let never = clock.queue(0, MailboxOptions::default()).unwrap();
    let pass = || assert!(never.pop_timeout(Duration::from_millis(500)).is_none());
    // What was sent and received was so by this thread: theirs may not have run yet.
    let began = Instant::now();
    while threads().len() < 3 {
        assert!(began.elapsed() < LONG, "{:?} of three threads", threads());
        std::thread::yield_now();
    }
    let mut before = sleeps();
    let still = (0..60).any(|_| {
        pass();
        let now = sleeps();
        // The third thread is the clock's own.
        let same = now[..2] == before[..2];
        before = now;
        same
    });
    assert!(still, "the threads still wake: {before:?}");
    pass();
    pass();
    assert_eq!(sleeps()[..2], before[..2], "they woke though nothing was due");

    // Memory: of many endpoints with a queue each, all of which had traffic once.
    const QUEUES: usize = 20;
    let start = resident_bytes();
    let queues: Vec<_> = (0..QUEUES)
        .map(|_| {
            let endpoint = open();
            let queue = endpoint.queue(0, MailboxOptions::default()).unwrap();
            let dest =
                a.dest(Key::new(endpoint.local_addr(), 0), DestinationOptions::default()).unwrap();
            dest.push(b"hello").unwrap();
            dest.flush();
            assert!(queue.pop_timeout(LONG).is_some());
            queue
        })
        .collect();
    let each = resident_bytes().saturating_sub(start) / QUEUES;
    println!("an idle queue takes {each} bytes");
    assert!(each <= QUEUE_BYTES_MAX, "an idle queue takes {each} bytes");
    drop(queues);
}
