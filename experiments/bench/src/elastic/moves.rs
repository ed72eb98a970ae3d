//! `quelea bench elastic moves`: producers are moved from relay to relay while they send.

use quelea_elastic_client::ProducerStats;
use serde::Serialize;
use serde_json::json;

use crate::clock::{SECOND_NS, now_ns, seconds_between};
use crate::elastic::args::MovesArgs;
use crate::elastic::error::ElasticError;
use crate::elastic::fleet::{Fleet, FleetSize};
use crate::elastic::report::{order_words, short};
use crate::elastic::site::{Queue, Site};
use crate::elastic::tally::Order;
use crate::error::BenchError;
use crate::latency::{Latencies, Percentiles};
use crate::report::publish;
use crate::units::thousands;

/// How long one move may take.
const MOVE_S: u64 = 30;
/// Until what comes first is over: connections, the relays' first reports.
const SETTLE_NS: u64 = SECOND_NS;
/// How long latencies are taken before the moves.
const CALM_NS: u64 = 2 * SECOND_NS;
/// Between two lines of progress.
const PRINT_NS: u64 = 5 * SECOND_NS;

/// What was measured.
#[derive(Debug, Serialize)]
struct MovesReport {
    relays: u32,
    producers: u32,
    listeners: u32,
    size: usize,
    rate_per_s: f64,
    seconds: f64,
    interrupted: bool,
    /// Moves that were asked for and done.
    moves: u64,
    /// Moves that the directory gave up.
    aborted: u64,
    /// The time in which a producer had no relay to send to.
    pause: Percentiles,
    /// From hearing of the other relay to the first message that could go there; the old one serves
    /// meanwhile.
    switch: Percentiles,
    /// From asking the directory to the first message that could go to the other relay.
    whole: Percentiles,
    /// Of all messages before the moves, from when each was meant to leave.
    calm: Percentiles,
    /// The same while producers were moved: what receivers see of all pauses.
    latency: Percentiles,
    sent: u64,
    order: Order,
    gaps: u64,
}

pub(crate) fn run(args: &MovesArgs) -> Result<(), BenchError> {
    let size = FleetSize::of(&args.fleet)?;
    if !(2..=100).contains(&args.relays) || !(1..=10_000_000).contains(&args.moves) {
        let words = "--relays takes 2 to 100, --moves 1 to 10000000";
        return Err(BenchError::Arguments(words.to_owned()));
    }
    let site = Site::open(&args.site)?;
    let report = measure(args, size, &site)?;
    publish(&report.to_text(), &report, args.site.json.as_deref())?;
    // What was under way when it was interrupted is not lost.
    if report.interrupted { Ok(()) } else { Ok(report.order.check()?) }
}

fn measure(args: &MovesArgs, size: FleetSize, site: &Site) -> Result<MovesReport, ElasticError> {
    let definition = json!({ "relays_min": args.relays, "relays_max": args.relays });
    let queue = site.make_queue(&definition)?;
    queue.wait_for_relays(args.relays as usize)?;
    let mut fleet = Fleet::open(site, &queue.name, size)?;
    fleet.join_all(args.fleet.rate)?;
    site.pause(SETTLE_NS);
    fleet.take_latencies();
    site.pause(CALM_NS);
    let calm = fleet.take_latencies().percentiles();
    let [mut pauses, mut switches, mut wholes] = [(); 3].map(|()| Latencies::new());
    let (begin, mut printed_at, mut moves) = (now_ns(), now_ns(), 0);
    while moves < u64::from(args.moves) && !site.interrupt.is_set() {
        let producer = moves as usize % size.producers;
        let (done, whole_ns) = move_one(site, &queue, &fleet, producer)?;
        pauses.record(done.last_pause_us * 1_000);
        switches.record(done.last_move_us * 1_000);
        wholes.record(whole_ns);
        moves += 1;
        if now_ns() > printed_at + PRINT_NS && !args.site.quiet {
            printed_at = now_ns();
            eprintln!("{moves} moves, pause {}", short(&pauses.percentiles()));
        }
    }
    let seconds = seconds_between(begin, now_ns());
    let latency = fleet.take_latencies().percentiles();
    let aborted = queue.figure("moves_aborted")?;
    let outcome = fleet.finish()?;
    Ok(MovesReport {
        relays: args.relays,
        producers: args.fleet.producers,
        listeners: args.fleet.listeners,
        size: args.fleet.size,
        rate_per_s: args.fleet.rate,
        seconds,
        interrupted: site.interrupt.is_set(),
        moves,
        aborted,
        pause: pauses.percentiles(),
        switch: switches.percentiles(),
        whole: wholes.percentiles(),
        calm,
        latency,
        sent: outcome.sent,
        order: outcome.order,
        gaps: outcome.gaps,
    })
}

/// Moves a producer; returns what its session says of it, and how long all of it took, ns.
fn move_one(
    site: &Site,
    queue: &Queue<'_>,
    fleet: &Fleet<'_>,
    number: usize,
) -> Result<(ProducerStats, u64), ElasticError> {
    let producers = fleet.producers();
    let (_, id, _, before) = producers[number];
    let began = now_ns();
    let what = format!("the directory begins to move producer {number}");
    site.wait_for(&what, MOVE_S, || Ok(site.api.move_producer(&queue.name, id.0)?.then_some(())))?;
    let what = format!("producer {number} is at another relay");
    site.wait_for(&what, MOVE_S, || {
        fleet.check()?;
        let (.., after) = fleet.producers()[number];
        Ok((after.moves > before.moves).then(|| (after, now_ns() - began)))
    })
}

impl MovesReport {
    fn to_text(&self) -> String {
        let ended = if self.interrupted { ", interrupted" } else { "" };
        format!(
            "{} moves of {} producers among {} relays, {} listeners, {} B, {} messages/s\n  measured   {:.1} \
             s{ended}, {} moves given up\n  pause      {}\n  switch     {}\n  whole move {}\n  latency    {}\n  before     \
             {}\n  messages   {}\n",
            thousands(self.moves as f64),
            self.producers,
            self.relays,
            self.listeners,
            thousands(self.size as f64),
            thousands(self.rate_per_s),
            self.seconds,
            self.aborted,
            short(&self.pause),
            short(&self.switch),
            short(&self.whole),
            short(&self.latency),
            short(&self.calm),
            order_words(self.sent, &self.order, self.gaps),
        )
    }
}
