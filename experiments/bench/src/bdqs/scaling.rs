//! `scalability` and `response`: rates by queues, front-ends and nodes, and response times by rates (BDQS §V-B, figures 4, 5).

use quelea_plot::{Plot, Series};

use crate::bdqs::args::{BdqsExperiment, BdqsLoadArgs};
use crate::bdqs::load::{
    Bench, LOST, Load, PAPER, RECEIVE_MEAN, RECEIVE_P99, RECEIVES, SEND_MEAN, SEND_P99, SENDS,
};
use crate::bdqs::queueing::Servers;
use crate::bdqs::table::{Row, Section, Unit};
use crate::error::BenchError;
use crate::sqs::experiment::Moment;

const QUEUES: [u32; 4] = [20, 100, 400, 1_000];
const WIDTHS: [u32; 4] = [1, 2, 4, 8];
const DEPTHS: [u32; 3] = [1, 2, 3];
/// T_send = T_recv = 1.
const LOAD: Load = Load { senders: 1, receivers: 1, messages: 20, ..PAPER };
/// Of the nodes' axis.
const QUEUES_OF_DEPTHS: u32 = 100;
/// Clients of `response`: each has a queue.
const CLIENTS: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

pub(crate) fn scalability(bench: &mut Bench<'_>) -> Result<Section, BenchError> {
    let args = &bench.args.load;
    let mut section = Section { experiment: "scalability", ..Section::default() };
    let queues = BdqsLoadArgs::series(&args.queues, &QUEUES, &[4, 8], args.smoke);
    let widths = BdqsLoadArgs::series(&args.widths, &WIDTHS, &[1, 2], args.smoke);
    let mut lines: Vec<[Series; 2]> = Vec::new();
    for width in &widths {
        let front_ends = bench.site.front_ends(*width)?;
        let mut line =
            [(); 2].map(|()| Series { name: format!("{width} front-ends"), ..Series::default() });
        for queues in &queues {
            let label = format!("{width} front-ends, Q = {queues}");
            let load = Load { queues: *queues, ..bench.load(LOAD) };
            let runs = bench.repeat(&label, &bench.experiment(load, &front_ends))?;
            let row = Row::of(label, &runs, &[SENDS, RECEIVES, SEND_MEAN, RECEIVE_MEAN, LOST]);
            for (series, (name, ..)) in line.iter_mut().zip([SENDS, RECEIVES]) {
                series.points.extend(row.mean(name).map(|rate| (f64::from(*queues), rate)));
            }
            section.rows.push(row);
        }
        lines.push(line);
    }
    for (at, (name, file)) in
        [(SENDS.0, "figure4-send"), (RECEIVES.0, "figure4-receive")].into_iter().enumerate()
    {
        let series = lines.iter().map(|line| line[at].clone()).collect();
        section.plots.push((file.to_owned(), by_queues(name, series)));
    }
    if bench.site.has_nodes() {
        by_nodes(bench, &mut section)?;
    } else {
        section.notes.push("The nodes are not ours: their number stays.".to_owned());
    }
    section.load = Load { queues: 0, ..bench.load(LOAD) }
        .to_words(args.size)
        .replace("Q = 0", "Q and the number of front-ends and nodes vary");
    Ok(section)
}

/// Measures by the number of nodes, with one replica of each row, so that more nodes store more.
fn by_nodes(bench: &mut Bench<'_>, section: &mut Section) -> Result<(), BenchError> {
    let args = &bench.args.load;
    let mut depths = BdqsLoadArgs::series(&args.depths, &DEPTHS, &[1], args.smoke);
    // As many as there are come first: nodes take most of a minute to start.
    depths.sort_by_key(|depth| std::cmp::Reverse(*depth));
    let queues = args.queues.first().copied().unwrap_or_else(|| args.or_smoke(QUEUES_OF_DEPTHS, 4));
    for depth in depths {
        if bench.site.contact_points().len() != depth as usize {
            bench.site.start_anew("scalability", depth)?;
        }
        let nodes = bench.site.contact_points().to_vec();
        let front_ends = bench.site.front_ends_over(&nodes, 1, bench.args.site.front_ends)?;
        let label = format!("{depth} nodes, R = 1, Q = {queues}");
        let load = Load { queues, ..bench.load(LOAD) };
        let mut stored = Vec::new();
        let mut between = |_: Moment| stored.push(bench.site.stored_bytes());
        let run = bench.measure(&label, &bench.experiment(load, &front_ends), &mut between)?;
        let mut row = Row::of(label, &[run], &[SENDS, RECEIVES, SEND_MEAN, RECEIVE_MEAN, LOST]);
        if let [before, sent, ..] = stored.as_slice() {
            let grown =
                before.iter().zip(sent).map(|(before, after)| after.saturating_sub(*before));
            let megabytes: Vec<f64> = grown.map(|bytes| bytes as f64 / 1e6).collect();
            row.add("grown a node", Unit::Megabytes, &megabytes);
        }
        section.rows.push(row);
    }
    let is_last = bench.args.experiments.last() == Some(&BdqsExperiment::Scalability);
    if !bench.args.load.smoke
        && !is_last
        && bench.site.contact_points().len() != bench.args.site.cassandra as usize
    {
        bench.site.start_anew("scalability", bench.args.site.cassandra)?;
    }
    Ok(())
}

