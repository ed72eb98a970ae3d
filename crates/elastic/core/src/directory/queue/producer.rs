//! Producers: opening, choosing a relay, leaving.

use quelea_elastic_proto::frame::{ErrorCode, OpenProducer};
use quelea_elastic_proto::{ClientId, Epoch, MessageSeq, RelayId, Time};

use crate::directory::context::Context;
use crate::directory::definition::Definition;
use crate::directory::queue::meter::Meter;
use crate::directory::queue::relay::Relay;
use crate::directory::queue::relocation::Move;
use crate::directory::queue::{Client, Queue};
use crate::directory::{Peer, ProducerStatus};
use crate::limits::CLIENTS_PER_QUEUE_MAX;
use crate::plan::{Policy, has_room_for_newcomers};

/// One producer of a queue.
pub(in crate::directory) struct Producer {
    /// Its connection to this directory.
    pub(super) peer: Option<Peer>,
    /// Where it sends, as it or its relay said.
    pub(super) place: Option<Place>,
    pub(super) moving: Option<Move>,
    /// The highest that it was given or has shown.
    pub(super) epoch: Epoch,
    /// When its last move from relay to relay ended, zero if it never moved.
    pub(super) moved_at: Time,
    /// Since when it sends where it does.
    pub(super) placed_at: Time,
    /// It could not send there the last time.
    pub(super) avoid: Option<RelayId>,
    /// Assignments in a row that failed.
    pub(super) failures: u32,
    /// No new assignment before this.
    pub(super) retry_at: Option<Time>,
    /// It speaks ZMTP to the relay itself.
    pub(super) fixed: bool,
    /// Bytes a second that it said it would send.
    pub(super) expected: f64,
    pub(super) meter: Meter,
}

/// A producer's stay at a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) relay: RelayId,
    pub(super) epoch: Epoch,
}

impl Producer {
    pub(in crate::directory) fn new() -> Self {
        Self {
            peer: None,
            place: None,
            moving: None,
            epoch: Epoch::default(),
            moved_at: Time::ZERO,
            placed_at: Time::ZERO,
            avoid: None,
            failures: 0,
            retry_at: None,
            fixed: false,
            expected: 0.0,
            meter: Meter::default(),
        }
    }

    /// Returns the bytes a second that it will likely send; `usual` if nothing is known of it yet.
    pub(super) fn estimate(&self, usual: f64) -> f64 {
        let known = self.meter.bytes_in_max().max(self.expected);
        if known > 0.0 || self.meter.is_known() { known } else { usual }
    }

    pub(in crate::directory) fn status(&self, id: ClientId) -> ProducerStatus {
        ProducerStatus {
            id,
            relay: self.place.map(|place| place.relay),
            epoch: self.place.map(|place| place.epoch).unwrap_or_default(),
            moving_to: self.moving.as_ref().map(|moving| moving.to),
            connected: self.peer.is_some(),
            fixed: self.fixed,
            fast: self.meter.fast,
            slow: self.meter.slow,
            moved_at: self.moved_at,
        }
    }
}

impl Queue {
    pub(in crate::directory) fn open_producer(
        &mut self,
        cx: &mut Context<'_>,
        peer: Peer,
        open: &OpenProducer,
    ) {
        if self.refuse_client(cx, peer, Client::Producer(open.producer)) {
            return;
        }
        let id = open.producer;
        if open.current.is_none() && self.is_linked(peer, Client::Producer(id)) {
            self.reopen_producer(cx, id);
            return;
        }
        self.link(peer, Client::Producer(id));
        let producer = self.producers.entry(id).or_insert_with(Producer::new);
        producer.peer = Some(peer);
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        {
            producer.expected = open.expected_bytes_per_s as f64;
        }
        // What was under way over the old connection is void: where the producer says that it is, it is.
        self.end_move(id);
        if let Some((relay, epoch, _)) = open.current {
            self.producer_is_at(cx, id, relay, epoch);
        } else if let Some(producer) = self.producers.get_mut(&id) {
            producer.place = None;
        }
        self.assign(cx, id, "it opened the queue");
    }

