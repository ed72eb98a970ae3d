//! `quelea bench elastic paper`: the workload of the EQS paper, §V-A. Producers join one after the other,
//! the queue grows to carry them; then they leave.

mod figures;
mod report;

use serde_json::{Value, json};

use crate::clock::{SECOND_NS, now_ns, seconds_between, seconds_to_ns};
use crate::elastic::args::{FleetArgs, PaperQueueArgs};
use crate::elastic::error::ElasticError;
use crate::elastic::fleet::{Fleet, FleetSize};
use crate::elastic::paper::report::{Bin, PaperReport, RelayBin};
use crate::elastic::site::{Queue, RelayView, Site};
use crate::error::BenchError;
use crate::latency::Latencies;
use crate::report::publish;

/// How often the directory is asked what its relays do: it hears from them once a second.
const ASK_NS: u64 = SECOND_NS;
/// Points of a figure, as in the paper: one for each minute of its run.
const MINUTE_S: f64 = 60.0;

pub(crate) fn run(args: &PaperQueueArgs) -> Result<(), BenchError> {
    let size = check(args)?;
    let site = Site::open(&args.site)?;
    let report = measure(args, size, &site)?;
    if let Some(directory) = &args.figures {
        figures::write(directory, &report).map_err(|source| BenchError::File {
            doing: "cannot write the figures to",
            path: directory.clone(),
            source,
        })?;
    }
    publish(&report.to_text(), &report, args.site.json.as_deref())?;
    // What was under way when it was interrupted is not lost.
    if report.interrupted { Ok(()) } else { Ok(report.order.check()?) }
}

fn check(args: &PaperQueueArgs) -> Result<FleetSize, BenchError> {
    let refuse = |words: String| Err(BenchError::Arguments(words));
    if !(1.0..=3_600.0).contains(&args.speed) {
        return refuse(format!("--speed takes 1 to 3600, not {}", args.speed));
    }
    if !(1.0..=6e6).contains(&args.per_min) {
        return refuse(format!("--per-min takes 1 to 6000000, not {}", args.per_min));
    }
    for (name, minutes) in [("--join-s", args.join_s / MINUTE_S), ("--send-min", args.send_min)] {
        if !(0.0..=1_440.0).contains(&minutes) {
            return refuse(format!("{name} is more than a day, or negative"));
        }
    }
    let (producers, listeners, size) = (args.producers, args.listeners, args.size);
    FleetSize::of(&FleetArgs { producers, listeners, size, rate: 1.0 })
}

fn measure(
    args: &PaperQueueArgs,
    size: FleetSize,
    site: &Site,
) -> Result<PaperReport, ElasticError> {
    let definition = json!({
        "policy": args.policy.name(),
        "relays_min": 1,
        "relays_max": args.relays_max,
        "bytes_in_per_s_max": (args.limit_mbit * 1e6 / 8.0) as u64,
    });
    let queue = site.make_queue(&definition)?;
    let fleet = Fleet::open(site, &queue.name, size)?;
    let mut run = PaperRun::new(args, site, &queue, fleet);
    run.carry()?;
    run.report()
}

/// A run on its way.
struct PaperRun<'a> {
    args: &'a PaperQueueArgs,
    site: &'a Site,
    queue: &'a Queue<'a>,
    fleet: Fleet<'a>,
    begin_ns: u64,
    /// The machine's time of day at the beginning: the directory's events have it.
    begin_unix_ms: u64,
    left: usize,
    joined: usize,
    bins: Vec<Bin>,
    open: OpenBin,
    /// Of the whole run, and of the time in which all producers sent.
    latencies: Latencies,
    full: Latencies,
}

/// A bin that is being filled.
#[derive(Default)]
struct OpenBin {
    at_ns: u64,
    sent: u64,
    delivered: u64,
    overtaken: u64,
    looks: u32,
    relays: Vec<RelayBin>,
    relays_up: u64,
    was_full: bool,
}

impl<'a> PaperRun<'a> {
    fn new(
        args: &'a PaperQueueArgs,
        site: &'a Site,
        queue: &'a Queue<'a>,
        fleet: Fleet<'a>,
    ) -> Self {
        let begin_ns = now_ns();
        Self {
            args,
            site,
            queue,
            fleet,
            begin_ns,
            begin_unix_ms: unix_ms(),
            left: 0,
            joined: 0,
            bins: Vec::new(),
            open: OpenBin { at_ns: begin_ns, ..OpenBin::default() },
            latencies: Latencies::new(),
            full: Latencies::new(),
        }
    }

