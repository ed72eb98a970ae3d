//! A phase of a load: every connection makes the same calls in a closed loop until the time is up or
//! nothing is left to receive.

use std::sync::Barrier;

use quelea_sqs_client::{Client, Error};
use serde::Serialize;

use crate::clock::{now_ns, seconds_between, seconds_to_ns};
use crate::error::BenchError;
use crate::latency::{Latencies, Percentiles};
use crate::process;
use crate::sqs::args::Kind;
use crate::sqs::call;
use crate::sqs::service::{ServerCost, Service};
use crate::units::{milliseconds, thousands};

/// One phase.
pub(crate) struct Phase<'a> {
    pub kind: Kind,
    /// Queues that the connections are spread over.
    pub queues: &'a [String],
    pub connections: u32,
    pub size: usize,
    pub duration_s: f64,
}

/// What a phase measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Measured {
    pub phase: &'static str,
    /// Bytes of a message's body.
    pub size: usize,
    /// From the first call to the last answer.
    pub seconds: f64,
    /// Messages sent, or received and deleted, or all three.
    pub messages: u64,
    pub calls: u64,
    pub messages_per_s: f64,
    pub calls_per_s: f64,
    /// Of a round: one call, or two, or three.
    pub latency: Percentiles,
    /// Rounds that failed.
    pub errors: u64,
    pub first_error: Option<String>,
    pub server: Option<ServerCost>,
    pub server_cpu_us_per_call: Option<f64>,
    pub generator_cpu_us_per_call: f64,
}

/// What one connection counted.
struct Counts {
    latencies: Latencies,
    messages: u64,
    calls: u64,
    errors: u64,
    first_error: Option<String>,
    first_ns: u64,
    last_ns: u64,
}

/// The calls of one connection, put together beforehand where they never change.
struct Round {
    kind: Kind,
    client: Client,
    url: String,
    send: Vec<u8>,
    receive: Vec<u8>,
}

/// What a round moved.
struct Moved {
    messages: u64,
    calls: u64,
}

impl Phase<'_> {
    pub(crate) fn run(&self, service: &Service) -> Result<Measured, BenchError> {
        let ready = Barrier::new(self.connections as usize);
        let own = process::sample(std::process::id()).unwrap_or_default();
        let before = service.sample();
        let counts: Vec<Counts> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..self.connections as usize)
                .map(|index| {
                    let url = self.queues[index % self.queues.len()].clone();
                    let round = Round::new(self.kind, service.client_of(index), url, self.size);
                    let ready = &ready;
                    scope.spawn(move || round.repeat(ready, self.duration_s))
                })
                .collect();
            let join = |thread: std::thread::ScopedJoinHandle<'_, Counts>| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            threads.into_iter().map(join).collect()
        });
        let server = service.cost_since(before);
        let own_after = process::sample(std::process::id()).unwrap_or_default();
        Ok(self.sum(&counts, server, own_after.cpu_us.saturating_sub(own.cpu_us)))
    }

    fn sum(&self, counts: &[Counts], server: Option<ServerCost>, own_cpu_us: u64) -> Measured {
        let total = |of: fn(&Counts) -> u64| counts.iter().map(of).sum::<u64>();
        let (messages, calls) = (total(|c| c.messages), total(|c| c.calls));
        let begun = counts.iter().map(|c| c.first_ns).min().unwrap_or(0);
        let ended = counts.iter().map(|c| c.last_ns).max().unwrap_or(0);
        let seconds = seconds_between(begun, ended).max(1e-9);
        let mut latencies = Latencies::new();
        counts.iter().for_each(|c| latencies.merge(&c.latencies));
        let per_call = |us: u64| us as f64 / calls.max(1) as f64;
        Measured {
            phase: self.kind.name(),
            size: self.size,
            seconds,
            messages,
            calls,
            messages_per_s: messages as f64 / seconds,
            calls_per_s: calls as f64 / seconds,
            latency: latencies.percentiles(),
            errors: total(|c| c.errors),
            first_error: counts.iter().find_map(|c| c.first_error.clone()),
            server,
            server_cpu_us_per_call: server.map(|cost| per_call(cost.cpu_us)),
            generator_cpu_us_per_call: per_call(own_cpu_us),
        }
    }
}