    /// A producer without a relay asks over the same connection: it gets again what it was sent, or
    /// waits for what it waits for.
    fn reopen_producer(&mut self, cx: &mut Context<'_>, id: ClientId) {
        if let Some(producer) = self.producers.get_mut(&id) {
            producer.place = None;
        }
        self.send_produce_at(cx, id);
        self.assign(cx, id, "it asked for a relay");
    }

    /// Returns whether a client cannot be taken; it has got the error then.
    pub(super) fn refuse_client(&self, cx: &mut Context<'_>, peer: Peer, client: Client) -> bool {
        if self.deleting {
            let text = format!("queue {} is being deleted", self.name);
            cx.refuse(peer, ErrorCode::Unavailable, "queue", text);
            return true;
        }
        let known = match client {
            Client::Producer(id) => self.producers.contains_key(&id),
            Client::Listener(id) => self.listeners.contains_key(&id),
        };
        let clients = self.producers.len() + self.listeners.len();
        if !known && clients >= CLIENTS_PER_QUEUE_MAX {
            let text = format!(
                "queue {} has {clients} clients, the most is {CLIENTS_PER_QUEUE_MAX}",
                self.name
            );
            cx.refuse(peer, ErrorCode::Limit, "queue", text);
            return true;
        }
        false
    }

    /// PRODUCING: the producer sends at this relay now.
    pub(in crate::directory) fn producing(
        &mut self,
        cx: &mut Context<'_>,
        id: ClientId,
        epoch: Epoch,
        relay: RelayId,
        first: MessageSeq,
    ) {
        let moved = self.producers.get(&id).and_then(|producer| producer.moving.as_ref());
        let moved = moved.filter(|moving| moving.to == relay && moving.epoch == Some(epoch));
        if let Some(moving) = moved {
            let (from, begun_at, why) = (moving.from, moving.begun_at, moving.reason.clone());
            self.end_move(id);
            if let Some(from) = from {
                self.moves_done += 1;
                if let Some(producer) = self.producers.get_mut(&id) {
                    producer.moved_at = cx.now;
                }
                let (subject, took) = (moved_from_to(id, from, relay), cx.now.since_ms(begun_at));
                let reason = format!("{why} (at message {}, after {took} ms)", first.0);
                self.log(cx, "moved", subject, reason);
            }
        }
        if let Some(producer) = self.producers.get_mut(&id) {
            (producer.failures, producer.avoid, producer.retry_at) = (0, None, None);
        }
        self.producer_is_at(cx, id, relay, epoch);
        self.assign(cx, id, "the relay where it sends is not there any more");
    }

    /// Takes over what a producer or a relay says of a producer's place, unless it is older than what is
    /// known.
    pub(super) fn producer_is_at(
        &mut self,
        cx: &Context<'_>,
        id: ClientId,
        relay: RelayId,
        epoch: Epoch,
    ) {
        let Some(producer) = self.producers.get_mut(&id) else { return };
        producer.epoch = producer.epoch.max(epoch);
        if producer.place.is_some_and(|place| place.epoch > epoch) {
            return;
        }
        if !self.relays.get(&relay).is_some_and(Relay::serves) {
            producer.place = None;
            return;
        }
        if producer.place.map(|place| place.relay) != Some(relay) {
            producer.placed_at = cx.now;
            self.generation += 1;
        }
        producer.place = Some(Place { relay, epoch });
    }

    /// Assigns the producer a relay if it has none that serves.
    pub(super) fn assign(&mut self, cx: &mut Context<'_>, id: ClientId, reason: &str) {
        let Some(producer) = self.producers.get(&id) else { return };
        if producer.peer.is_none() || producer.fixed || producer.moving.is_some() {
            return;
        }
        if producer.place.is_some() {
            self.unassigned.remove(&id);
            return;
        }
        if producer.retry_at.is_some_and(|at| at > cx.now) {
            return;
        }
        match self.choose_relay(producer.avoid) {
            Some(to) => {
                self.unassigned.remove(&id);
                self.begin_move(cx, id, to, reason.to_owned());
            }
            None => {
                self.unassigned.insert(id);
            }
        }
    }

