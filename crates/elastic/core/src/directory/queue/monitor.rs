//! What relays report, made into rates: of relays per report, of producers as moving averages.

use std::collections::BTreeMap;

use quelea_elastic_proto::frame::{Capacity, ErrorCode, Frame, Host, ProducerReport, Report};
use quelea_elastic_proto::limits::REPORT_PRODUCERS_MAX;
use quelea_elastic_proto::{ClientId, RelayId, Time};

use crate::directory::Peer;
use crate::directory::context::Context;
use crate::directory::queue::meter::{SlotCounts, as_f64};
use crate::directory::queue::producer::Producer;
use crate::directory::queue::relay::Relay;
use crate::directory::queue::{Client, Queue};
use crate::limits::CLIENTS_PER_QUEUE_MAX;
use crate::plan::Load;

/// Samples of a relay that are kept for the planner.
const SAMPLES_MAX: usize = 16;

impl Queue {
    /// REPORT: a heartbeat with counts.
    pub(in crate::directory) fn report(
        &mut self,
        cx: &mut Context<'_>,
        peer: Peer,
        id: RelayId,
        report: Report,
    ) {
        let Some(relay) = self.relays.get_mut(&id).filter(|relay| relay.peer == Some(peer)) else {
            return;
        };
        relay.heard(cx.now);
        let mut whole = match relay.partial.take() {
            Some(mut partial) if partial.number == report.number => {
                partial.producers.extend_from_slice(&report.producers);
                partial.more = report.more;
                partial
            }
            _ => report,
        };
        if whole.producers.len() > CLIENTS_PER_QUEUE_MAX.max(REPORT_PRODUCERS_MAX) {
            let text = format!(
                "a report of {} producers, the most is {CLIENTS_PER_QUEUE_MAX}",
                whole.producers.len()
            );
            cx.refuse(peer, ErrorCode::Limit, "producers", text);
            whole.producers.clear();
            whole.more = false;
        }
        if whole.more {
            relay.partial = Some(whole);
            return;
        }
        let seconds = relay.measure(cx.now, &mut whole);
        self.measure_producers(cx, id, &whole.producers, seconds);
        whole.producers = Vec::new();
        self.listeners_reported(id, whole.listeners);
        if let Some(relay) = self.relays.get_mut(&id) {
            relay.report = whole;
        }
        self.check_reconnect_grace(cx);
        self.check_drains(cx);
    }

    /// HOST: counts for the sample that the REPORT behind it makes.
    pub(in crate::directory) fn host_reported(&mut self, peer: Peer, id: RelayId, host: Host) {
        if let Some(relay) = self.relays.get_mut(&id).filter(|relay| relay.peer == Some(peer)) {
            relay.host = host;
        }
    }

    fn measure_producers(
        &mut self,
        cx: &mut Context<'_>,
        id: RelayId,
        reports: &[ProducerReport],
        seconds: f64,
    ) {
        let before = self.relays.get_mut(&id).map(|relay| std::mem::take(&mut relay.slots));
        let before = before.unwrap_or_default();
        let mut slots = BTreeMap::new();
        for report in reports {
            let counts = SlotCounts::of(report);
            slots.insert(report.producer, counts);
            self.producer_reported(cx, id, report);
            let Some(producer) = self.producers.get_mut(&report.producer) else { continue };
            if producer.place.is_none_or(|place| place.relay == id) {
                let rates = counts.rates_since(before.get(&report.producer), seconds);
                producer.meter.add(&rates, seconds);
            }
        }
        let gone: Vec<ClientId> =
            before.keys().filter(|producer| !slots.contains_key(producer)).copied().collect();
        if let Some(relay) = self.relays.get_mut(&id) {
            relay.slots = slots;
        }
        for producer in gone {
            self.slot_is_gone(id, producer);
        }
    }

