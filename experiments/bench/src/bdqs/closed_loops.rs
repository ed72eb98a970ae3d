//! `cpu` and `share-nothing`: what a call costs a front-end, in closed loops.

use crate::bdqs::args::BdqsLoadArgs;
use crate::bdqs::delaying_proxy::DelayingProxy;
use crate::bdqs::load::{Bench, service};
use crate::bdqs::site::FrontEnd;
use crate::bdqs::table::{Row, Section, Unit};
use crate::error::BenchError;
use crate::sqs::args::Kind;
use crate::sqs::phase::{Measured, Phase};
use crate::sqs::service::Service;

/// Of `cpu`.
const CONNECTIONS: u32 = 16;
const KINDS: [Kind; 4] = [Kind::Send, Kind::Receive, Kind::SendBatch, Kind::ReceiveBatch];
/// Of `share-nothing`, at each front-end.
const CONNECTIONS_EACH: u32 = 4;
const WIDTHS: [u32; 4] = [1, 2, 4, 8];
/// By how much the store's answers are late.
const DELAY_MS: u64 = 2;
const COST: &str = "CPU a call";

/// Measures a front-end and a broker with its own log, in turns.
pub(crate) fn cpu(bench: &mut Bench<'_>) -> Result<Section, BenchError> {
    let front_end = bench.site.front_ends(1)?;
    let broker = [bench.site.broker()?];
    let servers = [("a front-end", &front_end[..]), ("a broker", &broker[..])];
    let mut found: [Vec<Vec<Measured>>; 2] = [Vec::new(), Vec::new()];
    for _ in 0..bench.args.load.repeat {
        for ((_, servers), runs) in servers.iter().zip(&mut found) {
            runs.push(loops(bench, servers, (CONNECTIONS, &KINDS))?);
        }
    }
    let mut rows = Vec::new();
    for (at, kind) in KINDS.iter().enumerate() {
        let costs = found.each_ref().map(|runs| {
            runs.iter().filter_map(|run| run[at].server_cpu_us_per_call).collect::<Vec<f64>>()
        });
        let mut row = Row::new(kind.name());
        row.add("front-end, CPU a call", Unit::Microseconds, &costs[0]);
        row.add("broker, CPU a call", Unit::Microseconds, &costs[1]);
        let ratios: Vec<f64> =
            costs[0].iter().zip(&costs[1]).map(|(one, other)| one / other).collect();
        row.add("front-end of broker", Unit::Ratio, &ratios);
        for (runs, name) in found.iter().zip(["front-end, messages", "broker, messages"]) {
            let rates: Vec<f64> = runs.iter().map(|run| run[at].messages_per_s).collect();
            row.add(name, Unit::PerSecond, &rates);
        }
        rows.push(row);
    }
    let load =
        format!("{CONNECTIONS} connections, {CONNECTIONS} queues, {} B", bench.args.load.size);
    Ok(Section { experiment: "cpu", load, rows, ..Section::default() })
}

/// Measures more and more front-ends, each with connections and queues of its own, over one node
/// that answers late.
pub(crate) fn share_nothing(bench: &mut Bench<'_>) -> Result<Section, BenchError> {
    if bench.site.contact_points().len() > 1 {
        // The driver finds the other nodes, and goes around the proxy.
        bench.site.start_anew("share-nothing", 1)?;
    }
    let proxy = DelayingProxy::start(&bench.site.contact_points()[0], DELAY_MS)?;
    let args = &bench.args.load;
    let widths = BdqsLoadArgs::series(&args.widths, &WIDTHS, &[1, 2], args.smoke);
    let kinds = [Kind::Send, Kind::Receive];
    let mut rows: Vec<Row> = Vec::new();
    for kind in kinds {
        rows.extend(widths.iter().map(|width| Row::new(format!("{}, {width}", kind.name()))));
    }
    for (at, width) in widths.iter().enumerate() {
        let front_ends = bench.site.front_ends_over(&[proxy.address().to_owned()], 1, *width)?;
        let load = (CONNECTIONS_EACH * width, &kinds[..]);
        let runs: Vec<Vec<Measured>> =
            (0..args.repeat).map(|_| loops(bench, &front_ends, load)).collect::<Result<_, _>>()?;
        for (place, rows) in rows.chunks_mut(widths.len()).enumerate() {
            let of_runs = |of: &dyn Fn(&Measured) -> f64| {
                runs.iter().map(|run| of(&run[place])).collect::<Vec<f64>>()
            };
            let cost = |it: &Measured| it.server_cpu_us_per_call.unwrap_or(f64::NAN);
            rows[at].add("calls", Unit::PerSecond, &of_runs(&|it| it.calls_per_s));
            rows[at].add(COST, Unit::Microseconds, &of_runs(&cost));
            rows[at].add("a round, p50", Unit::Milliseconds, &of_runs(&|it| it.latency.p50_ms));
        }
    }
    for rows in rows.chunks_mut(widths.len()) {
        let first = (rows[0].mean("calls"), rows[0].mean(COST));
        for row in rows {
            let against = |name: &str, first: Option<f64>| Some(row.mean(name)? / first?);
            let ratios = (against("calls", first.0), against(COST, first.1));
            row.add("calls of the first row's", Unit::Ratio, &[ratios.0.unwrap_or(f64::NAN)]);
            row.add("CPU a call of the first row's", Unit::Ratio, &[ratios.1.unwrap_or(f64::NAN)]);
        }
    }
    let load = format!(
        "front-ends with {CONNECTIONS_EACH} connections and queues each, {} B, one node whose answers come {DELAY_MS} ms late",
        args.size
    );
    Ok(Section { experiment: "share-nothing", load, rows, ..Section::default() })
}

/// Runs closed loops on queues of their own, one for each connection.
fn loops(
    bench: &Bench<'_>,
    servers: &[FrontEnd],
    (connections, kinds): (u32, &[Kind]),
) -> Result<Vec<Measured>, BenchError> {
    let mut service = Service::open(&service(servers))?;
    let mut measured = Vec::with_capacity(kinds.len());
    let mut queues: Vec<String> = Vec::new();
    for kind in kinds {
        if queues.is_empty() || !kind.drains() {
            queues =
                (0..connections).map(|_| service.create_queue(&[])).collect::<Result<_, _>>()?;
        }
        let args = &bench.args.load;
        let phase = Phase {
            kind: *kind,
            queues: &queues,
            connections,
            size: args.size,
            duration_s: args.duration_s.unwrap_or_else(|| args.or_smoke(5.0, 0.5)),
        };
        let found = phase.run(&service)?;
        if !bench.args.quiet {
            eprintln!("{}", found.row());
        }
        measured.push(found);
    }
    service.delete_queues()?;
    Ok(measured)
}
