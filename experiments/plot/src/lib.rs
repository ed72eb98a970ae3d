//! Line charts as SVG, with what the figures of the EQS paper need: bands of deviation, vertical lines at
//! events, a second axis that is a multiple of the first. It writes text and does no I/O; both axes begin
//! at zero. Used by `quelea bench elastic` and by the simulator's report.
//!
//! Begin with [`Plot`].

use std::fmt::Write as _;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 84.0;
const RIGHT: f64 = 76.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 84.0;
/// Gridlines of an axis, about.
const TICKS: f64 = 6.0;
/// Distinguishable also without colours being told apart: lines have marks of their own in the key.
const COLOURS: [&str; 8] =
    ["#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#7f7f7f"];

/// A chart.
#[derive(Debug, Clone, Default)]
pub struct Plot {
    /// Above it.
    pub title: String,
    /// What the horizontal axis says, with its unit.
    pub x_label: String,
    /// The same of the vertical one.
    pub y_label: String,
    /// What the second axis says, and how much of the first one is 1 of it.
    pub right: Option<(String, f64)>,
    /// The lines; a colour each for eight.
    pub series: Vec<Series>,
    /// Vertical lines: where, and what happened.
    pub events: Vec<(f64, String)>,
}

/// A line.
#[derive(Debug, Clone, Default)]
pub struct Series {
    /// In the key.
    pub name: String,
    /// Where it goes along, from left to right; no value is below zero.
    pub points: Vec<(f64, f64)>,
    /// The standard deviation at each point; empty: none is shown.
    pub deviation: Vec<f64>,
    /// Drawn broken.
    pub dashed: bool,
}

impl Plot {
    /// Returns the whole chart as the text of an SVG file.
    #[must_use]
    pub fn to_svg(&self) -> String {
        let all = || self.series.iter().flat_map(|series| &series.points);
        let x_max = all().map(|point| point.0).fold(0.0, f64::max).max(1e-9);
        let y_top = tops_of(&self.series).max(1e-9);
        let y_step = step(y_top);
        let y_max = (y_top / y_step).ceil() * y_step;
        let frame = Frame { x_max, y_max };
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
             font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" \
             fill=\"white\"/>\n"
        );
        text(&mut svg, (WIDTH / 2.0, 22.0), "middle", &self.title, "font-size=\"14\"");
        self.put_axes(&mut svg, &frame, y_step);
        self.put_events(&mut svg, &frame);
        for (number, series) in self.series.iter().enumerate() {
            series.put(&mut svg, &frame, COLOURS[number % COLOURS.len()]);
        }
        self.put_key(&mut svg);
        svg + "</svg>\n"
    }

    fn put_axes(&self, svg: &mut String, frame: &Frame, y_step: f64) {
        let mut value = 0.0;
        while value <= frame.y_max + y_step / 2.0 {
            let y = frame.y(value);
            line(svg, (LEFT, y), (WIDTH - RIGHT, y), "stroke=\"#ddd\"");
            text(svg, (LEFT - 6.0, y + 4.0), "end", &figure(value), "");
            value += y_step;
        }
        if let Some((_, factor)) = &self.right {
            let right_step = step(frame.y_max / factor);
            let mut value = 0.0;
            while value * factor <= frame.y_max {
                let at = (WIDTH - RIGHT + 6.0, frame.y(value * factor) + 4.0);
                text(svg, at, "start", &figure(value), "");
                value += right_step;
            }
        }
        let x_step = step(frame.x_max);
        let mut value = 0.0;
        while value <= frame.x_max {
            let x = frame.x(value);
            line(svg, (x, HEIGHT - BOTTOM), (x, HEIGHT - BOTTOM + 5.0), "stroke=\"black\"");
            text(svg, (x, HEIGHT - BOTTOM + 19.0), "middle", &figure(value), "");
            value += x_step;
        }
        let foot = HEIGHT - BOTTOM;
        line(svg, (LEFT, foot), (WIDTH - RIGHT, foot), "stroke=\"black\"");
        line(svg, (LEFT, TOP), (LEFT, foot), "stroke=\"black\"");
        text(svg, (WIDTH / 2.0, foot + 38.0), "middle", &self.x_label, "");
        upright(svg, 18.0, &self.y_label);
        if let Some((label, _)) = &self.right {
            upright(svg, WIDTH - 14.0, label);
        }
    }

    fn put_events(&self, svg: &mut String, frame: &Frame) {
        for (at, what) in &self.events {
            let x = frame.x(*at);
            let style = "stroke=\"#555\" stroke-dasharray=\"2 3\"";
            line(svg, (x, TOP), (x, HEIGHT - BOTTOM), style);
            text(svg, (x + 3.0, TOP - 4.0), "start", what, "font-size=\"10\"");
        }
    }

    fn put_key(&self, svg: &mut String) {
        let width = (WIDTH - LEFT - RIGHT) / self.series.len().clamp(1, 4) as f64;
        for (number, series) in self.series.iter().enumerate() {
            let x = LEFT + width * (number % 4) as f64;
            let y = HEIGHT - 26.0 + 16.0 * (number / 4) as f64;
            let colour = COLOURS[number % COLOURS.len()];
            line(svg, (x, y - 4.0), (x + 22.0, y - 4.0), &series.stroke(colour));
            text(svg, (x + 28.0, y), "start", &series.name, "");
        }
    }
}

