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

/// How often a service that is still starting is asked.
const START_STEP: Duration = Duration::from_millis(100);

/// The service.
#[derive(Debug)]
pub(crate) struct Service {
    pub endpoint: Endpoint,
    client: Client,
    attributes: BTreeMap<String, String>,
    pid: Option<u32>,
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
        let endpoint: Endpoint = args.endpoint.parse()?;
        let credentials = match (&args.access_key_id, &args.secret_access_key) {
            (Some(id), Some(secret)) => {
                let key = Credentials::new(id.clone(), secret.clone());
                Some(Credentials { region: args.region.clone(), ..key })
            }
            _ => None,
        };
        let mut client = Client::new(endpoint.clone(), credentials);
        let until = now_ns() + seconds_to_ns(args.connect_timeout_s);
        loop {
            match client.call("ListQueues", b"{}") {
                Err(Error::Connect { .. }) if now_ns() < until => std::thread::sleep(START_STEP),
                answer => break answer.map(drop)?,
            }
        }
        let pid = find_process(args, &endpoint)?;
        let attributes = args.queue_attributes.iter().cloned().collect();
        Ok(Self { endpoint, client, attributes, pid, queues: Vec::new(), run: now_ns() })
    }

    /// A client with a connection of its own, which tries every call just once.
    pub(crate) fn client(&self) -> Client {
        self.client.clone().with_retry(Retry::never())
    }

    /// A client with a connection of its own, which tries again.
    pub(crate) fn patient_client(&self) -> Client {
        self.client.clone()
    }

    /// Makes a queue of ours with the attributes of the command line and some more.
    pub(crate) fn create_queue(&mut self, more: &[(&str, String)]) -> Result<String, BenchError> {
        // A name is never used again, since services refuse that for a minute.
        let name = format!("quelea-bench-{:x}-{}", self.run & 0xffff_ffff, self.queues.len());
        let mut attributes = self.attributes.clone();
        attributes.extend(more.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        let url = self.client.create_queue(&name, &attributes)?;
        self.queues.push(url.clone());
        Ok(url)
    }

    /// Deletes the queues that were made.
    pub(crate) fn delete_queues(&mut self) -> Result<(), BenchError> {
        let mut outcome = Ok(());
        for url in std::mem::take(&mut self.queues) {
            let deleted = self.client.delete_queue(&url).map_err(BenchError::from);
            outcome = outcome.and(deleted);
        }
        outcome
    }

    /// The service's process now, if it is visible.
    pub(crate) fn sample(&self) -> Option<ProcessSample> {
        process::sample(self.pid?).ok()
    }

    /// What the process used since `before`.
    pub(crate) fn cost_since(&self, before: Option<ProcessSample>) -> Option<ServerCost> {
        let (before, after) = (before?, self.sample()?);
        Some(ServerCost {
            cpu_us: after.cpu_us.saturating_sub(before.cpu_us),
            resident_bytes: after.resident_bytes,
        })
    }
}

/// The process that was named, or the one that listens on the endpoint's port here.
fn find_process(args: &EndpointArgs, endpoint: &Endpoint) -> Result<Option<u32>, BenchError> {
    if let Some(pid) = args.pid {
        process::sample(pid)?;
        return Ok(Some(pid));
    }
    let addresses = (endpoint.host.as_str(), endpoint.port).to_socket_addrs();
    let is_here = addresses.is_ok_and(|mut found| found.all(|to| to.ip().is_loopback()));
    let found = if is_here {
        process::listening_pid(endpoint.port).map_err(|error| error.to_string())
    } else {
        Err("the service runs on another machine".to_owned())
    };
    if let Err(reason) = &found
        && !args.quiet
    {
        eprintln!("no CPU time or memory of the service: {reason}");
    }
    Ok(found.ok())
}
