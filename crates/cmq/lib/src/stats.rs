//! What an endpoint has counted.

use std::sync::atomic::Ordering::Relaxed;

use quelea_cmq_proto as proto;
use quelea_cmq_proto::wire::Malformed;

use crate::driver::Driver;

/// An endpoint's counters since it was made.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Datagrams that the kernel dropped because the socket's receive buffer was full.
    pub kernel_drops: u64,
    /// Datagrams given to the kernel.
    pub sent_datagrams: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Calls that gave them to the kernel.
    pub send_calls: u64,
    /// Trains that had to be sent one datagram at a time, because the kernel or the device takes none.
    pub train_fallbacks: u64,
    /// Datagrams, or trains, that were too long for the path.
    pub refused_too_long: u64,
    /// Those that had no way to their destination: no route, an interface that is down, nobody there.
    pub refused_unreachable: u64,
    /// Those that the kernel had no room for, for longer than a send may take.
    pub refused_no_room: u64,
    /// Those that the kernel did not take for another reason.
    pub refused_other: u64,
    /// Datagrams, or trains of them, that the kernel gave.
    pub received_buffers: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Calls that asked the kernel for them.
    pub receive_calls: u64,
    /// Errors that it returned instead; none of them stops the receiver.
    pub receive_errors: u64,
    /// What the state machine counted: messages, losses, repetitions, and what was dropped and why.
    pub proto: proto::Stats,
}

impl Stats {
    pub(crate) fn of(driver: &Driver) -> Self {
        let net = driver.net.counters();
        let failures = &driver.failures;
        Self {
            kernel_drops: net.kernel_drops.load(Relaxed),
            sent_datagrams: net.sent_datagrams.load(Relaxed),
            sent_bytes: net.sent_bytes.load(Relaxed),
            send_calls: net.send_calls.load(Relaxed),
            train_fallbacks: net.train_fallbacks.load(Relaxed),
            refused_too_long: failures.too_long.load(Relaxed),
            refused_unreachable: failures.unreachable.load(Relaxed),
            refused_no_room: failures.no_room.load(Relaxed),
            refused_other: failures.other.load(Relaxed),
            received_buffers: net.received_buffers.load(Relaxed),
            received_bytes: net.received_bytes.load(Relaxed),
            receive_calls: net.receive_calls.load(Relaxed),
            receive_errors: net.receive_errors.load(Relaxed),
            proto: driver.lock().proto.stats(),
        }
    }

    /// Returns all counters, with names that stay: the socket's begin with `socket_`, the outbox's
    /// with `sent_`, the inbox's with `received_`, those of datagrams that were dropped unread with
    /// `dropped_` and `malformed_`.
    pub fn counters(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
        let names = Malformed::COUNTERS.into_iter().map(|(_, name)| name);
        let malformed = names.zip(self.proto.dropped.malformed);
        self.socket().into_iter().chain(self.sent()).chain(self.received()).chain(malformed)
    }

    const fn socket(&self) -> [(&'static str, u64); 13] {
        [
            ("socket_kernel_drops", self.kernel_drops),
            ("socket_sent_datagrams", self.sent_datagrams),
            ("socket_sent_bytes", self.sent_bytes),
            ("socket_send_calls", self.send_calls),
            ("socket_train_fallbacks", self.train_fallbacks),
            ("socket_refused_too_long", self.refused_too_long),
            ("socket_refused_unreachable", self.refused_unreachable),
            ("socket_refused_no_room", self.refused_no_room),
            ("socket_refused_other", self.refused_other),
            ("socket_received_buffers", self.received_buffers),
            ("socket_received_bytes", self.received_bytes),
            ("socket_receive_calls", self.receive_calls),
            ("socket_receive_errors", self.receive_errors),
        ]
    }

    const fn sent(&self) -> [(&'static str, u64); 16] {
        let sent = &self.proto.sent;
        [
            ("sent_messages", sent.messages),
            ("sent_datagrams", sent.datagrams),
            ("sent_bytes", sent.bytes),
            ("sent_trains", sent.trains),
            ("sent_repeated", sent.repeated),
            ("sent_probes", sent.probes),
            ("sent_dropped_messages", sent.dropped_messages),
            ("sent_abandoned_messages", sent.abandoned_messages),
            ("sent_lost_messages", sent.lost_messages),
            ("sent_held_back", sent.held_back),
            ("sent_statuses", sent.statuses),
            ("sent_impossible_statuses", sent.impossible_statuses),
            ("sent_stray_answers", sent.stray_answers),
            ("sent_refusals", sent.refusals),
            ("sent_restarts", sent.restarts),
            ("sent_events_dropped", sent.events_dropped),
        ]
    }

    const fn received(&self) -> [(&'static str, u64); 34] {
        let received = &self.proto.received;
        let dropped = &self.proto.dropped;
        [
            ("received_datagrams", received.datagrams),
            ("received_bytes", received.bytes),
            ("received_messages", received.messages),
            ("received_message_bytes", received.message_bytes),
            ("received_duplicates", received.duplicates),
            ("received_reordered", received.reordered),
            ("received_late", received.late),
            ("received_beyond_window", received.beyond_window),
            ("received_inconsistent", received.inconsistent),
            ("received_old_session", received.old_session),
            ("received_unknown_mailbox", received.unknown_mailbox),
            ("received_mailbox_full", received.mailbox_full),
            ("received_mailbox_full_messages", received.mailbox_full_messages),
            ("received_reassembly_full", received.reassembly_full),
            ("received_incomplete_messages", received.incomplete_messages),
            ("received_lost_datagrams", received.lost_datagrams),
            ("received_lost_messages", received.lost_messages),
            ("received_unproven_lost_datagrams", received.unproven_lost_datagrams),
            ("received_unproven_lost_messages", received.unproven_lost_messages),
            ("received_repaired", received.repaired),
            ("received_parity_unused", received.parity_unused),
            ("received_probes", received.probes),
            ("received_replayed", received.replayed),
            ("received_statuses", received.statuses),
            ("received_challenges", received.challenges),
            ("received_refusals", received.refusals),
            ("received_withheld", received.withheld),
            ("received_proven", received.proven),
            ("received_evicted", received.evicted),
            ("received_evicted_unproven", received.evicted_unproven),
            ("received_restarts", received.restarts),
            ("received_events_dropped", received.events_dropped),
            ("dropped_not_authentic", dropped.not_authentic),
            ("dropped_replayed", dropped.replayed),
        ]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_counter_has_a_name_of_its_own() {
        let names: Vec<_> = Stats::default().counters().map(|(name, _)| name).collect();
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
    }
}
