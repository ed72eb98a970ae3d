//! `quelea bench connections`: what idle connections cost the broker.

use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::Serialize;

use crate::args::ConnectionsArgs;
use crate::client::Client;
use crate::clock::{SECOND_NS, now_ns, seconds_between};
use crate::error::BenchError;
use crate::interrupt::Interrupt;
use crate::process::{self, ProcessSample};
use crate::report::publish;
use crate::session::open;
use crate::setup::CHANNEL;
use crate::units::thousands;

/// File descriptors beside the connections.
const DESCRIPTORS_BESIDE: u64 = 64;

/// What the connections cost.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct ConnectionsReport {
    /// Product and version, as the broker says.
    pub broker: String,
    /// Idle connections, each with an open channel.
    pub connections: usize,
    /// Connections opened a second, one after the other.
    pub connections_per_s: f64,
    /// Resident memory of the broker before, with one connection, bytes.
    pub resident_before_bytes: u64,
    /// Resident memory with all of them, bytes.
    pub resident_after_bytes: u64,
    /// The difference for each connection, bytes.
    pub bytes_per_connection: f64,
    /// CPU time of the broker for opening one, µs.
    pub broker_cpu_us_per_connection: f64,
}

pub(crate) fn run(args: &ConnectionsArgs) -> Result<(), BenchError> {
    allow_descriptors(u64::from(args.count))?;
    let (admin, observer) = open(&args.broker)?;
    // Not before: a signal ends what waits for a broker at once.
    let interrupt = Interrupt::install();
    let uri = args.broker.parsed_uri()?;
    let Some(pid) = observer.broker_pid else {
        let reason = observer.hidden_because.unwrap_or_default();
        return Err(BenchError::Arguments(format!("the broker's memory is not visible: {reason}")));
    };
    std::thread::sleep(Duration::from_secs_f64(args.settle_s.clamp(0.0, 3600.0)));
    let before = process::sample(pid)?;
    let start = now_ns();
    let mut clients = Vec::new();
    let mut shown = start;
    for _ in 0..args.count {
        let mut client = Client::connect(&uri)?;
        client.open_channel(CHANNEL)?;
        clients.push(client);
        let now = now_ns();
        if now > shown + SECOND_NS && !args.broker.quiet {
            shown = now;
            let seconds = seconds_between(start, now);
            eprintln!("{seconds:5.0} s  {} connections", thousands(clients.len() as f64));
        }
        if interrupt.is_set() {
            break;
        }
    }
    let seconds = seconds_between(start, now_ns());
    std::thread::sleep(Duration::from_secs_f64(args.settle_s.clamp(0.0, 3600.0)));
    let after = process::sample(pid)?;
    let product = admin.client.product().to_owned();
    let report = report(product, clients.len(), seconds, before, after);
    publish(&to_text(&report), &report, args.broker.json.as_deref())?;
    for client in clients {
        client.close()?;
    }
    admin.close()
}

/// Raises this process' limit of open files as far as it may.
pub(crate) fn allow_descriptors(connections: u64) -> Result<(), BenchError> {
    let wanted = connections + DESCRIPTORS_BESIDE;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= wanted) {
        return Ok(());
    }
    let raised = Rlimit { current: Some(wanted), maximum: limit.maximum };
    setrlimit(Resource::Nofile, raised).map_err(|_| {
        let maximum = limit.maximum.map_or_else(|| "no".to_owned(), |maximum| maximum.to_string());
        BenchError::Arguments(format!(
            "{connections} connections need {wanted} open files, but this user may have {maximum} \
             (ulimit -Hn)"
        ))
    })
}

fn report(
    broker: String,
    connections: usize,
    seconds: f64,
    before: ProcessSample,
    after: ProcessSample,
) -> ConnectionsReport {
    let count = connections.max(1) as f64;
    ConnectionsReport {
        broker,
        connections,
        connections_per_s: connections as f64 / seconds.max(1e-9),
        resident_before_bytes: before.resident_bytes,
        resident_after_bytes: after.resident_bytes,
        bytes_per_connection: (after.resident_bytes as f64 - before.resident_bytes as f64) / count,
        broker_cpu_us_per_connection: (after.cpu_us - before.cpu_us) as f64 / count,
    }
}

fn to_text(report: &ConnectionsReport) -> String {
    format!(
        "{}: {} idle connections with a channel each\n  \
         memory     {:.1} MB before, {:.1} MB after, {:.1} kB a connection\n  \
         opening    {}/s one after the other, {:.0} µs CPU of the broker each\n",
        report.broker,
        thousands(report.connections as f64),
        report.resident_before_bytes as f64 / 1e6,
        report.resident_after_bytes as f64 / 1e6,
        report.bytes_per_connection / 1e3,
        thousands(report.connections_per_s),
        report.broker_cpu_us_per_connection
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_is_shared_out_over_the_connections() {
        let sample =
            |resident_bytes, cpu_us| ProcessSample { cpu_us, resident_bytes, peak_bytes: 0 };
        let before = sample(10_000_000, 1_000);
        let found = report("x".to_owned(), 500, 2.0, before, sample(18_000_000, 51_000));
        assert!((found.bytes_per_connection - 16_000.0).abs() < 1e-6);
        assert!((found.broker_cpu_us_per_connection - 100.0).abs() < 1e-6);
        assert!((found.connections_per_s - 250.0).abs() < 1e-6);
    }

    #[test]
    fn a_few_descriptors_are_always_allowed() {
        allow_descriptors(10).unwrap();
    }
}
