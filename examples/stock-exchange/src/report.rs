//! What a run has come to.

use serde::Serialize;

use crate::feed::Ticks;
use crate::packets::Passed;
use crate::program::Outcome;

/// The paper's five measures (§5.1, §5.3).
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Orders sent, completion times.
    pub gateway: Outcome,
    /// Orders received, answers sent.
    pub engine: Outcome,
    /// What the reporter used.
    pub reporter: Outcome,
    /// CPU time of the broker, where its process is known.
    pub broker_cpu_s: Option<f64>,
    /// Network packets, others' included.
    pub packets: Passed,
    /// The ways of the feed.
    pub feeds: Vec<Ticks>,
}

impl Report {
    /// As one object.
    pub fn print_json(&self) {
        match serde_json::to_string_pretty(self) {
            Ok(text) => println!("{text}"),
            Err(error) => println!("{{\"error\": \"{error}\"}}"),
        }
    }

    /// As a table for people.
    pub fn print(&self) {
        let Self { gateway, engine, reporter, packets, .. } = self;
        let [p50, p99, max] = gateway.completion_us.unwrap_or_default();
        println!("orders              {:>12}", gateway.orders);
        println!("orders sent         {:>12.0} /s", gateway.orders_per_s);
        println!("orders received     {:>12.0} /s", engine.orders_per_s);
        println!("answers sent        {:>12.0} /s", engine.answers_per_s);
        println!("answers received    {:>12.0} /s", gateway.answers_per_s);
        let mean = gateway.completion_mean_us.unwrap_or_default();
        println!(
            "completion time     {mean:>12.0} us on average; {p50:.0} us p50, {p99:.0} us p99, {max:.0} us at most"
        );
        println!("bytes of a message  {:>12.1}", engine.message_bytes.unwrap_or_default());
        let cpu = |seconds: f64| seconds * 1e6 / f64::from(gateway.orders.max(1));
        let broker = self.broker_cpu_s.map_or_else(|| "-".to_owned(), |s| format!("{:.1}", cpu(s)));
        println!(
            "CPU us an order     {broker:>12} broker, {:.1} gateway, {:.1} engine, {:.2} reporter",
            cpu(gateway.cpu_s),
            cpu(engine.cpu_s),
            cpu(reporter.cpu_s)
        );
        println!(
            "packets             {:>12}, {:.0} B and {:.1} us apart on average",
            packets.packets, packets.mean_bytes, packets.mean_gap_us
        );
        let reconnects = gateway.reconnects + engine.reconnects + reporter.reconnects;
        if reconnects > 0 {
            println!("connections anew    {reconnects:>12}");
        }
        for Ticks { way, received, missed, latency_us: [p50, p99, max] } in &self.feeds {
            println!(
                "quotes by {way:<10}{received:>12} came, {missed} did not; {p50:.0} us p50, {p99:.0} us p99, {max:.0} us at most"
            );
        }
        println!("book and answers are those that these orders lead to");
    }
}
