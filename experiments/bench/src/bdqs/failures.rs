//! `network` and `clients`: requests and responses that are lost, receivers that quit (BDQS §V-D, figure 7). Never both.

use quelea_plot::{Plot, Series};

use crate::bdqs::args::BdqsLoadArgs;
use crate::bdqs::load::{
    Bench, CAUSED, CONSISTENCY, Column, GIVEN_UP, LAMBDA, OUT_OF_ORDER, PAPER, RECEIVES, SENDS,
};
use crate::bdqs::table::{Row, Section, Unit};
use crate::error::BenchError;
use crate::sqs::args::SqsArgs;

const PROBABILITIES: [f64; 4] = [0.0001, 0.001, 0.01, 0.1];
const SMOKE: [f64; 1] = [0.1];

/// λ as a multiple of what the failures must cause.
const EXCESS: Column = ("λ of that", Unit::Ratio, |run| {
    run.consistency.duplication_rate / run.consistency.caused_duplication_rate
});

/// Measures with requests and responses that are each lost with a probability.
pub(crate) fn network(bench: &mut Bench<'_>) -> Result<Section, BenchError> {
    run(bench, "network", &|p, load| SqsArgs { request_loss: p, response_loss: p, ..load })
}

/// Measures with receivers that quit with a probability before they delete what they received.
pub(crate) fn clients(bench: &mut Bench<'_>) -> Result<Section, BenchError> {
    run(bench, "clients", &|p, load| SqsArgs { crash: p, ..load })
}

fn run(
    bench: &Bench<'_>,
    experiment: &'static str,
    fail: &dyn Fn(f64, SqsArgs) -> SqsArgs,
) -> Result<Section, BenchError> {
    let front_ends = bench.front_ends()?;
    let args = &bench.args.load;
    let load = bench.load(PAPER);
    let named = BdqsLoadArgs::series(&args.probabilities, &PROBABILITIES, &SMOKE, args.smoke);
    let (mut rows, mut points) = (Vec::new(), [Vec::new(), Vec::new()]);
    // Without failures, for comparison.
    for p in std::iter::once(0.0).chain(named) {
        let label = format!("p = {p}");
        let runs = bench.repeat(&label, &fail(p, bench.experiment(load, &front_ends)))?;
        let mut row = Row::of(label, &runs, &CONSISTENCY);
        let more = Row::of("", &runs, &[CAUSED, EXCESS, GIVEN_UP, SENDS, RECEIVES]);
        row.figures.extend(more.figures);
        for (line, (name, ..)) in points.iter_mut().zip([LAMBDA, OUT_OF_ORDER]) {
            line.extend(row.mean(name).map(|share| (p * 100.0, share * 100.0)));
        }
        rows.push(row);
    }
    let series = [LAMBDA.0, OUT_OF_ORDER.0].into_iter().zip(points).map(|(name, points)| Series {
        name: name.to_owned(),
        points,
        ..Series::default()
    });
    let plot = Plot {
        title: format!("Duplication and order under failures: {experiment}"),
        x_label: "failure probability, %".to_owned(),
        y_label: "%".to_owned(),
        series: series.collect(),
        ..Plot::default()
    };
    let plots = vec![(format!("figure7-{experiment}"), plot)];
    let load = load.to_words(args.size);
    Ok(Section { experiment, load, rows, plots, ..Section::default() })
}