    fn carry(&mut self) -> Result<(), ElasticError> {
        let args = self.args;
        let join_ns = seconds_to_ns(args.join_s / args.speed);
        let send_ns = seconds_to_ns(args.send_min * MINUTE_S / args.speed);
        let bin_ns = seconds_to_ns(MINUTE_S / args.speed).max(SECOND_NS);
        let producers = args.producers as usize;
        let mut ask_ns = self.begin_ns;
        while self.left < producers && !self.site.interrupt.is_set() {
            let now = now_ns();
            let passed = now - self.begin_ns;
            if self.joined < producers && passed >= join_ns * self.joined as u64 {
                self.fleet.join(args.per_min / MINUTE_S)?;
                self.joined += 1;
            } else if self.joined > self.left && passed >= join_ns * self.left as u64 + send_ns {
                self.fleet.leave(self.left)?;
                self.left += 1;
            }
            if now >= ask_ns {
                self.look()?;
                ask_ns += ASK_NS;
            }
            if now >= self.open.at_ns + bin_ns {
                self.close_bin(now);
            }
            self.fleet.check()?;
            self.site.pause(SECOND_NS / 100);
        }
        self.close_bin(now_ns());
        Ok(())
    }

    fn look(&mut self) -> Result<(), ElasticError> {
        let relays = self.queue.relays()?;
        self.open.looks += 1;
        for relay in &relays {
            self.open.add(relay);
        }
        self.open.relays_up = relays.iter().filter(|relay| relay.up).count() as u64;
        Ok(())
    }

    fn close_bin(&mut self, now: u64) {
        let (sent, delivered) = (self.fleet.sent(), self.fleet.delivered());
        let overtaken = self.fleet.overtaken();
        let latencies = self.fleet.take_latencies();
        let is_full = self.joined == self.args.producers as usize && self.left == 0;
        let per_min = MINUTE_S / seconds_between(self.open.at_ns, now).max(1e-9);
        // A bin in which a producer joined or left is not one of full load.
        let full = is_full && self.open.was_full;
        if full {
            self.full.merge(&latencies);
        }
        self.latencies.merge(&latencies);
        let looks = f64::from(self.open.looks.max(1));
        let mut relays = std::mem::take(&mut self.open.relays);
        for relay in &mut relays {
            relay.messages_in_per_min /= looks;
            relay.messages_out_per_min /= looks;
            relay.producers /= looks;
        }
        let found = latencies.percentiles();
        let bin = Bin {
            minute: seconds_between(self.begin_ns, now) / MINUTE_S,
            sent_per_min: (sent - self.open.sent) as f64 * per_min,
            delivered_per_min: (delivered - self.open.delivered) as f64 * per_min,
            overtaken: overtaken.saturating_sub(self.open.overtaken),
            full,
            latency_mean_ms: found.mean_ms,
            latency_deviation_ms: latencies.deviation_ms(),
            latency_p99_ms: found.p99_ms,
            relays_up: self.open.relays_up,
            relays,
        };
        if !self.args.site.quiet {
            eprintln!("{}", bin.to_text());
        }
        self.bins.push(bin);
        let relays_up = self.open.relays_up;
        let was_full = is_full;
        self.open = OpenBin {
            at_ns: now,
            sent,
            delivered,
            overtaken,
            relays_up,
            was_full,
            ..OpenBin::default()
        };
    }

    fn report(self) -> Result<PaperReport, ElasticError> {
        let interrupted = self.site.interrupt.is_set();
        let seconds = seconds_between(self.begin_ns, now_ns());
        let (moves, aborted) =
            (self.queue.figure("moves_done")?, self.queue.figure("moves_aborted")?);
        let events = self.site.api.events(&self.queue.name)?;
        let began = self.begin_unix_ms;
        let run = (self.bins, self.latencies.percentiles(), self.full.percentiles());
        let outcome = self.fleet.finish()?;
        let mut report = PaperReport::new(self.args, run, &outcome);
        (report.seconds, report.interrupted) = (seconds, interrupted);
        (report.moves, report.moves_aborted) = (moves, aborted);
        report.events =
            events.as_array().into_iter().flatten().map(|it| event(it, began)).collect();
        Ok(report)
    }
}

impl OpenBin {
    fn add(&mut self, relay: &RelayView) {
        let known = self.relays.iter().position(|known| known.id == relay.id);
        let at = known.unwrap_or_else(|| {
            self.relays.push(RelayBin { id: relay.id, ..RelayBin::default() });
            self.relays.len() - 1
        });
        let sum = &mut self.relays[at];
        sum.messages_in_per_min += relay.messages_in_per_s * MINUTE_S;
        sum.messages_out_per_min += relay.messages_out_per_s * MINUTE_S;
        sum.producers += relay.producers as f64;
    }
}

fn event(event: &Value, began_unix_ms: u64) -> report::Happened {
    let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
    let at_ms = event["unix_ms"].as_u64().unwrap_or_default();
    report::Happened {
        minute: at_ms.saturating_sub(began_unix_ms) as f64 / 1e3 / MINUTE_S,
        kind: text("kind"),
        subject: text("subject"),
        reason: text("reason"),
    }
}

fn unix_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    u64::try_from(since.unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}
