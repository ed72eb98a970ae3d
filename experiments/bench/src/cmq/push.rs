//! `quelea bench cmq-push`: what a push costs until its batch leaves, by the number of destinations.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use quelea_cmq::{Config, Dest, DestinationOptions, Endpoint, Key};
use serde::Serialize;

use crate::cmq::args::CmqPushArgs;
use crate::cmq::error::CmqError;
use crate::cmq::spread::Spread;
use crate::error::BenchError;
use crate::meter::{self, Scope};
use crate::report::publish;
use crate::units::thousands;

/// Bytes of a round's batches at most: a batch must not fill up, or its sending would count too.
const BATCH_BYTES_MAX: usize = 48 << 10;
/// Bytes of a round over all destinations.
const ROUND_BYTES_MAX: usize = 64 << 20;
/// Room for a round, whatever a small batch takes beside its bytes.
const OUTBOX_BYTES_MAX: usize = 2 << 30;
/// No batch leaves by its age while a round lasts.
const NEVER: Duration = Duration::from_secs(600);
/// The seed of the order in which destinations are pushed to.
const SEED: u64 = 7;

#[derive(Debug, Serialize)]
struct PushReport {
    size: usize,
    rows: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    destinations: usize,
    pushes_a_round: usize,
    /// CPU time of the pushing thread, ns a push.
    by_handle_ns: Spread,
    /// With the look-up of the key, as the paper's `cwPush`.
    by_key_ns: Spread,
    /// Handles and batches of 64 messages under one lock.
    by_batch_ns: Spread,
}

pub(crate) fn run(args: &CmqPushArgs) -> Result<(), BenchError> {
    if args.rounds == 0 || args.destinations.contains(&0) {
        return Err(BenchError::Arguments("--rounds and --destinations take 1 or more".to_owned()));
    }
    let rows: Result<Vec<Row>, CmqError> =
        args.destinations.iter().map(|count| measure(args, *count)).collect();
    let report = PushReport { size: args.size, rows: rows? };
    publish(&report.to_text(), &report, args.json.as_deref())
}

/// One endpoint that pushes to a socket that nobody reads.
struct Bench {
    endpoint: Endpoint,
    /// In the order of pushing.
    dests: Vec<Dest>,
    message: Vec<u8>,
    /// Pushes to each destination in a round.
    each: usize,
    _sink: UdpSocket,
}

fn measure(args: &CmqPushArgs, count: usize) -> Result<Row, CmqError> {
    let bench = Bench::new(args.size, count)?;
    let pushes = count * bench.each;
    let sample = |round: &dyn Fn(&Bench) -> Result<(), CmqError>| -> Result<Spread, CmqError> {
        let mut costs = Vec::new();
        // The first round makes what the later ones use again.
        for number in 0..=args.rounds {
            let begun = meter::now(Scope::Thread);
            round(&bench)?;
            let cost = meter::now(Scope::Thread) - begun;
            bench.endpoint.flush();
            if number > 0 {
                costs.push(cost as f64 / pushes as f64);
            }
        }
        Ok(Spread::of(costs).expect("there is a round at least"))
    };
    Ok(Row {
        destinations: count,
        pushes_a_round: pushes,
        by_handle_ns: sample(&Bench::by_handle)?,
        by_key_ns: sample(&Bench::by_key)?,
        by_batch_ns: sample(&Bench::by_batch)?,
    })
}

impl Bench {
    fn new(size: usize, count: usize) -> Result<Self, CmqError> {
        let here = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let failed = |source| CmqError::Bind { address: here, source };
        let sink = UdpSocket::bind(here).map_err(failed)?;
        let to = sink.local_addr().map_err(failed)?;
        let config =
            Config { timeout: NEVER, outbox_bytes_max: OUTBOX_BYTES_MAX, ..Config::default() };
        let endpoint = Endpoint::bind(here, config).map_err(failed)?;
        let options = DestinationOptions { credit: false, ..DestinationOptions::default() };
        let dests: Result<Vec<Dest>, _> = (0..count as u64)
            .map(|mailbox| endpoint.dest(Key::new(to, mailbox), options.clone()))
            .collect();
        let mut dests = dests?;
        fastrand::Rng::with_seed(SEED).shuffle(&mut dests);
        let framed = size + 5;
        let each = (ROUND_BYTES_MAX / count / framed).clamp(1, (BATCH_BYTES_MAX / framed).max(1));
        Ok(Self { endpoint, dests, message: vec![b'x'; size], each, _sink: sink })
    }

    /// Pushes to all destinations, round and round, so that no destination is in the cache because
    /// it was just used.
    fn by_handle(&self) -> Result<(), CmqError> {
        for _ in 0..self.each {
            for dest in &self.dests {
                dest.push(&self.message)?;
            }
        }
        Ok(())
    }

    fn by_key(&self) -> Result<(), CmqError> {
        for _ in 0..self.each {
            for dest in &self.dests {
                self.endpoint.push(dest.key(), &self.message)?;
            }
        }
        Ok(())
    }

    fn by_batch(&self) -> Result<(), CmqError> {
        let mut left = self.each;
        while left > 0 {
            let count = left.min(64);
            for dest in &self.dests {
                let batch = std::iter::repeat_n(&self.message, count);
                dest.push_batch(batch).map_err(|failed| failed.error)?;
            }
            left -= count;
        }
        Ok(())
    }
}

impl PushReport {
    fn to_text(&self) -> String {
        let head = format!(
            "CMQ, push of {} B until the batch leaves; CPU of the pushing thread, ns a push, medians ± MAD\n  {:>12} {:>18} {:>18} {:>18}\n",
            self.size, "destinations", "by handle", "by key", "in batches"
        );
        let show = |spread: &Spread| format!("{:.1} ± {:.1}", spread.median, spread.mad);
        self.rows.iter().fold(head, |text, row| {
            let cells = [&row.by_handle_ns, &row.by_key_ns, &row.by_batch_ns].map(show);
            let count = thousands(row.destinations as f64);
            text + &format!("  {count:>12} {:>18} {:>18} {:>18}\n", cells[0], cells[1], cells[2])
        })
    }
}
