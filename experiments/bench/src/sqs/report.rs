//! What an experiment found, for people and as JSON: the measures of BDQS §V-A.

use serde::Serialize;

use crate::clock::seconds_between;
use crate::latency::{Latencies, Percentiles};
use crate::sqs::sender::Trace;
use crate::sqs::service::ServerCost;
use crate::sqs::tracked_queue::{LostMessage, Outcome};
use crate::units::{milliseconds, thousands};

/// A side of the experiment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Side {
    /// Messages sent, or received and deleted.
    pub operations: u64,
    /// From the first call to the last response.
    pub seconds: f64,
    /// The paper's send rate, or receive+delete rate.
    pub per_s: f64,
    /// Of SendMessage, or of a ReceiveMessage that brought a message.
    pub response: Percentiles,
    /// Operations given up after all tries.
    pub failures: u64,
    pub first_failure: Option<String>,
}

/// The paper's measures of consistency.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Consistency {
    /// M: messages that the service said it has.
    pub messages: u64,
    /// lambda = duplicates / M.
    pub duplication_rate: f64,
    pub duplicates: u64,
    /// The part of lambda that the injected failures must cause: messages sent again since the response was lost, and
    /// messages that a receiver forgot, or that it had in its hands when it quit, by M.
    pub caused_duplication_rate: f64,
    /// epsilon = lost / M.
    pub loss_rate: f64,
    pub lost: u64,
    pub corrupted: u64,
    /// Messages whose sending was given up, and those of them that came.
    pub unconfirmed: u64,
    pub unconfirmed_received: u64,
    /// Of each pair of a sending and a receiving thread, the paper's.
    pub out_of_order_rate: f64,
    pub average_displacement: f64,
    /// Of each whole queue, where overlapping calls count as inversions.
    pub out_of_order_rate_of_queues: f64,
    pub average_displacement_of_queues: f64,
    /// Of each sender over all receivers, where no order of overlapping calls explains it.
    pub provably_out_of_order_rate: f64,
}

/// What an experiment found.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ExperimentReport {
    pub endpoint: String,
    pub queues: u32,
    pub senders: u32,
    pub receivers: u32,
    pub messages_per_sender: u32,
    pub size: usize,
    /// Messages of a call.
    pub batch: usize,
    pub fifo: bool,
    /// K, if the service has it.
    pub order_hint: Option<String>,
    pub concurrent: bool,
    pub send: Side,
    pub receive: Side,
    pub forgotten: u64,
    pub crashed: u64,
    /// Deletions of messages that were not in the receiver's hands any more.
    pub refused_deletions: u64,
    pub consistency: Consistency,
    /// The first of those that were lost. Their queues were not deleted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lost_messages: Vec<LostMessage>,
    pub server: Option<ServerCost>,
}

impl Side {
    pub(crate) fn of(traces: &[Trace]) -> Self {
        let operations = traces.iter().map(|trace| trace.messages).sum();
        let begun = traces.iter().filter_map(|trace| trace.first_ns).min().unwrap_or(0);
        let ended = traces.iter().map(|trace| trace.last_ns).max().unwrap_or(0);
        let seconds = seconds_between(begun, ended);
        let mut latencies = Latencies::new();
        traces.iter().flat_map(|trace| &trace.response_ns).for_each(|ns| latencies.record(*ns));
        Self {
            operations,
            seconds,
            per_s: operations as f64 / seconds.max(1e-9),
            response: latencies.percentiles(),
            failures: traces.iter().map(|trace| trace.failures).sum(),
            first_failure: traces.iter().find_map(|trace| trace.first_failure.clone()),
        }
    }

    fn line(&self, name: &str) -> String {
        let ms = milliseconds;
        let found = &self.response;
        let mut line = format!(
            "  {name:<16} {:>9}/s  ({} in {:.2} s)  response mean {}  p50 {}  p99 {}  max {}",
            thousands(self.per_s),
            thousands(self.operations as f64),
            self.seconds,
            ms(found.mean_ms),
            ms(found.p50_ms),
            ms(found.p99_ms),
            ms(found.max_ms),
        );
        if let Some(first) = &self.first_failure {
            line += &format!("  {} GIVEN UP, first: {first}", thousands(self.failures as f64));
        }
        line + "\n"
    }
}

