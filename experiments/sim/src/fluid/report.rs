//! `quelea-sim report`: a fleet of queues under both policies, as a page with plots.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use quelea_elastic_core::plan::Policy;
use quelea_plot::{Plot, Series};

use super::figures::{Figures, Hour};
use super::fleet::{Member, heavy_tailed, play_fleet};
use super::scenario::Scenario;
use crate::Seed;

/// A fleet's week, and where the page goes.
#[derive(Clone, Debug, clap::Args)]
pub struct Report {
    /// Where the queues' sizes and lives come from.
    #[arg(long, default_value = "1")]
    seed: Seed,
    /// Producers of all queues, on average.
    #[arg(long, default_value_t = 1_000_000)]
    producers: u64,
    /// Queues. Their sizes are heavy-tailed.
    #[arg(long, default_value_t = 10_000)]
    queues: u64,
    /// Hours of virtual time.
    #[arg(long, default_value_t = 168.0)]
    hours: f64,
    /// Plays one queue of so many, over all sizes, and multiplies what is counted; 1: all are played.
    #[arg(long, default_value_t = 1)]
    one_of: u64,
    /// Directory of `index.html` and the plots.
    #[arg(long, default_value = "target/sim-report")]
    out: PathBuf,
}

/// A policy's figures, with what each count stands for.
struct Run {
    name: &'static str,
    figures: Figures,
    times: f64,
}

impl Report {
    /// Plays the fleet under both policies and writes the page; returns what is to be printed.
    ///
    /// # Errors
    /// If a count is zero, or the page cannot be written.
    pub fn play(&self) -> Result<String, String> {
        for (name, value) in
            [("producers", self.producers), ("queues", self.queues), ("one-of", self.one_of)]
        {
            if value == 0 {
                return Err(format!("--{name} is 0, the least is 1\n"));
            }
        }
        let all = heavy_tailed(self.seed, self.queues, self.producers);
        // From the middle of each group, so that the largest queue does not stand for so many.
        let first = (self.one_of / 2) as usize;
        let played: Vec<Member> =
            all.iter().skip(first).step_by(self.one_of as usize).copied().collect();
        let in_played: u64 = played.iter().map(|member| u64::from(member.producers)).sum();
        if in_played == 0 {
            return Err(format!("--one-of {} leaves no queue of {}\n", self.one_of, self.queues));
        }
        let times = self.producers as f64 / in_played as f64;
        let scenario = Scenario { seconds: (self.hours * 3_600.0) as u32, ..Scenario::fleet() };
        let run = |name, policy| Run {
            name,
            figures: play_fleet(self.seed, &played, &scenario.under(policy)),
            times,
        };
        let runs = [run("steady", Policy::Steady), run("paper", Policy::Paper)];
        let what = format!(
            "{} queues with {} producers for {:.0} hours, seed {}; {} queues with {in_played} producers \
             were played, counts are multiplied by {times:.2}",
            self.queues,
            self.producers,
            self.hours,
            self.seed,
            played.len()
        );
        let rows = rows(&runs);
        self.write(&what, &rows, &plots(&runs))?;
        let mut text = format!("{what}\n{:<44}{:>18}{:>18}\n", "", runs[0].name, runs[1].name);
        for (row, values) in &rows {
            let _ = writeln!(text, "{row:<44}{:>18}{:>18}", values[0], values[1]);
        }
        let _ = writeln!(text, "written to {}", self.out.join("index.html").display());
        Ok(text)
    }

    fn write(&self, what: &str, rows: &[Row], plots: &[(&str, Plot)]) -> Result<(), String> {
        let save = |path: &Path, text: &str| {
            fs::write(path, text).map_err(|error| format!("{}: {error}\n", path.display()))
        };
        fs::create_dir_all(&self.out)
            .map_err(|error| format!("{}: {error}\n", self.out.display()))?;
        let mut page = format!(
            "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>Elastic queues, \
             simulated</title>\n<body style=\"font-family: sans-serif; max-width: 60em; margin: auto\">\n\
             <h1>Elastic queues, simulated</h1>\n<p>{what}.</p>\n<table>\n<tr><th><th>steady<th>paper\n"
        );
        for (row, values) in rows {
            let _ = writeln!(
                page,
                "<tr><td>{row}<td align=\"right\">{}<td align=\"right\">{}",
                values[0], values[1]
            );
        }
        page.push_str("</table>\n");
        for (name, plot) in plots {
            let svg = plot.to_svg();
            save(&self.out.join(format!("{name}.svg")), &svg)?;
            page.push_str(&svg);
        }
        save(&self.out.join("index.html"), &(page + "</body></html>\n"))
    }
}

