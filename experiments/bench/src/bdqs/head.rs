//! `head`: how long the head of a queue takes to read when many messages have passed through it, beside a fresh queue's.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use quelea_sqs_client::{Client, Error};

use crate::bdqs::load::{Bench, service};
use crate::bdqs::table::{Row, Section, Unit};
use crate::clock::{now_ns, seconds_between};
use crate::error::BenchError;
use crate::latency::{Latencies, Percentiles};
use crate::sqs::call::{self, BATCH};
use crate::sqs::service::Service;
use crate::units::thousands;

const PASSED: u32 = 1_000_000;
const PASSED_SMOKE: u32 = 500;
/// Threads that send ten, receive ten, delete ten.
const MOVERS: usize = 24;
/// Reads of each head, in turns.
const READS: u32 = 300;
const READS_SMOKE: u32 = 20;
/// What was read is not seen again.
const VISIBILITY_S: u32 = 43_200;

pub(crate) fn run(bench: &mut Bench<'_>) -> Result<Section, BenchError> {
    let front_ends = bench.front_ends()?;
    let args = &bench.args.load;
    let passed = args.passed.unwrap_or_else(|| args.or_smoke(PASSED, PASSED_SMOKE));
    let reads = args.or_smoke(READS, READS_SMOKE);
    let mut service = Service::open(&service(&front_ends))?;
    let mut runs = Vec::new();
    for _ in 0..args.repeat {
        let urls = [service.create_queue(&[])?, service.create_queue(&[])?];
        let begun = now_ns();
        let progress = Progress::new(passed, bench.args.quiet);
        pass_through(&service, &urls[0], passed, args.size, &progress)?;
        let seconds = seconds_between(begun, now_ns());
        if !bench.args.quiet {
            let count = thousands(f64::from(passed));
            eprintln!("{count} messages passed through in {seconds:.0} s");
        }
        for url in &urls {
            fill(&service, url, reads, args.size)?;
        }
        let [used, fresh] = read_in_turns(&service, &urls, reads)?.map(|head| head.percentiles());
        runs.push(Heads { used, fresh, passed_per_s: f64::from(passed) / seconds });
    }
    service.delete_queues()?;
    let of_runs = |of: fn(&Heads) -> f64| runs.iter().map(of).collect::<Vec<f64>>();
    let mut row = Row::new(format!("after {} messages", thousands(f64::from(passed))));
    row.add("passed", Unit::PerSecond, &of_runs(|run| run.passed_per_s));
    row.add("fresh p50", Unit::Milliseconds, &of_runs(|run| run.fresh.p50_ms));
    row.add("fresh p99", Unit::Milliseconds, &of_runs(|run| run.fresh.p99_ms));
    row.add("used p50", Unit::Milliseconds, &of_runs(|run| run.used.p50_ms));
    row.add("used p99", Unit::Milliseconds, &of_runs(|run| run.used.p99_ms));
    row.add("used of fresh, p50", Unit::Ratio, &of_runs(|run| run.used.p50_ms / run.fresh.p50_ms));
    let load = format!("{reads} reads of one message from each, in turns, {} B", args.size);
    Ok(Section { experiment: "head", load, rows: vec![row], ..Section::default() })
}

/// Reads of both heads.
struct Heads {
    used: Percentiles,
    fresh: Percentiles,
    /// Messages that passed through before.
    passed_per_s: f64,
}

/// What is said while messages pass through, which takes the better part of an hour: each twentieth of them.
struct Progress {
    count: u32,
    is_quiet: bool,
    begun: u64,
    shown: AtomicU32,
}

impl Progress {
    const STEPS: u32 = 20;

    fn new(count: u32, is_quiet: bool) -> Self {
        Self { count, is_quiet, begun: now_ns(), shown: AtomicU32::new(0) }
    }

    fn show(&self, left: u32) {
        let passed = self.count.saturating_sub(left);
        let step = passed / (self.count / Self::STEPS).max(1);
        if self.is_quiet || self.shown.fetch_max(step, Ordering::Relaxed) >= step {
            return;
        }
        let seconds = seconds_between(self.begun, now_ns());
        let left_s = seconds / f64::from(passed.max(1)) * f64::from(left);
        eprintln!(
            "{} messages after {seconds:.0} s, {left_s:.0} s to go",
            thousands(f64::from(passed))
        );
    }
}

/// Sends, receives and deletes so many messages, none of which is left.
fn pass_through(
    service: &Service,
    url: &str,
    count: u32,
    size: usize,
    progress: &Progress,
) -> Result<(), BenchError> {
    let left = &AtomicU32::new(count.div_ceil(BATCH as u32));
    let outcomes: Vec<Result<(), Error>> = thread::scope(|scope| {
        let movers: Vec<_> = (0..MOVERS)
            .map(|number| {
                let client = service.client_of(number);
                scope.spawn(move || move_through(client, url, left, size, progress))
            })
            .collect();
        let join = |mover: thread::ScopedJoinHandle<'_, Result<(), Error>>| {
            mover.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        movers.into_iter().map(join).collect()
    });
    outcomes.into_iter().collect::<Result<(), Error>>()?;
    let mut client = service.client_of(0);
    while receive_and_delete(&mut client, url, 1)? > 0 {}
    Ok(())
}

fn move_through(
    mut client: Client,
    url: &str,
    left: &AtomicU32,
    size: usize,
    progress: &Progress,
) -> Result<(), Error> {
    let body = call::send_batch(url, &"x".repeat(size), 0);
    let take = || left.try_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
    while take().is_ok() {
        client.call("SendMessageBatch", &body)?;
        receive_and_delete(&mut client, url, 0)?;
        progress.show(left.load(Ordering::Relaxed) * BATCH as u32);
    }
    Ok(())
}

/// Receives and deletes up to ten messages. Returns how many there were.
fn receive_and_delete(client: &mut Client, url: &str, wait_s: u32) -> Result<usize, Error> {
    let receive = call::receive(url, BATCH, wait_s, None);
    let handles = call::handles(client.call("ReceiveMessage", &receive)?);
    if !handles.is_empty() {
        client.call("DeleteMessageBatch", &call::delete_batch(url, &handles))?;
    }
    Ok(handles.len())
}

fn fill(service: &Service, url: &str, count: u32, size: usize) -> Result<(), BenchError> {
    let mut client = service.patient_client();
    let body = call::send_batch(url, &"x".repeat(size), 0);
    for _ in 0..count.div_ceil(BATCH as u32) {
        client.call("SendMessageBatch", &body)?;
    }
    Ok(())
}

/// Reads a message of each queue in turns, and deletes it. Returns each queue's times of the reads.
fn read_in_turns(
    service: &Service,
    urls: &[String; 2],
    reads: u32,
) -> Result<[Latencies; 2], BenchError> {
    let mut client = service.patient_client();
    let mut heads = [Latencies::new(), Latencies::new()];
    for read in 0..reads as usize {
        for turn in 0..2 {
            // Neither is always the first.
            let place = (read + turn) % 2;
            let receive = call::receive(&urls[place], 1, 0, Some(VISIBILITY_S));
            let begun = now_ns();
            let handles = call::handles(client.call("ReceiveMessage", &receive)?);
            heads[place].record_since(begun, now_ns());
            for handle in handles {
                client.call("DeleteMessage", &call::delete(&urls[place], &handle))?;
            }
        }
    }
    Ok(heads)
}
