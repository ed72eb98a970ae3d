//! `poll`: how soon a long poll is answered that waits at another front-end than the message comes to, on an idle cluster.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use quelea_sqs_client::{Client, Error};

use crate::bdqs::load::{Bench, service};
use crate::bdqs::table::{Row, Section, Unit};
use crate::clock::now_ns;
use crate::error::BenchError;
use crate::latency::Latencies;
use crate::sqs::call;
use crate::sqs::service::Service;

const ROUNDS: u32 = 300;
const ROUNDS_SMOKE: u32 = 10;
/// The longest that SQS has.
const WAIT_S: u32 = 20;
/// An answer takes so much longer at most.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between an answer and the next message, so that the poll waits again: the least, and what is drawn on top.
const PAUSE_MS: (u64, u64) = (100, 200);

pub(crate) fn run(bench: &mut Bench<'_>) -> Result<Section, BenchError> {
    let front_ends = bench.front_ends()?;
    let rounds = bench.args.load.or_smoke(ROUNDS, ROUNDS_SMOKE);
    let mut service = Service::open(&service(&front_ends))?;
    let mut rows = Vec::new();
    for (label, waits_at) in [("at another front-end", 1), ("at the same front-end", 0)] {
        let runs: Result<Vec<_>, BenchError> = (0..bench.args.load.repeat)
            .map(|_| {
                let url = service.create_queue(&[])?;
                wake(&service, &url, (waits_at, rounds))
            })
            .collect();
        let runs = runs?;
        let mut row = Row::new(label);
        let of_runs = |of: &dyn Fn(&Waking) -> f64| runs.iter().map(of).collect::<Vec<f64>>();
        row.add("p50", Unit::Milliseconds, &of_runs(&|run| run.latencies.percentiles().p50_ms));
        row.add("p99", Unit::Milliseconds, &of_runs(&|run| run.latencies.percentiles().p99_ms));
        row.add("max", Unit::Milliseconds, &of_runs(&|run| run.latencies.percentiles().max_ms));
        row.add("send p50", Unit::Milliseconds, &of_runs(&|run| run.sends.percentiles().p50_ms));
        row.add("missed", Unit::Count, &of_runs(&|run| run.missed as f64));
        rows.push(row);
    }
    service.delete_queues()?;
    let load = format!("{rounds} messages, from the call of SendMessage to the poll's answer");
    Ok(Section { experiment: "poll", load, rows, ..Section::default() })
}

/// What was found.
struct Waking {
    latencies: Latencies,
    /// Of the calls that send.
    sends: Latencies,
    missed: u64,
}

fn wake(
    service: &Service,
    url: &str,
    (waits_at, rounds): (usize, u32),
) -> Result<Waking, BenchError> {
    let (arrived, arrivals) = channel();
    let is_over = &AtomicBool::new(false);
    let poller = service.client_of(waits_at);
    thread::scope(|scope| {
        let polling = scope.spawn(move || poll(poller, url, &arrived, is_over));
        let waking = send(service.client_of(0), url, &arrivals, rounds);
        is_over.store(true, Ordering::Relaxed);
        // One more message ends the last poll.
        let mut client = service.client_of(waits_at);
        let ended = client.call("SendMessage", &call::send(url, "0", 0)).map(drop);
        let polled = polling.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let waking = waking?;
        polled?;
        ended?;
        Ok(waking)
    })
}

/// Passes on when each message arrived, and when it had been sent, which is its body.
fn poll(
    mut client: Client,
    url: &str,
    arrived: &Sender<(u64, u64)>,
    is_over: &AtomicBool,
) -> Result<(), Error> {
    let receive = call::receive(url, 1, WAIT_S, None);
    while !is_over.load(Ordering::Relaxed) {
        let answer = client.call_patiently("ReceiveMessage", &receive, PATIENCE * 2)?;
        let now = now_ns();
        let found = call::messages(answer)
            .map_err(|source| Error::Answer { action: "ReceiveMessage", source })?;
        let Some(message) = found.first() else { continue };
        let (sent_ns, handle) =
            (message.body.parse().unwrap_or(0), message.receipt_handle.to_string());
        // Nobody listens any more at the end.
        let _ = arrived.send((sent_ns, now));
        client.call("DeleteMessage", &call::delete(url, &handle))?;
    }
    Ok(())
}

fn send(
    mut client: Client,
    url: &str,
    arrivals: &Receiver<(u64, u64)>,
    rounds: u32,
) -> Result<Waking, BenchError> {
    let mut waking = Waking { latencies: Latencies::new(), sends: Latencies::new(), missed: 0 };
    for _ in 0..rounds {
        thread::sleep(Duration::from_millis(PAUSE_MS.0 + fastrand::u64(..PAUSE_MS.1)));
        let begun = now_ns();
        client.call("SendMessage", &call::send(url, &begun.to_string(), 0))?;
        waking.sends.record_since(begun, now_ns());
        loop {
            match arrivals.recv_timeout(PATIENCE) {
                Ok((sent_ns, arrived_ns)) if sent_ns == begun => {
                    waking.latencies.record_since(begun, arrived_ns);
                    break;
                }
                Ok(_) => {} // An earlier one, twice.
                Err(RecvTimeoutError::Timeout) => {
                    waking.missed += 1;
                    break;
                }
                // Its error is the reason.
                Err(RecvTimeoutError::Disconnected) => return Ok(waking),
            }
        }
    }
    Ok(waking)
}
