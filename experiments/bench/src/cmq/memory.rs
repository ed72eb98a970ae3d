//! `quelea bench cmq-memory`: what queues and destinations take when nothing happens.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use quelea_cmq::{Config, Dest, DestinationOptions, Endpoint, Key, MailboxOptions, Mode, Queue};
use serde::Serialize;

use crate::cmq::args::CmqMemoryArgs;
use crate::cmq::error::CmqError;
use crate::error::BenchError;
use crate::process::{ProcessError, sample};
use crate::report::publish;
use crate::units::thousands;

/// Messages through each queue before its second look.
const USE_MESSAGES: u64 = 10_000;
/// Bytes of each.
const USE_BYTES: usize = 64;
/// Nothing takes longer on this machine's own network.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug, Serialize)]
struct MemoryReport {
    queues: u32,
    /// Resident bytes of a queue with its socket, before and after messages went through it.
    fresh_queue_bytes: f64,
    used_queue_bytes: f64,
    destinations: u32,
    /// Resident bytes of a destination, before and after a message went to it.
    fresh_destination_bytes: f64,
    used_destination_bytes: f64,
}

pub(crate) fn run(args: &CmqMemoryArgs) -> Result<(), BenchError> {
    if args.queues == 0 || args.destinations == 0 {
        return Err(BenchError::Arguments("--queues and --destinations take 1 or more".to_owned()));
    }
    // One of each first, so that what all share is there.
    drop((queues(1)?, Destinations::new(1)?));
    let before = resident()?;
    let destinations = Destinations::new(args.destinations)?;
    let made = resident()?;
    destinations.use_each()?;
    let idle = resident()?;
    // The destinations stay: what they would free, the queues would take again.
    let queues = queues(args.queues)?;
    let fresh = resident()?;
    use_queues(&queues)?;
    let used = resident()?;
    drop((queues, destinations));
    let each = |bytes: u64, base: u64, count: u32| (bytes as f64 - base as f64) / f64::from(count);
    let report = MemoryReport {
        queues: args.queues,
        fresh_queue_bytes: each(fresh, idle, args.queues),
        used_queue_bytes: each(used, idle, args.queues),
        destinations: args.destinations,
        fresh_destination_bytes: each(made, before, args.destinations),
        used_destination_bytes: each(idle, before, args.destinations),
    };
    publish(&report.to_text(), &report, args.json.as_deref())
}

fn resident() -> Result<u64, ProcessError> {
    Ok(sample(std::process::id())?.resident_bytes)
}

fn here() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

fn bind() -> Result<Endpoint, CmqError> {
    Endpoint::bind(here(), Config::default())
        .map_err(|source| CmqError::Bind { address: here(), source })
}

fn queues(count: u32) -> Result<Vec<Queue>, CmqError> {
    (0..count).map(|_| Ok(bind()?.queue(0, MailboxOptions::default())?)).collect()
}

/// Sends messages through each and takes them out.
fn use_queues(queues: &[Queue]) -> Result<(), CmqError> {
    let sender = bind()?;
    let options =
        DestinationOptions { mode: Mode::ReliableOrdered, ..DestinationOptions::default() };
    let message = [b'x'; USE_BYTES];
    for queue in queues {
        let dest = sender.dest(Key::new(queue.endpoint().local_addr(), 0), options.clone())?;
        for _ in 0..USE_MESSAGES {
            dest.push(&message)?;
        }
        dest.flush();
        let mut left = USE_MESSAGES;
        while left > 0 {
            let popped = queue.pop_batch(usize::MAX, PATIENCE, |_| ()) as u64;
            if popped == 0 {
                return Err(CmqError::Ended("queue"));
            }
            left = left.saturating_sub(popped);
        }
        dest.close();
    }
    // Whoever measures here is the receiver; the sender must be gone.
    sender.close(PATIENCE).map_err(|_| CmqError::NotAcknowledged {
        messages: USE_MESSAGES,
        seconds: PATIENCE.as_secs(),
    })
}

/// Destinations at a socket that nobody reads.
struct Destinations {
    endpoint: Endpoint,
    dests: Vec<Dest>,
    _sink: UdpSocket,
}

impl Destinations {
    fn new(count: u32) -> Result<Self, CmqError> {
        let failed = |source| CmqError::Bind { address: here(), source };
        let sink = UdpSocket::bind(here()).map_err(failed)?;
        let to = sink.local_addr().map_err(failed)?;
        let endpoint = bind()?;
        let options = DestinationOptions { credit: false, ..DestinationOptions::default() };
        let dests: Result<Vec<Dest>, _> = (0..u64::from(count))
            .map(|mailbox| endpoint.dest(Key::new(to, mailbox), options.clone()))
            .collect();
        Ok(Self { endpoint, dests: dests?, _sink: sink })
    }

    /// Pushes one message to each destination, sent at once, so that all are idle again.
    fn use_each(&self) -> Result<(), CmqError> {
        for dest in &self.dests {
            dest.push(&[b'x'; USE_BYTES])?;
            dest.flush();
        }
        self.endpoint.flush();
        Ok(())
    }
}

impl MemoryReport {
    fn to_text(&self) -> String {
        format!(
            "CMQ, resident memory\n  queue        {:>8.1} kB fresh, {:.1} kB after {} messages ({} queues)\n  destination  {:>8.0} B fresh, {:.0} B after a message ({} destinations)\n",
            self.fresh_queue_bytes / 1e3,
            self.used_queue_bytes / 1e3,
            thousands(USE_MESSAGES as f64),
            self.queues,
            self.fresh_destination_bytes,
            self.used_destination_bytes,
            thousands(f64::from(self.destinations)),
        )
    }
}
