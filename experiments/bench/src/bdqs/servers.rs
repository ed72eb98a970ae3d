//! `servers` and `front-ends`: processes that fail at exponential times while clients send and receive (BDQS §V-D, figure 8).
//! A server is a node of Cassandra and the front-end beside it, which fail together.

mod failing;

use std::sync::atomic::Ordering;
use std::thread;

use fastrand::Rng;
use quelea_plot::{Plot, Series};

use crate::bdqs::args::BdqsLoadArgs;
use crate::bdqs::error::BdqsError;
use crate::bdqs::load::{
    Bench, CONSISTENCY, GIVEN_UP, LAMBDA, LOSS, Load, OUT_OF_ORDER, PAPER, RECEIVE_MEAN, RECEIVES,
    SEND_MEAN, SEND_P99, SENDS,
};
use crate::bdqs::servers::failing::{Fault, Rhythm, Server, Signals, Suffered};
use crate::bdqs::site::FrontEnd;
use crate::bdqs::table::{Row, Section, Unit};
use crate::error::BenchError;
use crate::sqs::args::SqsArgs;
use crate::sqs::experiment::Moment;
use crate::sqs::report::ExperimentReport;

const MTTF_S: [f64; 4] = [10.0, 100.0, 1_000.0, 10_000.0];
const FRONT_END_MTTF_S: [f64; 1] = [10.0];
const SMOKE_MTTF_S: [f64; 1] = [1.5];
/// Of the row that `cap` has.
const CAP_MTTF_S: f64 = 100.0;
/// Runs of a row that has too few failures.
const RUNS_MAX: usize = 100;
/// A client goes on to the next front-end after that.
const PATIENCE_S: f64 = 0.5;
/// Queues are made before the first failure, but a busy machine takes a while.
const CONNECT_TIMEOUT_S: f64 = 60.0;

/// What fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Servers,
    FrontEnds,
}

pub(crate) fn run(bench: &mut Bench<'_>, kind: Kind) -> Result<Section, BenchError> {
    let args = &bench.args.load;
    let load = load(bench);
    let (experiment, usual_mttf_s): (_, &[f64]) = match kind {
        Kind::Servers => ("servers", &MTTF_S),
        Kind::FrontEnds => ("front-ends", &FRONT_END_MTTF_S),
    };
    let named = BdqsLoadArgs::series(&args.mttf_s, usual_mttf_s, &SMOKE_MTTF_S, args.smoke);
    let fault = fault(args, kind);
    if kind == Kind::Servers {
        bench.site.nodes(experiment)?;
    }
    let (mut rows, mut points) = (Vec::new(), [Vec::new(), Vec::new()]);
    for mttf_s in std::iter::once(f64::INFINITY).chain(named) {
        let label = if mttf_s.is_finite() {
            format!("MTTF = {mttf_s} s")
        } else {
            "no failures".to_owned()
        };
        let row = row_of(bench, (&label, load, &|usual| usual), (fault, mttf_s))?;
        for (line, (name, ..)) in points.iter_mut().zip([LAMBDA, OUT_OF_ORDER]) {
            line.extend(row.mean(name).map(|share| (1_000.0 / mttf_s, share * 100.0)));
        }
        rows.push(row);
    }
    let how = match fault {
        Fault::Freeze => "frozen and thawed",
        Fault::Kill => "killed and started again",
        Fault::KillFrontEnd => "killed and started again, front-ends alone",
    };
    let load = format!(
        "{}; {how}, MTTR = {} s{}",
        load.to_words(args.size),
        mttr_s(bench, fault),
        if args.compress > 1.0 {
            format!(", all times divided by {}", args.compress)
        } else {
            String::new()
        },
    );
    let plots = vec![(format!("figure8-{experiment}"), plot(experiment, points))];
    Ok(Section { experiment, load, rows, plots, ..Section::default() })
}

/// Measures what `cap` has of servers that fail: the row of one mean time, with a load that is
/// changed so.
pub(crate) fn row_at(
    bench: &Bench<'_>,
    name: &str,
    change: impl Fn(SqsArgs) -> SqsArgs,
) -> Result<Row, BenchError> {
    let args = &bench.args.load;
    let mttf_s =
        args.mttf_s.first().copied().unwrap_or_else(|| args.or_smoke(CAP_MTTF_S, SMOKE_MTTF_S[0]));
    let label = format!("servers with MTTF = {mttf_s} s, {name}");
    row_of(bench, (&label, load(bench), &change), (fault(args, Kind::Servers), mttf_s))
}

fn load(bench: &Bench<'_>) -> Load {
    let usual = bench.load(Load { queues: 200, send_delay_s: 0.5, receive_delay_s: 2.0, ..PAPER });
    let factor = bench.args.load.compress;
    Load {
        send_delay_s: usual.send_delay_s / factor,
        receive_delay_s: usual.receive_delay_s / factor,
        ..usual
    }
}

const fn fault(args: &BdqsLoadArgs, kind: Kind) -> Fault {
    match (kind, args.kill) {
        (Kind::FrontEnds, _) => Fault::KillFrontEnd,
        (Kind::Servers, true) => Fault::Kill,
        (Kind::Servers, false) => Fault::Freeze,
    }
}

/// What is sent while servers fail: its name, the load, and what is changed of it.
type Trial<'a> = (&'a str, Load, &'a dyn Fn(SqsArgs) -> SqsArgs);