fn by_queues(name: &str, series: Vec<Series>) -> Plot {
    Plot {
        title: format!("Rate by number of queues: {name}"),
        x_label: "queues".to_owned(),
        y_label: "messages a second".to_owned(),
        series,
        ..Plot::default()
    }
}

pub(crate) fn response(bench: &mut Bench<'_>) -> Result<Section, BenchError> {
    let args = &bench.args.load;
    let front_ends = bench.front_ends()?;
    let clients = BdqsLoadArgs::series(&args.queues, &CLIENTS, &[1, 4], args.smoke);
    let mut rows = Vec::new();
    for queues in clients {
        let label = format!("{queues} clients");
        let load = Load { queues, ..bench.load(Load { messages: 40, ..LOAD }) };
        let runs = bench.repeat(&label, &bench.experiment(load, &front_ends))?;
        let columns = [SENDS, SEND_MEAN, SEND_P99, RECEIVES, RECEIVE_MEAN, RECEIVE_P99, LOST];
        rows.push(Row::of(label, &runs, &columns));
    }
    let sides = [
        (SENDS.0, SEND_MEAN.0, "M/M/k send", "figure5-send"),
        (RECEIVES.0, RECEIVE_MEAN.0, "M/M/k receive", "figure5-receive"),
    ];
    let mut section = Section { experiment: "response", ..Section::default() };
    for (rate, mean, fitted, file) in sides {
        let measured: Vec<(f64, f64)> =
            rows.iter().filter_map(|row| Some((row.mean(rate)?, row.mean(mean)?))).collect();
        let heaviest = measured.iter().map(|point| point.0).fold(0.0, f64::max);
        let lightest_s = measured.iter().map(|point| point.1).fold(f64::INFINITY, f64::min) / 1e3;
        let servers = Servers::fitting(lightest_s, heaviest);
        for (row, (per_s, _)) in rows.iter_mut().zip(&measured) {
            let ms = servers.response_s(*per_s).map_or(f64::NAN, |seconds| seconds * 1e3);
            row.add(fitted, Unit::Milliseconds, &[ms]);
        }
        section.notes.push(format!(
            "{fitted}: k = {} servers of {:.0}/s each, which have the least time and the highest rate of the row.",
            servers.count, servers.each_per_s
        ));
        section.plots.push((file.to_owned(), by_rate(rate, measured, servers, heaviest)));
    }
    section.load = format!(
        "{}; each client sends all, then receives all",
        bench.load(Load { messages: 40, ..LOAD }).to_words(args.size)
    );
    section.rows = rows;
    Ok(section)
}

fn by_rate(name: &str, mut measured: Vec<(f64, f64)>, servers: Servers, heaviest: f64) -> Plot {
    measured.sort_by(|one, other| one.0.total_cmp(&other.0));
    let curve = (1..=95).map(|percent| heaviest * f64::from(percent) / 100.0);
    let fitted = curve.filter_map(|per_s| Some((per_s, servers.response_s(per_s)? * 1e3)));
    let series = vec![
        Series { name: "measured".to_owned(), points: measured, ..Series::default() },
        Series {
            name: format!("M/M/{}", servers.count),
            points: fitted.collect(),
            dashed: true,
            ..Series::default()
        },
    ];
    Plot {
        title: format!("Response time by rate: {name}"),
        x_label: "messages a second".to_owned(),
        y_label: "mean response time, ms".to_owned(),
        series,
        ..Plot::default()
    }
}