type Row = (&'static str, [String; 2]);

/// Returns the table: sums over the whole time.
fn rows(runs: &[Run; 2]) -> Vec<Row> {
    let row = |name, decimals: usize, value: &dyn Fn(&Run) -> f64| -> Row {
        let cell = |run: &Run| format!("{:.decimals$}", value(run));
        (name, [cell(&runs[0]), cell(&runs[1])])
    };
    let seconds = |run: &Run| run.figures.hours.iter().map(|hour| f64::from(hour.seconds)).sum();
    let share = |part: u64, whole: u64| 100.0 * part as f64 / whole.max(1) as f64;
    let load = |run: &Run| -> f64 { run.figures.hours.iter().map(|hour| hour.load_s).sum() };
    let highest = |run: &Run| -> f64 {
        run.figures.hours.iter().map(|hour| hour.load_max).fold(0.0, f64::max)
    };
    vec![
        row("relays, mean", 0, &|run| {
            run.times * run.figures.relay_s as f64 / f64::max(seconds(run), 1.0)
        }),
        row("load of a relay, mean", 3, &|run| load(run) / run.figures.relay_s.max(1) as f64),
        row("load of a relay in any second, highest", 2, &highest),
        row("moves", 0, &|run| run.times * run.figures.moves as f64),
        row("  off relays that are too loaded", 0, &|run| {
            run.times * run.figures.relief_moves as f64
        }),
        row("  to relays that have just begun", 0, &|run| {
            run.times * run.figures.fill_moves as f64
        }),
        row("  off relays that drain", 0, &|run| run.times * run.figures.drain_moves as f64),
        row("relays started for load", 0, &|run| run.times * run.figures.started as f64),
        row("relays drained", 0, &|run| run.times * run.figures.drained as f64),
        row("flaps (out and in within 15 min)", 0, &|run| run.times * run.figures.flaps as f64),
        row("relays that died", 0, &|run| run.times * run.figures.crashes as f64),
        row("cost", 0, &|run| run.times * run.figures.cost_micros / 1e6),
        row("overloaded, % of relay-seconds", 3, &|run| {
            share(run.figures.overloaded_s, run.figures.relay_s)
        }),
        row("agreement broken, % of queue-seconds", 3, &|run| {
            share(run.figures.breach_s, run.figures.queue_s)
        }),
    ]
}

/// Returns the plots by the hour.
fn plots(runs: &[Run; 2]) -> Vec<(&'static str, Plot)> {
    let series = |run: &Run, name: &str, value: &dyn Fn(&Run, &Hour) -> f64| Series {
        name: name.to_owned(),
        points: (0_u32..)
            .zip(&run.figures.hours)
            .map(|(at, hour)| ((f64::from(at) + 0.5) / 24.0, value(run, hour)))
            .collect(),
        ..Series::default()
    };
    let plot = |title: &str, y_label: &str, value: &dyn Fn(&Run, &Hour) -> f64| Plot {
        title: title.to_owned(),
        x_label: "day".to_owned(),
        y_label: y_label.to_owned(),
        series: runs.iter().map(|run| series(run, run.name, value)).collect(),
        ..Plot::default()
    };
    let mean = |run: &Run, sum: f64, hour: &Hour| run.times * sum / f64::from(hour.seconds.max(1));
    let mut relays =
        plot("Relays that cost something", "relays", &|run, hour| mean(run, hour.relay_s, hour));
    let load = series(&runs[0], "load, in full relays", &|run, hour| mean(run, hour.load_s, hour));
    relays.series.push(Series { dashed: true, ..load });
    let of_limit = |_: &Run, hour: &Hour| hour.load_s / hour.relay_s.max(1.0);
    let broken = |run: &Run, hour: &Hour| {
        let queues = run.figures.queue_s as f64
            / run.figures.hours.iter().map(seconds_of).sum::<f64>().max(1.0);
        100.0 * hour.breach_s as f64 / (queues * seconds_of(hour)).max(1.0)
    };
    vec![
        ("relays", relays),
        ("load", plot("Mean load of a relay", "share of its limit", &of_limit)),
        (
            "moves",
            plot("Producers moved", "moves an hour", &|run, hour| run.times * hour.moves as f64),
        ),
        ("cost", plot("Cost", "an hour", &|run, hour| run.times * hour.cost_micros / 1e6)),
        ("breaches", plot("Agreement broken", "% of all queues' seconds", &broken)),
    ]
}

fn seconds_of(hour: &Hour) -> f64 {
    f64::from(hour.seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_the_table_and_a_chart_of_each_kind() {
        let out = std::env::temp_dir().join(format!("quelea-sim-report-{}", std::process::id()));
        let report = Report {
            seed: Seed(1),
            producers: 400,
            queues: 8,
            hours: 2.0,
            one_of: 2,
            out: out.clone(),
        };
        let text = report.play().expect("it is played");
        let page = fs::read_to_string(out.join("index.html")).expect("the page is written");
        let plots = fs::read_dir(&out).expect("the directory is there").count() - 1;
        fs::remove_dir_all(&out).expect("it is removed");
        assert!(text.contains("4 queues with"), "{text}");
        assert_eq!((plots, page.matches("<svg").count()), (5, 5));
        for part in ["relays, mean", "Cost", "Agreement broken", "Producers moved"] {
            assert!(page.contains(part), "{part} is missing in {page}");
        }
    }

    #[test]
    fn a_report_of_nothing_says_which_argument_it_is() {
        let report = Report {
            seed: Seed(1),
            producers: 1,
            queues: 0,
            hours: 1.0,
            one_of: 1,
            out: "x".into(),
        };
        assert_eq!(report.play(), Err("--queues is 0, the least is 1\n".to_owned()));
    }
}
