//! `quelea bench sqs-held`: whether messages that nobody may receive slow down those that anybody may.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use quelea_sqs_client::Error;
use serde::Serialize;

use crate::clock::{now_ns, seconds_between};
use crate::connections::allow_descriptors;
use crate::error::BenchError;
use crate::report::publish;
use crate::sqs::args::Kind;
use crate::sqs::args::{Held, SqsHeldArgs};
use crate::sqs::call;
use crate::sqs::phase::{Measured, Phase};
use crate::sqs::service::Service;
use crate::units::thousands;

/// SQS allows 120,000 in flight; the measured phase needs some of them itself.
const IN_FLIGHT_DEFAULT: u32 = 119_000;
const DELAYED_DEFAULT: u32 = 1_000_000;
/// Longest delay.
const DELAY_S: u32 = 900;
/// Longest visibility timeout.
const VISIBILITY_S: u32 = 43_200;

#[derive(Debug, Serialize)]
struct HeldReport {
    endpoint: String,
    held: &'static str,
    messages: u32,
    fill_seconds: f64,
    /// A fresh queue, before and after the full one.
    empty: Vec<Measured>,
    full: Vec<Measured>,
    /// Messages a second with the full queue against the mean of the empty ones.
    send_ratio: f64,
    receive_ratio: f64,
    /// Resident memory of the service with the full queue, bytes.
    resident_bytes: Option<u64>,
}

pub(crate) fn run(args: &SqsHeldArgs) -> Result<(), BenchError> {
    let messages = check(args)?;
    allow_descriptors(u64::from(args.connections))?;
    let mut service = Service::open(&args.service)?;
    let report = measure(args, messages, &mut service);
    let deleted = service.delete_queues();
    let report = report?;
    publish(&report.to_text(), &report, args.service.json.as_deref())?;
    deleted
}

fn check(args: &SqsHeldArgs) -> Result<u32, BenchError> {
    let refuse = |words: &str| Err(BenchError::Arguments(words.to_owned()));
    if !(1..=4_096).contains(&args.connections) {
        return refuse("--connections takes 1 to 4,096");
    }
    if !(1..=1_048_576).contains(&args.size) {
        return refuse("--size: a message has 1 byte to 1 MiB");
    }
    if !(args.duration_s > 0.0 && args.duration_s <= 3_600.0) {
        return refuse("--duration-s takes more than 0 and at most 3,600");
    }
    let default = match args.held {
        Held::InFlight => IN_FLIGHT_DEFAULT,
        Held::Delayed => DELAYED_DEFAULT,
    };
    match args.messages.unwrap_or(default) {
        0 => refuse("--messages takes at least 1"),
        messages => Ok(messages),
    }
}

fn measure(
    args: &SqsHeldArgs,
    messages: u32,
    service: &mut Service,
) -> Result<HeldReport, BenchError> {
    let progress = |text: &str| {
        if !args.service.quiet {
            eprintln!("{text}");
        }
    };
    progress("an empty queue:");
    let mut empty = send_and_receive(args, service, None)?;
    let full_queue = service.create_queue(&[])?;
    let begun = now_ns();
    fill(args, messages, service, &full_queue)?;
    let fill_seconds = seconds_between(begun, now_ns());
    let resident_bytes = service.sample().map(|sample| sample.resident_bytes);
    progress(&format!("a queue with {} messages held:", thousands(f64::from(messages))));
    let full = send_and_receive(args, service, Some(full_queue))?;
    progress("an empty queue again:");
    empty.extend(send_and_receive(args, service, None)?);
    let mean =
        |at: usize| f64::midpoint(empty[at].messages_per_s, empty[at + 2].messages_per_s).max(1e-9);
    Ok(HeldReport {
        endpoint: service.endpoints(),
        held: match args.held {
            Held::InFlight => "in flight",
            Held::Delayed => "delayed",
        },
        messages,
        fill_seconds,
        send_ratio: full[0].messages_per_s / mean(0),
        receive_ratio: full[1].messages_per_s / mean(1),
        empty,
        full,
        resident_bytes,
    })
}

/// Carries out the two phases, on the queue given or on a fresh one.
fn send_and_receive(
    args: &SqsHeldArgs,
    service: &mut Service,
    queue: Option<String>,
) -> Result<Vec<Measured>, BenchError> {
    let queues = [queue.map_or_else(|| service.create_queue(&[]), Ok)?];
    [Kind::Send, Kind::Receive]
        .into_iter()
        .map(|kind| {
            let phase = Phase {
                kind,
                queues: &queues,
                connections: args.connections,
                size: args.size,
                duration_s: args.duration_s,
            };
            let found = phase.run(service)?;
            if !args.service.quiet {
                eprintln!("{}", found.row());
            }
            Ok(found)
        })
        .collect()
}

/// Puts `messages` into the queue that nobody can receive for now.
fn fill(args: &SqsHeldArgs, messages: u32, service: &Service, url: &str) -> Result<(), BenchError> {
    let text = "x".repeat(args.size);
    let delay_s = if args.held == Held::Delayed { DELAY_S } else { 0 };
    let batch = call::send_batch(url, &text, delay_s);
    let batches = u64::from(messages).div_ceil(call::BATCH as u64);
    repeat(args.connections, service, batches, |client| {
        match call::refused(client.call("SendMessageBatch", &batch)?) {
            0 => Ok(1),
            refused => Err(call::refusal(refused).into()),
        }
    })?;
    if args.held == Held::InFlight {
        let receive = call::receive(url, call::BATCH, 1, Some(VISIBILITY_S));
        repeat(args.connections, service, batches * call::BATCH as u64, |client| {
            Ok(call::handles(client.call("ReceiveMessage", &receive)?).len() as u64)
        })?;
    }
    Ok(())
}

/// Lets all connections repeat a step until the steps have come to `wanted` together.
fn repeat(
    connections: u32,
    service: &Service,
    wanted: u64,
    step: impl Fn(&mut quelea_sqs_client::Client) -> Result<u64, Error> + Sync,
) -> Result<(), BenchError> {
    let taken = AtomicU64::new(0);
    let failed = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..connections {
            let mut client = service.patient_client();
            let (taken, failed, step) = (&taken, &failed, &step);
            scope.spawn(move || {
                // Claimed before it is done, so that no more is done than wanted.
                while taken.fetch_add(1, Ordering::Relaxed) < wanted {
                    match step(&mut client) {
                        Ok(0) => return, // Nothing is left.
                        Ok(done) => {
                            taken.fetch_add(done - 1, Ordering::Relaxed);
                        }
                        Err(error) => {
                            taken.store(wanted, Ordering::Relaxed);
                            let mut failed = failed.lock().expect("nobody panics with the lock");
                            failed.get_or_insert(error);
                        }
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().expect("nobody panics with the lock");
    failed.map_or(Ok(()), |error| Err(error.into()))
}

impl HeldReport {
    fn to_text(&self) -> String {
        let mut text = format!(
            "{}: {} messages {} (filled in {:.1} s)\n",
            self.endpoint,
            thousands(f64::from(self.messages)),
            self.held,
            self.fill_seconds
        );
        for (name, phases) in [("empty", &self.empty), ("full", &self.full)] {
            for phase in phases {
                text += &format!("  {name:<6} {}\n", phase.row());
            }
        }
        text += &format!(
            "  full against empty: send {:.2}, receive+delete {:.2}\n",
            self.send_ratio, self.receive_ratio
        );
        if let Some(bytes) = self.resident_bytes {
            text += &format!("  memory of the full service {:.1} MB\n", bytes as f64 / 1e6);
        }
        text
    }
}