fn tops_of(series: &[Series]) -> f64 {
    let of = |series: &Series| {
        let deviations = series.deviation.iter().copied().chain(std::iter::repeat(0.0));
        let tops = series.points.iter().zip(deviations).map(|(point, more)| point.1 + more);
        tops.fold(0.0, f64::max)
    };
    series.iter().map(of).fold(0.0, f64::max)
}

impl Series {
    fn stroke(&self, colour: &str) -> String {
        let dash = if self.dashed { " stroke-dasharray=\"6 4\"" } else { "" };
        format!("stroke=\"{colour}\" stroke-width=\"1.8\" fill=\"none\"{dash}")
    }

    fn put(&self, svg: &mut String, frame: &Frame, colour: &str) {
        if !self.deviation.is_empty() {
            let pairs = || self.points.iter().zip(&self.deviation);
            let above = pairs().map(|((x, y), more)| (*x, y + more));
            let below = pairs().rev().map(|((x, y), more)| (*x, (y - more).max(0.0)));
            let band = frame.places(above.chain(below));
            // Writing to a String does not fail, here and below.
            let _ =
                writeln!(svg, "<polygon points=\"{band}\" fill=\"{colour}\" opacity=\"0.18\"/>");
        }
        let places = frame.places(self.points.iter().copied());
        let _ = writeln!(svg, "<polyline points=\"{places}\" {}/>", self.stroke(colour));
    }
}

/// From values to places on the paper.
struct Frame {
    x_max: f64,
    y_max: f64,
}

impl Frame {
    fn x(&self, value: f64) -> f64 {
        LEFT + (WIDTH - LEFT - RIGHT) * value / self.x_max
    }

    fn y(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / self.y_max
    }

    fn places(&self, points: impl Iterator<Item = (f64, f64)>) -> String {
        let places = points.map(|(x, y)| format!("{:.1},{:.1}", self.x(x), self.y(y)));
        places.collect::<Vec<_>>().join(" ")
    }
}

/// Returns 1, 2 or 5 times a power of ten, so that there are about [`TICKS`].
fn step(top: f64) -> f64 {
    let rough = top / TICKS;
    let power = 10_f64.powf(rough.log10().floor());
    let digit = [1.0, 2.0, 5.0].into_iter().find(|digit| digit * power >= rough).unwrap_or(10.0);
    digit * power
}

/// Returns a number as text, with thousands as k and millions as M.
fn figure(value: f64) -> String {
    let (value, unit) = match value {
        value if value >= 1e6 => (value / 1e6, "M"),
        value if value >= 1e4 => (value / 1e3, "k"),
        value => (value, ""),
    };
    let text = format!("{value:.2}");
    format!("{}{unit}", text.trim_end_matches('0').trim_end_matches('.'))
}

fn line(svg: &mut String, from: (f64, f64), to: (f64, f64), style: &str) {
    let ((x1, y1), (x2, y2)) = (from, to);
    let _ = writeln!(
        svg,
        "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" {style}/>"
    );
}

fn text(svg: &mut String, at: (f64, f64), anchor: &str, words: &str, style: &str) {
    let (x, y) = at;
    let words = escaped(words);
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" {style}>{words}</text>"
    );
}

fn upright(svg: &mut String, x: f64, words: &str) {
    let y = (HEIGHT - BOTTOM + TOP) / 2.0;
    let style = format!("transform=\"rotate(-90 {x:.1} {y:.1})\"");
    text(svg, (x, y), "middle", words, &style);
}

fn escaped(words: &str) -> String {
    words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_has_round_steps_and_short_figures() {
        assert_eq!([6.0, 1.1e6, 0.013].map(step), [1.0, 200_000.0, 0.005]);
        let figures = [0.0, 0.25, 3_400.0, 54_400.0, 1_088_000.0].map(figure);
        assert_eq!(figures, ["0", "0.25", "3400", "54.4k", "1.09M"]);
    }

    #[test]
    fn a_chart_keeps_line_band_and_events_within_its_frame() {
        let series = Series {
            name: "a & b".to_owned(),
            points: vec![(0.0, 1.0), (2.0, 4.0)],
            deviation: vec![0.5, 1.0],
            dashed: true,
        };
        let plot = Plot {
            series: vec![series],
            events: vec![(1.0, "relay 2".to_owned())],
            right: Some(("producers".to_owned(), 2.0)),
            ..Plot::default()
        };
        let svg = plot.to_svg();
        // The band's top is the axis' top: y = 5 at the top, x = 2 at the right.
        assert!(svg.contains("684.0,44.0"), "{svg}");
        for part in ["<polyline", "<polygon", "a &amp; b", "relay 2", ">2.5<"] {
            assert!(svg.contains(part), "{part} is missing in {svg}");
        }
    }
}
