//! What a relay says of itself: REPORT, and its counters.

use quelea_elastic_proto::frame::{ProducerReport, Report};
use quelea_elastic_proto::limits::REPORT_PRODUCERS_MAX;

use crate::relay::producer::State;
use crate::relay::{Counters, Relay};

impl Relay {
    /// Builds the next report, in as many frames as its producers need. `cpu_us` is the processor
    /// time that the process has used.
    pub fn report(&mut self, cpu_us: u64) -> Vec<Report> {
        let (latency_mean_us, latency_p99_us) = self.latency.take();
        let present =
            self.producers.iter().filter(|(_, producer)| producer.state == State::Started);
        let mut producers: Vec<ProducerReport> = present
            .map(|(_, producer)| ProducerReport {
                producer: producer.id,
                epoch: producer.epoch,
                next: producer.next,
                messages: producer.messages,
                bytes: producer.bytes,
                bytes_out: producer.bytes_out,
                foreign: producer.foreign,
            })
            .collect();
        let counters = self.counters;
        let mut reports = Vec::new();
        // All pieces of a report have its number.
        self.reports += 1;
        while reports.is_empty() || !producers.is_empty() {
            let rest = producers.split_off(producers.len().min(REPORT_PRODUCERS_MAX));
            reports.push(Report {
                number: self.reports,
                uptime_ms: self.now.since_ms(self.started_at),
                messages_in: counters.messages_in,
                bytes_in: counters.bytes_in,
                messages_out: counters.messages_out,
                bytes_out: counters.bytes_out,
                dropped: counters.dropped(),
                spilled: counters.spilled,
                left_behind: counters.left_behind,
                listeners: u32::try_from(self.listeners.len()).unwrap_or(u32::MAX),
                cpu_us,
                queued_bytes: self.queued_bytes(),
                latency_mean_us,
                latency_p99_us,
                drained: self.is_drained(),
                more: !rest.is_empty(),
                producers,
            });
            producers = rest;
        }
        reports
    }

    /// Returns the bytes of messages that wait in rings, and of all that is in files; shared ones count
    /// for each.
    #[must_use]
    pub fn queued_bytes(&self) -> u64 {
        self.clients.iter().map(|(_, client)| client.waiting_bytes()).sum()
    }

    /// Returns whether it is to drain, no producer is left, and nothing waits to be written or
    /// acknowledged.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.draining.is_some() && self.producers.is_empty() && self.queued_bytes() == 0
    }

    /// Counts since the start.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// Returns how many connections there are, those of edges too.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.clients.len()
    }

    /// Returns how many producers and how many listeners there are.
    #[must_use]
    pub fn clients(&self) -> (usize, usize) {
        (self.by_producer.len(), self.listeners.len())
    }
}
