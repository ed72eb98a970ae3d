//! The service under measurement: clients of it, queues of ours in it, its process.

use std::collections::BTreeMap;
use std::net::ToSocketAddrs;
use std::time::Duration;

use quelea_sqs_client::{Client, Credentials, Endpoint, Error, Retry};
use serde::Serialize;

use crate::clock::{now_ns, seconds_to_ns};
use crate::error::BenchError;
use crate::process::{self, ProcessSample};
use crate::sqs::args::EndpointArgs;
use crate::sqs::front_ends::FrontEnds;
use crate::sqs::lifeline::Lifeline;

/// How often a service that is still starting is asked.
const START_STEP: Duration = Duration::from_millis(100);

/// The service.
#[derive(Debug)]
pub(crate) struct Service {
    /// One client for each front-end, the first of which makes and deletes the queues.
    clients: Vec<Client>,
    attributes: BTreeMap<String, String>,
    /// As far as they are visible.
    pids: Vec<u32>,
    queues: Vec<String>,
    /// Distinguishes this run's queues from those of others.
    run: u64,
}

/// What the service's process used over a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct ServerCost {
    /// User and system time, µs.
    pub cpu_us: u64,
    /// Resident memory at the end, bytes.
    pub resident_bytes: u64,
}

impl Service {
    /// Connects, waiting for a service that is still starting, and finds its process.
    pub(crate) fn open(args: &EndpointArgs) -> Result<Self, BenchError> {
        let endpoints: Vec<Endpoint> =
            args.endpoint.iter().map(|url| url.parse()).collect::<Result<_, _>>()?;
        if endpoints.is_empty() {
            return Err(BenchError::Arguments("--endpoint names nothing".to_owned()));
        }
        let credentials = match (&args.access_key_id, &args.secret_access_key) {
            (Some(id), Some(secret)) => {
                let key = Credentials::new(id.clone(), secret.clone());
                Some(Credentials { region: args.region.clone(), ..key })
            }
            _ => None,
        };
        let until = now_ns() + seconds_to_ns(args.connect_timeout_s);
        let mut clients = Vec::with_capacity(endpoints.len());
        for endpoint in &endpoints {
            let mut client = Client::new(endpoint.clone(), credentials.clone());
            await_start(&mut client, until)?;
            clients.push(client);
        }
        let pids = find_processes(args, &endpoints)?;
        let attributes = args.queue_attributes.iter().cloned().collect();
        Ok(Self { clients, attributes, pids, queues: Vec::new(), run: now_ns() })
    }

    /// Returns the first front-end.
    pub(crate) fn endpoint(&self) -> &Endpoint {
        self.clients[0].endpoint()
    }

    /// Returns what says when none of the front-ends is there any more.
    pub(crate) fn lifeline(&self) -> Lifeline {
        Lifeline::new(self.clients.iter().map(|client| client.endpoint().clone()).collect())
    }

    /// Returns all front-ends, in words.
    pub(crate) fn endpoints(&self) -> String {
        let names: Vec<String> =
            self.clients.iter().map(|client| client.endpoint().to_string()).collect();
        names.join(", ")
    }

    /// Returns a client of one of the front-ends, counted round and round, with a connection of its
    /// own, which tries every call just once.
    pub(crate) fn client_of(&self, number: usize) -> Client {
        self.clients[number % self.clients.len()].clone().with_retry(Retry::never())
    }

    /// Returns a client with a connection of its own, which tries again.
    pub(crate) fn patient_client(&self) -> Client {
        self.clients[0].clone()
    }

    /// Returns a client whose calls go to all front-ends in turns; `number` is that of the thread.
    pub(crate) fn front_ends(&self, number: usize, retry: Retry, patience_s: f64) -> FrontEnds {
        let patience = Duration::from_secs_f64(patience_s);
        FrontEnds::new(self.clients.iter().cloned(), number, retry, patience)
    }

    /// Returns how many front-ends there are.
    pub(crate) const fn width(&self) -> usize {
        self.clients.len()
    }

    /// Makes a queue of ours with the attributes of the command line and some more.
    pub(crate) fn create_queue(&mut self, more: &[(&str, String)]) -> Result<String, BenchError> {
        // A name is never used again, since services refuse that for a minute.
        let is_fifo = more.iter().any(|(name, _)| *name == "FifoQueue");
        let suffix = if is_fifo { ".fifo" } else { "" };
        let name =
            format!("quelea-bench-{:x}-{}{suffix}", self.run & 0xffff_ffff, self.queues.len());
        let mut attributes = self.attributes.clone();
        attributes.extend(more.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        let url = self.clients[0].create_queue(&name, &attributes)?;
        self.queues.push(url.clone());
        Ok(url)
    }

    /// Has a queue stay when the others are deleted.
    pub(crate) fn keep_queue(&mut self, url: &str) {
        self.queues.retain(|one| one != url);
    }

    /// Deletes the queues that were made.
    pub(crate) fn delete_queues(&mut self) -> Result<(), BenchError> {
        let mut failed = None;
        for url in std::mem::take(&mut self.queues) {
            let Err(error) = self.clients[0].delete_queue(&url) else { continue };
            let is_gone = matches!(error, Error::Connect { .. });
            failed.get_or_insert(error);
            if is_gone {
                // Each of the others would be tried for seconds, too.
                break;
            }
        }
        failed.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Returns what the service's processes used until now, together, if they are visible.
    pub(crate) fn sample(&self) -> Option<ProcessSample> {
        let samples = self.pids.iter().filter_map(|pid| process::sample(*pid).ok());
        samples.reduce(|sum, one| ProcessSample {
            cpu_us: sum.cpu_us + one.cpu_us,
            resident_bytes: sum.resident_bytes + one.resident_bytes,
            peak_bytes: sum.peak_bytes + one.peak_bytes,
        })
    }

    /// Returns what they used since `before`.
    pub(crate) fn cost_since(&self, before: Option<ProcessSample>) -> Option<ServerCost> {
        let (before, after) = (before?, self.sample()?);
        Some(ServerCost {
            cpu_us: after.cpu_us.saturating_sub(before.cpu_us),
            resident_bytes: after.resident_bytes,
        })
    }
}

fn await_start(client: &mut Client, until: u64) -> Result<(), BenchError> {
    loop {
        match client.call("ListQueues", b"{}") {
            Err(Error::Connect { .. }) if now_ns() < until => std::thread::sleep(START_STEP),
            answer => return Ok(answer.map(drop)?),
        }
    }
}

/// Returns the processes that were named, or those that listen on the endpoints' ports here. All or
/// none.
fn find_processes(args: &EndpointArgs, endpoints: &[Endpoint]) -> Result<Vec<u32>, BenchError> {
    for pid in &args.pid {
        process::sample(*pid)?;
    }
    if !args.pid.is_empty() {
        return Ok(args.pid.clone());
    }
    let found: Result<Vec<u32>, String> = endpoints.iter().map(find_process).collect();
    if let Err(reason) = &found
        && !args.quiet
    {
        eprintln!("no CPU time or memory of the service: {reason}");
    }
    Ok(found.unwrap_or_default())
}

fn find_process(endpoint: &Endpoint) -> Result<u32, String> {
    let addresses = (endpoint.host.as_str(), endpoint.port).to_socket_addrs();
    if !addresses.is_ok_and(|mut found| found.all(|to| to.ip().is_loopback())) {
        return Err("the service runs on another machine".to_owned());
    }
    process::listening_pid(endpoint.port).map_err(|error| error.to_string())
}
