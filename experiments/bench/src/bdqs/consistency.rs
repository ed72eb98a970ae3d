//! `consistency`: duplication and order by K and by the number of receivers (BDQS §V-C, figure 6).

use quelea_plot::{Plot, Series};

use crate::bdqs::args::BdqsLoadArgs;
use crate::bdqs::load::{
    Bench, CONSISTENCY, LAMBDA, Load, OUT_OF_ORDER, OUT_OF_ORDER_OF_QUEUES, PAPER, PROVEN, RECEIVES,
};
use crate::bdqs::site::FrontEnd;
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
    let mut found = Measured::default();
    for hint in &hints {
        for receivers in &receivers {
            let load = Load { receivers: *receivers, ..usual };
            found.measure(bench, (hint, ""), load, &front_ends)?;
        }
    }
    // They would be among the front-ends that the others know.
    drop(front_ends);
    if let Some(hint) = hints.iter().find(|hint| *hint != "auto") {
        let front_ends = bench.site.classic_front_ends(bench.args.site.front_ends)?;
        for receivers in &receivers {
            let load = Load { receivers: *receivers, ..usual };
            found.measure(bench, (hint, ", classic"), load, &front_ends)?;
        }
    }
    let Measured { rows, places, mut notes } = found;
    notes.dedup();
    notes.push(
        "Classic: front-ends that help each other in nothing, as the paper's (bdqs.classic)."
            .to_owned(),
    );
    let plots = vec![
        ("figure6-duplication".to_owned(), plot(LAMBDA.0, &rows, &places)),
        ("figure6-order".to_owned(), plot(OUT_OF_ORDER.0, &rows, &places)),
        ("figure6-order-queues".to_owned(), plot(OUT_OF_ORDER_OF_QUEUES.0, &rows, &places)),
        ("figure6-order-strict".to_owned(), plot(PROVEN.0, &rows, &places)),
    ];
    let load = usual.to_words(args.size);
    Ok(Section { experiment: "consistency", load, rows, notes, plots })
}

/// What was measured so far.
#[derive(Default)]
struct Measured {
    rows: Vec<Row>,
    /// Of each row, which line of the plots it is in, and where.
    places: Vec<(String, f64)>,
    notes: Vec<String>,
}

impl Measured {
    /// Measures a row for that K, at front-ends of that kind.
    fn measure(
        &mut self,
        bench: &Bench<'_>,
        (hint, kind): (&str, &str),
        load: Load,
        front_ends: &[FrontEnd],
    ) -> Result<(), BenchError> {
        let label = format!("K = {hint}{kind}, T_recv = {}", load.receivers);
        let order_hint = Some(hint.to_owned());
        let experiment = SqsArgs { order_hint, ..bench.experiment(load, front_ends) };
        let runs = bench.repeat(&label, &experiment)?;
        if runs.iter().any(|run| run.order_hint.is_none()) {
            self.notes.push(format!("K = {hint} is refused by the front-ends: measured without."));
        }
        let mut row = Row::of(label, &runs, &CONSISTENCY);
        row.figures.extend(Row::of("", &runs, &[RECEIVES]).figures);
        self.rows.push(row);
        self.places.push((format!("K = {hint}{kind}"), f64::from(load.receivers)));
        Ok(())
    }
}

/// Returns a plot with a line for each K, by the number of receivers.
fn plot(name: &str, rows: &[Row], places: &[(String, f64)]) -> Plot {
    let mut series: Vec<Series> = Vec::new();
    for (row, (line, receivers)) in rows.iter().zip(places) {
        if series.last().is_none_or(|last| last.name != *line) {
            series.push(Series { name: line.clone(), ..Series::default() });
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