impl Consistency {
    pub(crate) fn of(outcome: &Outcome, caused: u64) -> Self {
        let share = |count: u64| count as f64 / outcome.sent.max(1) as f64;
        let (pairs, queues) = (&outcome.of_pairs, &outcome.in_queue);
        Self {
            messages: outcome.sent,
            duplication_rate: share(outcome.duplicates),
            duplicates: outcome.duplicates,
            caused_duplication_rate: share(caused),
            loss_rate: share(outcome.lost),
            lost: outcome.lost,
            corrupted: outcome.corrupted,
            unconfirmed: outcome.unconfirmed,
            unconfirmed_received: outcome.unconfirmed_received,
            out_of_order_rate: pairs.rate(),
            average_displacement: pairs.average_displacement(),
            out_of_order_rate_of_queues: queues.rate(),
            average_displacement_of_queues: queues.average_displacement(),
            provably_out_of_order_rate: outcome.provably_out_of_order as f64
                / queues.messages.max(1) as f64,
        }
    }
}

impl ExperimentReport {
    /// Returns what was run, in words.
    fn parameters(&self) -> String {
        let hint = self.order_hint.as_ref().map_or_else(String::new, |k| format!(", K = {k}"));
        let batch = if self.batch > 1 { ", ten a call" } else { "" };
        let fifo = if self.fifo { ", FIFO" } else { "" };
        format!(
            "{}: Q = {}, T_send = {}, T_recv = {}, m = {}, L = {} B{hint}{fifo}{batch}{}\n",
            self.endpoint,
            thousands(f64::from(self.queues)),
            self.senders,
            self.receivers,
            self.messages_per_sender,
            thousands(self.size as f64),
            if self.concurrent { ", at the same time" } else { ", one after the other" },
        )
    }

    pub(crate) fn to_text(&self) -> String {
        let found = &self.consistency;
        let mut text = self.parameters();
        text += &self.send.line("send");
        text += &self.receive.line("receive+delete");
        if self.forgotten + self.crashed + self.refused_deletions > 0 {
            text += &format!(
                "  {:<16} {} messages forgotten, {} times quit, {} deletions refused\n",
                "receivers", self.forgotten, self.crashed, self.refused_deletions
            );
        }
        let percent = |rate: f64| format!("{:.4} %", rate * 100.0);
        let mut line = |name: &str, words: String| text += &format!("  {name:<16} {words}\n");
        line(
            "duplication",
            format!(
                "{}  ({} of {}; injected failures must cause {})",
                percent(found.duplication_rate),
                found.duplicates,
                found.messages,
                percent(found.caused_duplication_rate),
            ),
        );
        line(
            "loss",
            format!(
                "{}  ({} lost, {} corrupted deliveries; {} sends given up, of which {} came)",
                percent(found.loss_rate),
                found.lost,
                found.corrupted,
                found.unconfirmed,
                found.unconfirmed_received,
            ),
        );
        for LostMessage { queue_url, message_id, sender, of_sender } in &self.lost_messages {
            let place = format!("message {of_sender} of sender {sender}");
            line("lost", format!("{message_id}, {place}, in {queue_url}"));
        }
        let order = |rate: f64, displacement: f64, of: &str| {
            format!("{}, average displacement {displacement:.4} ({of})", percent(rate))
        };
        line(
            "out of order",
            order(found.out_of_order_rate, found.average_displacement, "pairs of threads"),
        );
        let queues = (found.out_of_order_rate_of_queues, found.average_displacement_of_queues);
        line("", order(queues.0, queues.1, "whole queues, overlapping calls as they arrived"));
        let proven = percent(found.provably_out_of_order_rate);
        line("", format!("{proven} (whole queues, beyond what overlapping calls explain)"));
        if let Some(server) = &self.server {
            let per_message = server.cpu_us as f64 / found.messages.max(1) as f64;
            line(
                "server",
                format!(
                    "{per_message:.1} µs CPU a message (send, receive, delete), {:.1} MB",
                    server.resident_bytes as f64 / 1e6
                ),
            );
        }
        text
    }
}
