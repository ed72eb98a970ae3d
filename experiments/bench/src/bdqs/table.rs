//! What the experiments found: rows of figures, each the mean of several runs with the least and the most.

use quelea_plot::Plot;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::units::{milliseconds, thousands};

/// An experiment's rows, and what is said about them.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Section {
    pub experiment: &'static str,
    /// The load, in words.
    pub load: String,
    pub rows: Vec<Row>,
    pub notes: Vec<String>,
    /// By their file names, without the ending.
    #[serde(serialize_with = "serialize_plots")]
    pub plots: Vec<(String, Plot)>,
}

/// A plot as the report of the papers' experiments draws it.
#[derive(Serialize)]
struct NamedPlot<'a> {
    name: &'a str,
    title: &'a str,
    x_label: &'a str,
    y_label: &'a str,
    series: Vec<NamedSeries<'a>>,
}

#[derive(Serialize)]
struct NamedSeries<'a> {
    name: &'a str,
    points: &'a [(f64, f64)],
}

fn serialize_plots<S: Serializer>(
    plots: &[(String, Plot)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(plots.iter().map(|(name, plot)| {
        NamedPlot {
            name,
            title: &plot.title,
            x_label: &plot.x_label,
            y_label: &plot.y_label,
            series: plot
                .series
                .iter()
                .map(|series| NamedSeries { name: &series.name, points: &series.points })
                .collect(),
        }
    }))
}

/// One row.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Row {
    pub label: String,
    pub figures: Vec<Figure>,
    /// The whole report of each run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<Value>,
}

/// One figure of a row.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Figure {
    pub name: &'static str,
    pub unit: Unit,
    pub mean: f64,
    pub min: f64,
    pub max: f64,
}

/// How a figure is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Unit {
    PerSecond,
    /// Shown as a percentage; stored as a part of 1.
    Share,
    Milliseconds,
    Microseconds,
    /// A whole number.
    Count,
    /// A number with two digits after the point.
    Ratio,
    Megabytes,
    Seconds,
}

impl Row {
    pub(crate) fn new(label: impl Into<String>) -> Self {
        Self { label: label.into(), ..Self::default() }
    }

    /// Adds a figure of one or of several runs. One that is no number is left out.
    pub(crate) fn add(&mut self, name: &'static str, unit: Unit, of_runs: &[f64]) {
        let of_runs: Vec<f64> = of_runs.iter().copied().filter(|value| value.is_finite()).collect();
        if of_runs.is_empty() {
            return;
        }
        let mean = of_runs.iter().sum::<f64>() / of_runs.len() as f64;
        let min = of_runs.iter().copied().fold(f64::INFINITY, f64::min);
        let max = of_runs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        self.figures.push(Figure { name, unit, mean, min, max });
    }

    /// Returns the mean of a figure, if the row has it.
    pub(crate) fn mean(&self, name: &str) -> Option<f64> {
        self.figures.iter().find(|figure| figure.name == name).map(|figure| figure.mean)
    }
}

impl Section {
    /// Returns a table in Markdown, and the notes.
    pub(crate) fn to_text(&self) -> String {
        let mut names: Vec<&str> = Vec::new();
        for figure in self.rows.iter().flat_map(|row| &row.figures) {
            if !names.contains(&figure.name) {
                names.push(figure.name);
            }
        }
        let line = |cells: &mut dyn Iterator<Item = String>| {
            format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
        };
        let mut text = format!("{}: {}\n\n", self.experiment, self.load);
        text += &line(&mut [""].iter().chain(&names).map(|name| (*name).to_owned()));
        text += &line(&mut (0..=names.len()).map(|_| "---".to_owned()));
        for row in &self.rows {
            let cell = |name: &&str| {
                let found = row.figures.iter().find(|figure| figure.name == *name);
                found.map_or_else(|| "–".to_owned(), Figure::to_text)
            };
            let cells = names.iter().map(cell);
            text += &line(&mut std::iter::once(row.label.clone()).chain(cells));
        }
        for note in &self.notes {
            text += &format!("\n{note}\n");
        }
        text
    }
}

impl Figure {
    fn to_text(&self) -> String {
        let mean = self.unit.show(self.mean);
        if (self.max - self.min).abs() < f64::EPSILON {
            return mean;
        }
        format!("{mean} ({} to {})", self.unit.show(self.min), self.unit.show(self.max))
    }
}

impl Unit {
    fn show(self, value: f64) -> String {
        match self {
            Self::PerSecond => format!("{}/s", thousands(value)),
            Self::Share => format!("{:.2} %", value * 100.0),
            Self::Milliseconds => milliseconds(value),
            Self::Microseconds => format!("{value:.1} µs"),
            Self::Count => thousands(value),
            Self::Ratio => format!("{value:.2}"),
            Self::Megabytes => format!("{value:.1} MB"),
            Self::Seconds => format!("{value:.1} s"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plots_are_in_the_report_with_their_names() {
        let series = vec![quelea_plot::Series {
            name: "K = 1".to_owned(),
            points: vec![(1.0, 0.5)],
            ..Default::default()
        }];
        let plot = Plot { title: "λ".to_owned(), series, ..Plot::default() };
        let section = Section { plots: vec![("figure6".to_owned(), plot)], ..Section::default() };
        let found = serde_json::to_value(&section).expect("it is plain data");
        let expected = serde_json::json!([{
            "name": "figure6", "title": "λ", "x_label": "", "y_label": "",
            "series": [{"name": "K = 1", "points": [[1.0, 0.5]]}],
        }]);
        assert_eq!(found["plots"], expected);
    }

    #[test]
    fn a_table_has_a_column_for_each_figure_that_any_row_has() {
        let mut one = Row::new("K = 1");
        one.add("λ", Unit::Share, &[0.01, 0.03]);
        one.add("sends", Unit::PerSecond, &[1_234.4]);
        let mut other = Row::new("K = 2");
        other.add("sends", Unit::PerSecond, &[1_000.0]);
        other.add("no number", Unit::Ratio, &[f64::NAN]);
        let section = Section {
            experiment: "consistency",
            load: "Q = 4".to_owned(),
            rows: vec![one, other],
            notes: vec!["busy".to_owned()],
            plots: Vec::new(),
        };
        let expected = "consistency: Q = 4\n\n|  | λ | sends |\n| --- | --- | --- |\n\
            | K = 1 | 2.00 % (1.00 % to 3.00 %) | 1,234/s |\n| K = 2 | – | 1,000/s |\n\nbusy\n";
        assert_eq!(section.to_text(), expected);
        assert_eq!(section.rows[0].mean("λ"), Some(0.02));
    }
}
