//! Figures 5 to 8 of the EQS paper, of one run of ours. The paper shows means of five runs; its x axes are
//! the minutes of its run, and ours are too, whatever the speed.

use std::fs;
use std::io;
use std::path::Path;

use quelea_plot::{Plot, Series};

use crate::elastic::paper::report::{Bin, PaperReport};

/// Writes `figure5.svg` to `figure8.svg`.
pub(crate) fn write(directory: &Path, report: &PaperReport) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    for (number, plot) in (5..).zip(all(report)) {
        fs::write(directory.join(format!("figure{number}.svg")), plot.to_svg())?;
    }
    Ok(())
}

fn all(report: &PaperReport) -> [Plot; 4] {
    let speed = report.speed;
    let series = |name: &str, value: &dyn Fn(&Bin) -> f64| Series {
        name: name.to_owned(),
        points: report.bins.iter().map(|bin| (bin.minute * speed, value(bin))).collect(),
        ..Series::default()
    };
    let processed = |bin: &Bin| bin.relays.iter().map(|relay| relay.messages_in_per_min).sum();
    let plot = |title: String, y_label: &str, series: Vec<Series>| Plot {
        title,
        x_label: "minute of the paper's run".to_owned(),
        y_label: y_label.to_owned(),
        right: None,
        series,
        events: Vec::new(),
    };
    let how = format!("policy {}, {} x speed", report.policy, report.speed);
    let produced = Series { dashed: true, ..series("produced", &|bin| bin.sent_per_min) };
    let up = report.relays_up().map(|(at, relay)| (at * speed, relay.to_owned()));
    let figure5 = Plot {
        events: up.collect(),
        ..plot(
            format!("Messages produced, and processed by the relays ({how})"),
            "messages a minute",
            vec![series("processed by relays", &processed), produced.clone()],
        )
    };
    let figure6 = plot(
        format!("Messages delivered to all listeners ({how})"),
        "messages a minute",
        vec![series("delivered", &|bin| bin.delivered_per_min), produced],
    );
    let figure7 = Plot {
        right: Some(("producers".to_owned(), report.per_min)),
        ..plot(
            format!("Messages processed by each relay ({how})"),
            "messages a minute",
            relays(report)
                .map(|id| {
                    let value = |bin: &Bin| {
                        let relay = bin.relays.iter().find(|relay| relay.id == id);
                        relay.map_or(0.0, |relay| relay.messages_in_per_min)
                    };
                    series(&format!("relay {id}"), &value)
                })
                .collect(),
        )
    };
    let latency = Series {
        deviation: report.bins.iter().map(|bin| bin.latency_deviation_ms).collect(),
        ..series("mean and standard deviation", &|bin| bin.latency_mean_ms)
    };
    let p99 = Series { dashed: true, ..series("99th percentile", &|bin| bin.latency_p99_ms) };
    let figure8 = plot(format!("Latency of delivery ({how})"), "ms", vec![latency, p99]);
    [figure5, figure6, figure7, figure8]
}

/// Returns the relays that there were, by number.
fn relays(report: &PaperReport) -> impl Iterator<Item = u64> {
    let mut ids: Vec<u64> =
        report.bins.iter().flat_map(|bin| bin.relays.iter().map(|relay| relay.id)).collect();
    ids.sort_unstable();
    ids.dedup();
    ids.into_iter()
}
