//! When a relay counts as dead, and what becomes of its clients.
//!
//! One witness alone may be wrong: its connection to this directory ended, its heartbeats are missed, or a
//! client lost it. Two of these three together are believed; so is the provider alone, and silence alone
//! when it lasts.

use quelea_elastic_proto::{ClientId, Frame, RelayId};

use crate::directory::Effect;
use crate::directory::Peer;
use crate::directory::context::Context;
use crate::directory::queue::relay::{Relay, RelayPhase};
use crate::directory::queue::{Client, Queue};

impl Queue {
    /// RELAY_LOST: a client cannot reach a relay.
    pub(in crate::directory) fn relay_lost(
        &mut self,
        cx: &mut Context<'_>,
        peer: Peer,
        id: ClientId,
        relay: RelayId,
    ) {
        let produces = self.is_linked(peer, Client::Producer(id));
        let listens = self.is_linked(peer, Client::Listener(id));
        if let Some(lost) = self.relays.get_mut(&relay)
            && lost.serves()
            && (produces || listens)
        {
            lost.witnesses.clients.insert(id);
            self.check_alive(cx, relay);
        }
        if listens {
            self.listener_lost(id, relay);
        }
        if produces {
            self.producer_lost_relay(cx, id, relay);
        }
    }

    /// A directory that was itself stopped (its machine was paused) heard nothing because it did not listen: the
    /// time of its sleep does not count against its relays. Known by its checks, which are at most two periods late
    /// otherwise.
    pub(in crate::directory) fn forgive_pause(&mut self, cx: &mut Context<'_>) {
        let late_ms = cx.now.since_ms(self.watch_at);
        if late_ms <= 2 * self.watch_period_ms(cx) {
            return;
        }
        self.watch_at = cx.now;
        for relay in self.relays.values_mut() {
            relay.heard_at = relay.heard_at.plus_ms(late_ms).min(cx.now);
            relay.started_at = relay.started_at.plus_ms(late_ms).min(cx.now);
        }
        let reason =
            format!("relays were not looked at for {late_ms} ms: nothing is made of their silence");
        self.log(cx, "slept", format!("queue {}", self.name), reason);
    }

    /// Declares the relay dead if there are witnesses enough.
    pub(super) fn check_alive(&mut self, cx: &mut Context<'_>, id: RelayId) {
        let Some(relay) = self.relays.get(&id) else { return };
        let silent_ms = cx.now.since_ms(relay.heard_at);
        let missed = silent_ms / u64::from(cx.settings.report_ms.max(1));
        let silent = missed >= u64::from(cx.settings.reports_missed_max);
        let clients = relay.witnesses.clients.len();
        let witnesses =
            usize::from(relay.witnesses.closed) + usize::from(silent) + usize::from(clients > 0);
        if witnesses < 2 && missed < u64::from(cx.settings.reports_missed_alone_max) {
            return;
        }
        let connection = if relay.witnesses.closed { "closed" } else { "open" };
        let reason = format!(
            "nothing heard for {silent_ms} ms ({missed} reports missed), connection {connection}, \
             {clients} clients lost it"
        );
        self.declare_dead(cx, id, &reason);
    }

    /// The relay is dead: it is fenced, its clients are assigned elsewhere, another one is started.
    pub(super) fn declare_dead(&mut self, cx: &mut Context<'_>, id: RelayId, reason: &str) {
        let fence = self.fence;
        let Some(relay) = self.relays.get_mut(&id).filter(|relay| relay.serves()) else { return };
        if relay.phase == RelayPhase::Up {
            self.starts.owed += 1;
        }
        let producers = relay.producers;
        relay.phase = RelayPhase::Stopping { asked_at: cx.now };
        let name = relay.handle.clone();
        if let Some(peer) = relay.peer {
            // It may only sleep: then this is the first thing that it reads.
            cx.send(peer, Frame::Stop { fence });
        }
        self.change();
        self.after_save(Effect::StopRelay { queue: self.name.clone(), relay: id, name });
        let reason = format!("{reason}; {producers} producers were there");
        self.log(cx, "failover", format!("relay {}", id.0), reason);
        self.send_relay_lost(cx, id);
        self.leave_relay(cx, id, "the relay is dead");
        self.send_listen_at(cx);
        self.start_missing(cx);
    }

    /// Its producers take no acknowledgement from it any more. If it only sleeps, or was cut off, it would
    /// find that its listeners have left, and take all that it still has for delivered.
    fn send_relay_lost(&self, cx: &mut Context<'_>, id: RelayId) {
        let at = |place: Option<super::producer::Place>| place.is_some_and(|at| at.relay == id);
        for (client, producer) in self.producers.iter().filter(|(_, one)| at(one.place)) {
            if let Some(peer) = producer.peer {
                let (queue, cause) =
                    (self.name.clone(), "the directory holds it for dead".to_owned());
                cx.send(peer, Frame::RelayLost { queue, client: *client, relay: id, cause });
            }
        }
    }

    /// Nobody is at this relay any more, whatever they say: its producers get another.
    pub(super) fn leave_relay(&mut self, cx: &mut Context<'_>, id: RelayId, reason: &str) {
        let at = |place: Option<super::producer::Place>| place.is_some_and(|at| at.relay == id);
        let producers = self.producers.iter().filter(|(_, producer)| at(producer.place));
        let here: Vec<ClientId> = producers.map(|(id, _)| *id).collect();
        for producer in &here {
            if let Some(producer) = self.producers.get_mut(producer) {
                (producer.place, producer.failures) = (None, 0);
            }
        }
        self.abort_moves_to(cx, id, true, reason);
        self.producers.retain(|id, producer| {
            !(producer.fixed && producer.peer.is_none() && here.binary_search(id).is_ok())
        });
        for producer in here {
            self.assign(cx, producer, reason);
        }
    }

    /// The connection of a relay to this directory ended.
    pub(in crate::directory) fn relay_disconnected(
        &mut self,
        cx: &mut Context<'_>,
        peer: Peer,
        id: RelayId,
    ) {
        let Some(relay) = self.relays.get_mut(&id) else { return };
        if relay.peer != Some(peer) {
            return;
        }
        relay.peer = None;
        relay.partial = None;
        if relay.serves() {
            relay.witnesses.closed = true;
            self.check_alive(cx, id);
        }
    }

    fn producer_lost_relay(&mut self, cx: &mut Context<'_>, id: ClientId, relay: RelayId) {
        let Some(producer) = self.producers.get_mut(&id) else { return };
        let goes_there = producer.moving.as_ref();
        if goes_there.is_some_and(|moving| moving.to == relay && moving.epoch.is_some()) {
            if producer.place.is_some_and(|place| place.relay == relay) {
                producer.place = None;
            }
            self.abort_move(cx, id, "the producer lost the relay to which it was to go");
            return;
        }
        if producer.place.is_some_and(|place| place.relay == relay) {
            producer.place = None;
            producer.avoid = Some(relay);
            if producer.moving.is_none() {
                self.retry_later(cx, id);
            }
        }
    }
}

impl Relay {
    /// A sign of life: what was said of its death is void.
    pub(super) fn heard(&mut self, now: quelea_elastic_proto::Time) {
        self.heard_at = now;
        self.witnesses.clients.clear();
    }
}
