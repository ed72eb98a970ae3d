//! `consistency`: duplication and order by K and by the number of receivers (BDQS §V-C, figure 6).

use quelea_plot::{Plot, Series};

use crate::bdqs::args::BdqsLoadArgs;
use crate::bdqs::load::{Bench, CONSISTENCY, LAMBDA, Load, OUT_OF_ORDER, PAPER, PROVEN, RECEIVES};
use crate::bdqs::table::{Row, Section};
use crate::error::BenchError;
use crate::sqs::args::SqsArgs;

/// The paper's K, one that adjusts itself, and one that stands for infinity.
const ORDER_HINTS: [&str; 5] = ["1", "2", "3", "auto", "1000"];
const RECEIVERS: [u32; 3] = [1, 2, 3];

pub(crate) fn run(bench: &mut Bench<'_>) -> Result<Section, BenchError> {
    let front_ends = bench.front_ends()?;
    let args = &bench.args.load;
    let usual = bench.load(Load { receive_delay_s: 1.0, ..PAPER });
    let hints = BdqsLoadArgs::series(
        &args.order_hints,
        &ORDER_HINTS.map(str::to_owned),
        &["1".to_owned(), "1000".to_owned()],
        args.smoke,
    );
    let receivers = BdqsLoadArgs::series(&args.receivers, &RECEIVERS, &[3], args.smoke);
    let (mut rows, mut places, mut notes) = (Vec::new(), Vec::new(), Vec::new());
    for hint in &hints {
        for receivers in &receivers {
            let label = format!("K = {hint}, T_recv = {receivers}");
            let load = Load { receivers: *receivers, ..usual };
            let experiment =
                SqsArgs { order_hint: Some(hint.clone()), ..bench.experiment(load, &front_ends) };
            let runs = bench.repeat(&label, &experiment)?;
            if runs.iter().any(|run| run.order_hint.is_none()) {
                notes.push(format!("K = {hint} is refused by the front-ends: measured without."));
            }
            let mut row = Row::of(label, &runs, &CONSISTENCY);
            row.figures.extend(Row::of("", &runs, &[RECEIVES]).figures);
            rows.push(row);
            places.push((hint.clone(), f64::from(*receivers)));
        }
    }
    notes.dedup();
    let plots = vec![
        ("figure6-duplication".to_owned(), plot(LAMBDA.0, &rows, &places)),
        ("figure6-order".to_owned(), plot(OUT_OF_ORDER.0, &rows, &places)),
        ("figure6-order-strict".to_owned(), plot(PROVEN.0, &rows, &places)),
    ];
    let load = usual.to_words(args.size);
    Ok(Section { experiment: "consistency", load, rows, notes, plots })
}

/// A line for each K, by the number of receivers.
fn plot(name: &str, rows: &[Row], places: &[(String, f64)]) -> Plot {
    let mut series: Vec<Series> = Vec::new();
    for (row, (hint, receivers)) in rows.iter().zip(places) {
        let key = format!("K = {hint}");
        if series.last().is_none_or(|last| last.name != key) {
            series.push(Series { name: key, ..Series::default() });
        }
        if let (Some(line), Some(share)) = (series.last_mut(), row.mean(name)) {
            line.points.push((*receivers, share * 100.0));
        }
    }
    Plot {
        title: format!("{name} by receivers of a queue"),
        x_label: "T_recv".to_owned(),
        y_label: format!("{name}, %"),
        series,
        ..Plot::default()
    }
}