    /// A relay says that a producer is there.
    fn producer_reported(&mut self, cx: &mut Context<'_>, id: RelayId, report: &ProducerReport) {
        if !self.producers.contains_key(&report.producer) {
            if self.producers.len() + self.listeners.len() >= CLIENTS_PER_QUEUE_MAX {
                return;
            }
            let mut producer = Producer::new();
            producer.fixed = report.foreign;
            self.producers.insert(report.producer, producer);
            let until = cx.now.plus_ms(cx.settings.absent_ms);
            self.absent.insert((until, Client::Producer(report.producer)));
        }
        let Some(producer) = self.producers.get(&report.producer) else { return };
        let Some(place) = producer.place else {
            // A producer that said that it lost the relay knows better than the relay's half of the
            // connection.
            if producer.peer.is_none() {
                self.producer_is_at(cx, report.producer, id, report.epoch);
            }
            return;
        };
        if report.epoch > place.epoch {
            self.producer_is_at(cx, report.producer, id, report.epoch);
        } else if report.epoch < place.epoch && place.relay != id {
            // The producer is elsewhere, but its slot here has not ended: perhaps its connection died
            // without a word. After two periods it is ended from here.
            let since = cx.now.since_ms(producer.placed_at);
            let peer = self.relays.get(&id).and_then(|relay| relay.peer);
            if let Some(peer) = peer.filter(|_| since > 2 * u64::from(cx.settings.report_ms)) {
                let (fence, below) = (self.fence, place.epoch);
                cx.send(peer, Frame::FenceProducer { fence, producer: report.producer, below });
            }
        }
    }

    /// A producer's slot ended at a relay. Who is nowhere else and has no connection is forgotten.
    fn slot_is_gone(&mut self, relay: RelayId, id: ClientId) {
        let Some(producer) = self.producers.get(&id) else { return };
        let was_here = producer.place.is_some_and(|place| place.relay == relay);
        if was_here && producer.peer.is_none() {
            self.forget_producer(id);
        }
    }
}

impl Relay {
    /// Makes a sample of this report and the last one. Returns the seconds between them, 0 if there was
    /// none to compare with.
    fn measure(&mut self, now: Time, report: &mut Report) -> f64 {
        let host_before = self.host_before.replace(self.host).unwrap_or(self.host);
        let first = self.reported_at.is_none() || report.uptime_ms <= self.report.uptime_ms;
        self.reported_at = Some(now);
        if first {
            return 0.0;
        }
        let before = &self.report;
        let ms = report.uptime_ms - before.uptime_ms;
        let seconds = as_f64(ms) / 1e3;
        let rate = |now: u64, then: u64| as_f64(now.saturating_sub(then)) / seconds;
        let bytes_in = rate(report.bytes_in, before.bytes_in);
        let bytes_out = rate(report.bytes_out, before.bytes_out);
        // On loopback only the relay's own counts show, else the host's have other programs' bytes, too.
        let network_in = rate(self.host.network_in_bytes, host_before.network_in_bytes);
        let network_out = rate(self.host.network_out_bytes, host_before.network_out_bytes);
        let network = [bytes_in.max(network_in), bytes_out.max(network_out)];
        self.samples.push_back(Load {
            messages_in: rate(report.messages_in, before.messages_in),
            bytes_in,
            messages_out: rate(report.messages_out, before.messages_out),
            bytes_out,
            cpu: rate(report.cpu_us, before.cpu_us) / 1e6,
            clients: f64::from(report.listeners) + as_f64(report.producers.len() as u64),
            latency_us: f64::from(report.latency_mean_us),
            memory: share(as_f64(self.host.memory_bytes), self.host.memory_bytes_max),
            network: network_share(&self.capacity, network),
        });
        if self.samples.len() > SAMPLES_MAX {
            self.samples.pop_front();
        }
        seconds
    }
}

/// Returns the part of a capacity that is used; 0 where the capacity is not known.
fn share(used: f64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { used / as_f64(of) }
}

/// Returns the part of its network that is used, by bytes in and out a second: of both directions
/// the larger one.
fn network_share(capacity: &Capacity, [bytes_in, bytes_out]: [f64; 2]) -> f64 {
    share(bytes_in, capacity.bytes_in_per_s).max(share(bytes_out, capacity.bytes_out_per_s))
}