fn row_of(
    bench: &Bench<'_>,
    trial: Trial<'_>,
    (fault, mttf_s): (Fault, f64),
) -> Result<Row, BenchError> {
    let args = &bench.args.load;
    let rhythm =
        Rhythm { mttf_s: mttf_s / args.compress, mttr_s: mttr_s(bench, fault) / args.compress };
    let mut runs: Vec<(ExperimentReport, Suffered)> = Vec::new();
    while !are_enough(args, mttf_s, &runs) {
        runs.push(fail(bench, trial, (fault, rhythm), runs.len() as u64)?);
    }
    Ok(row(trial.0, &runs))
}

/// Returns whether a row has as many runs, and as many failures in them, as are asked for.
fn are_enough(args: &BdqsLoadArgs, mttf_s: f64, runs: &[(ExperimentReport, Suffered)]) -> bool {
    let failures: u64 = runs.iter().map(|(_, suffered)| suffered.failures).sum();
    let has_failed = failures >= args.failures || mttf_s.is_infinite();
    runs.len() >= args.repeat as usize && (has_failed || runs.len() >= RUNS_MAX)
}

/// Returns the mean time until a server is back, in seconds. A front-end that was killed comes back
/// at once, as a supervisor would have it.
const fn mttr_s(bench: &Bench<'_>, fault: Fault) -> f64 {
    match fault {
        Fault::KillFrontEnd => 0.0,
        Fault::Freeze | Fault::Kill => bench.args.load.or_smoke(bench.args.load.mttr_s, 1.0),
    }
}

/// Carries out one run, with front-ends of its own.
fn fail(
    bench: &Bench<'_>,
    (label, load, change): Trial<'_>,
    (fault, rhythm): (Fault, Rhythm),
    run: u64,
) -> Result<(ExperimentReport, Suffered), BenchError> {
    let count = match fault {
        Fault::KillFrontEnd => bench.args.site.front_ends,
        Fault::Freeze | Fault::Kill => bench.site.nodes("servers")?.count(),
    };
    let mut front_ends = bench.site.front_ends(count)?;
    let mut experiment = change(bench.experiment(load, &front_ends));
    experiment.service.connect_timeout_s = CONNECT_TIMEOUT_S;
    // Processes come and go: what they use is not asked for.
    experiment.service.pid.clear();
    let visibility_s = f64::from(experiment.visibility_timeout_s) / bench.args.load.compress;
    let experiment = SqsArgs {
        patience_s: PATIENCE_S,
        visibility_timeout_s: visibility_s.ceil() as u32,
        seed: experiment.seed + run * 1_000_003,
        ..experiment
    };
    let signals = &Signals::default();
    let (report, suffered) = thread::scope(|scope| {
        let servers = front_ends.iter_mut().zip(1..).map(|(front_end, number)| {
            let server = server(bench, fault, front_end, number);
            let rng = Rng::with_seed(experiment.seed ^ u64::from(number).rotate_left(32));
            scope.spawn(move || failing::fail(server?, rhythm, rng, signals))
        });
        let servers: Vec<_> = servers.collect();
        let mut between = |moment: Moment| match moment {
            Moment::BeforeSending => signals.begun.store(true, Ordering::Release),
            Moment::Sent => {}
            // The queues can be deleted when all are there again.
            Moment::Received => signals.end_and_wait(),
        };
        let report = bench.measure(label, &experiment, &mut between);
        signals.end_and_wait();
        let suffered: Result<Vec<Suffered>, BdqsError> = servers
            .into_iter()
            .map(|server| server.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect();
        (report, suffered)
    });
    let report = report?;
    Ok((report, suffered?.into_iter().fold(Suffered::default(), Suffered::plus)))
}

fn server<'a>(
    bench: &'a Bench<'_>,
    fault: Fault,
    front_end: &'a mut FrontEnd,
    number: u32,
) -> Result<Server<'a>, BdqsError> {
    let nodes = match fault {
        Fault::KillFrontEnd => None,
        Fault::Freeze | Fault::Kill => Some(bench.site.nodes("servers")?),
    };
    Ok(Server { front_end, nodes, number, fault })
}

fn row(label: &str, runs: &[(ExperimentReport, Suffered)]) -> Row {
    let reports: Vec<ExperimentReport> = runs.iter().map(|(report, _)| report.clone()).collect();
    let mut row = Row::new(label);
    let of_runs = |of: fn(&Suffered) -> f64| runs.iter().map(|(_, it)| of(it)).collect::<Vec<_>>();
    let failures = of_runs(|it| it.failures as f64);
    row.add("failures in all", Unit::Count, &[failures.iter().sum()]);
    row.add("failures", Unit::Count, &failures);
    row.add("mean time down", Unit::Seconds, &of_runs(Suffered::mean_down_s));
    let more = [SENDS, RECEIVES, SEND_MEAN, SEND_P99, RECEIVE_MEAN, GIVEN_UP];
    let rest = Row::of("", &reports, &[&[LOSS][..], &CONSISTENCY, &more].concat());
    row.figures.extend(rest.figures);
    row.runs = rest.runs;
    row
}

fn plot(experiment: &str, points: [Vec<(f64, f64)>; 2]) -> Plot {
    let series = [LAMBDA.0, OUT_OF_ORDER.0].into_iter().zip(points).map(|(name, points)| Series {
        name: name.to_owned(),
        points,
        ..Series::default()
    });
    Plot {
        title: format!("Duplication and order under failures: {experiment}"),
        x_label: "failures of each in 1,000 s".to_owned(),
        y_label: "%".to_owned(),
        series: series.collect(),
        ..Plot::default()
    }
}