impl Round {
    fn new(kind: Kind, client: Client, url: String, size: usize) -> Self {
        let text = "x".repeat(size);
        let max = if kind == Kind::ReceiveBatch { call::BATCH } else { 1 };
        let send = match kind {
            Kind::SendBatch => call::send_batch(&url, &text, 0),
            _ => call::send(&url, &text, 0),
        };
        let receive = call::receive(&url, max, 0, None);
        Self { kind, client, url, send, receive }
    }

    fn repeat(mut self, ready: &Barrier, duration_s: f64) -> Counts {
        ready.wait();
        let first_ns = now_ns();
        let until = first_ns + seconds_to_ns(duration_s);
        let mut counts = Counts {
            latencies: Latencies::new(),
            messages: 0,
            calls: 0,
            errors: 0,
            first_error: None,
            first_ns,
            last_ns: first_ns,
        };
        let mut begun = first_ns;
        while begun < until {
            let outcome = self.once();
            let ended = now_ns();
            match outcome {
                Ok(Moved { messages: 0, .. }) => break, // The queue is drained.
                Ok(moved) => {
                    counts.latencies.record_since(begun, ended);
                    counts.messages += moved.messages;
                    counts.calls += moved.calls;
                    counts.last_ns = ended;
                }
                Err(error) => {
                    counts.errors += 1;
                    counts.first_error.get_or_insert_with(|| error.to_string());
                    // A service that refuses everything must not be asked for ever.
                    if matches!(error, Error::Connect { .. }) {
                        break;
                    }
                }
            }
            begun = ended;
        }
        counts
    }

    fn once(&mut self) -> Result<Moved, Error> {
        match self.kind {
            Kind::Send => {
                self.client.call("SendMessage", &self.send)?;
                Ok(Moved { messages: 1, calls: 1 })
            }
            Kind::SendBatch => {
                let answer = self.client.call("SendMessageBatch", &self.send)?;
                match call::refused(answer) {
                    0 => Ok(Moved { messages: call::BATCH as u64, calls: 1 }),
                    refused => Err(call::refusal(refused).into()),
                }
            }
            Kind::Receive | Kind::ReceiveBatch => self.receive(),
            Kind::Mix => {
                self.client.call("SendMessage", &self.send)?;
                // Another connection may have taken it; then there is one the less to delete.
                let moved = self.receive()?;
                Ok(Moved { messages: 1, calls: 1 + moved.calls })
            }
        }
    }

    fn receive(&mut self) -> Result<Moved, Error> {
        let handles = call::handles(self.client.call("ReceiveMessage", &self.receive)?);
        match handles.as_slice() {
            [] => return Ok(Moved { messages: 0, calls: 1 }),
            [handle] if self.kind != Kind::ReceiveBatch => {
                self.client.call("DeleteMessage", &call::delete(&self.url, handle))?;
            }
            handles => {
                let body = call::delete_batch(&self.url, handles);
                let refused = call::refused(self.client.call("DeleteMessageBatch", &body)?);
                if refused > 0 {
                    return Err(call::refusal(refused).into());
                }
            }
        }
        Ok(Moved { messages: handles.len() as u64, calls: 2 })
    }
}

impl Measured {
    /// Returns one line of a table.
    pub(crate) fn row(&self) -> String {
        let ms = milliseconds;
        let mut row = format!(
            "{:<28} {:>7} B  {:>9} msg/s  {:>8} calls/s  p50 {:>8}  p99 {:>8}",
            self.phase,
            thousands(self.size as f64),
            thousands(self.messages_per_s),
            thousands(self.calls_per_s),
            ms(self.latency.p50_ms),
            ms(self.latency.p99_ms),
        );
        if let Some(cost) = self.server_cpu_us_per_call {
            row += &format!("  server {cost:>6.1} µs/call");
        }
        row += &format!("  generator {:.1} µs/call", self.generator_cpu_us_per_call);
        if let Some(error) = &self.first_error {
            row += &format!("  {} ERRORS, first: {error}", thousands(self.errors as f64));
        }
        row
    }
}