    /// Assigns relays to all that have none.
    pub(super) fn assign_all(&mut self, cx: &mut Context<'_>) {
        for id in self.unassigned.clone() {
            self.assign(cx, id, "a relay is there");
        }
    }

    /// Returns the relay that the next producer gets, connected ones first. Under policy `steady`
    /// the oldest one with room for newcomers ([`has_room_for_newcomers`]), if that is known; else
    /// the least loaded by projection.
    pub(super) fn choose_relay(&self, avoid: Option<RelayId>) -> Option<RelayId> {
        let clients_max = self.definition.sla.clients_max as usize;
        let rank = |relay: &Relay| {
            let clients = relay.producers + relay.report.listeners as usize;
            let full = clients_max > 0 && clients >= clients_max;
            let doubtful = relay.witness_count() > 0;
            (Some(relay.id) == avoid, doubtful, relay.peer.is_none(), full)
        };
        let up = || self.relays.values().filter(|relay| relay.takes_producers());
        let best = up().map(rank).min();
        let roomy = up()
            .filter(|relay| Some(rank(relay)) == best && self.has_room_for_newcomers(relay))
            .map(|relay| relay.id)
            .min();
        if roomy.is_some() {
            return roomy;
        }
        let best = up().min_by(|a, b| {
            let load = || a.use_of_capacity().total_cmp(&b.use_of_capacity());
            let fewer = || a.producers.cmp(&b.producers);
            rank(a).cmp(&rank(b)).then_with(load).then_with(fewer).then(a.id.cmp(&b.id))
        });
        best.map(|relay| relay.id)
    }

    /// Returns whether it is known that a relay is loaded little enough. Not while no producer's
    /// rate is known there: then those that come add nothing to what is projected, and all would be
    /// sent to one relay.
    fn has_room_for_newcomers(&self, relay: &Relay) -> bool {
        let Definition { sla, policy, .. } = &self.definition;
        let known = relay.projected > relay.producers as f64;
        if *policy != Policy::Steady || !known {
            return false;
        }
        let mut load = relay.load();
        load.bytes_in = load.bytes_in.max(relay.projected);
        load.bytes_out = load.bytes_out.max(relay.projected * f64::from(relay.report.listeners));
        load.clients = (relay.producers + relay.report.listeners as usize) as f64;
        has_room_for_newcomers(sla, &relay.capacity(), &load)
    }

    /// Computes the mean of the known producers' rates: what a new one is taken for.
    pub(super) fn mean_load(&self) -> f64 {
        let mut known = (0.0, 0.0);
        for producer in self.producers.values().filter(|producer| producer.meter.is_known()) {
            known = (known.0 + producer.meter.bytes_in_max(), known.1 + 1.0);
        }
        if known.1 > 0.0 { f64::max(known.0 / known.1, 1.0) } else { 1.0 }
    }

    pub(super) fn producer_disconnected(&mut self, cx: &mut Context<'_>, id: ClientId) {
        if self.producers.get(&id).is_some_and(|producer| producer.moving.is_some()) {
            self.abort_move(cx, id, "the producer's connection to the directory ended");
        }
        self.unassigned.remove(&id);
        if let Some(producer) = self.producers.get_mut(&id) {
            producer.peer = None;
        }
    }

    pub(super) fn forget_producer(&mut self, id: ClientId) {
        self.end_move(id);
        self.unassigned.remove(&id);
        if let Some(at) = self.producers.get(&id).and_then(|producer| producer.retry_at) {
            self.moves_due.remove(&(at, id));
        }
        if let Some(producer) = self.producers.remove(&id) {
            self.generation += u64::from(producer.place.is_some());
        }
    }
}

fn moved_from_to(id: ClientId, from: RelayId, to: RelayId) -> String {
    format!("producer {:032x} from relay {} to relay {}", id.0, from.0, to.0)
}

impl Relay {
    /// Returns projected bytes over what it can carry; the bytes themselves where that is unknown.
    fn use_of_capacity(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let capacity = self.capacity.bytes_in_per_s as f64;
        if capacity > 0.0 { self.projected / capacity } else { self.projected }
    }
}
