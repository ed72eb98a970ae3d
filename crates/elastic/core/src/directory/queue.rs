//! One owned queue: its relays, its clients, and the steps that come with time.

pub(super) mod budget;
mod drain;
mod events;
mod failover;
pub(super) mod lifecycle;
mod listener;
mod meter;
mod monitor;
mod operator_move;
mod planning;
mod producer;
mod reconnect_grace;
pub(super) mod record;
mod record_writer;
pub(super) mod relay;
mod relocation;
mod takeover;

use std::collections::{BTreeMap, BTreeSet};

use quelea_elastic_proto::frame::{ErrorCode, Frame, RelaySettings};
use quelea_elastic_proto::{ClientId, Fence, RelayId, Time};

use self::budget::Budget;
use self::events::Events;
use self::listener::Listener;
use self::planning::Planning;
use self::producer::Producer;
use self::reconnect_grace::ReconnectGrace;
use self::record_writer::RecordWriter;
use self::relay::Relay;
use crate::directory::context::Context;
use crate::directory::{Definition, Peer, QueueStatus};
use crate::plan::{Load, QueueKpi, RelayState};

/// A queue that this directory owns.
pub(super) struct Queue {
    pub(super) name: String,
    pub(super) fence: Fence,
    pub(super) definition: Definition,
    /// Grows with each change; above all of earlier owners' by the fence in its upper half.
    pub(super) generation: u64,
    pub(super) relays: BTreeMap<RelayId, Relay>,
    pub(super) next_relay: u64,
    pub(super) producers: BTreeMap<ClientId, Producer>,
    pub(super) listeners: BTreeMap<ClientId, Listener>,
    pub(super) clients_by_peer: BTreeMap<Peer, BTreeSet<Client>>,
    /// Clients without a connection, by when they are forgotten.
    pub(super) absent: BTreeSet<(Time, Client)>,
    /// Producers that need a relay.
    pub(super) unassigned: BTreeSet<ClientId>,
    /// Moves, and tries to be made again, by their deadline.
    pub(super) moves_due: BTreeSet<(Time, ClientId)>,
    /// Moves that wait for listeners, by where they go.
    pub(super) moves_prepared: BTreeMap<RelayId, BTreeSet<ClientId>>,
    /// What a producer of which no rate is known is taken for; counted anew with [`Self::recount`], since a failover asks
    /// for each of its producers.
    pub(super) usual_load: f64,
    pub(super) moves_done: u64,
    pub(super) moves_aborted: u64,
    /// The generation of the relays that was sent to listeners last.
    pub(super) listen_generation: u64,
    /// Listeners that moves wait for: all but the lagging ones.
    pub(super) listeners_counted: usize,
    pub(super) starts: Starts,
    /// Ended relays that are not one of ours: the provider's word of their end is not about ours.
    pub(super) strays: BTreeMap<RelayId, u32>,
    pub(super) writer: RecordWriter,
    /// After a takeover: the listeners that moves wait for although they are not known yet.
    pub(super) reconnect_grace: Option<ReconnectGrace>,
    pub(super) budget: Budget,
    pub(super) planning: Planning,
    pub(super) events: Events,
    pub(super) deleting: bool,
    /// How it was defined while it was being deleted: it is made so when nothing of it is left.
    pub(super) successor: Option<Definition>,
    /// The directory stops, and the relays with it.
    pub(super) stopping: bool,
    /// Of a queue that was made on first use, and not defined since.
    pub(super) first_use: Option<FirstUse>,
    pub(super) watch_at: Time,
    /// The deadline that the directory knows of.
    pub(super) scheduled_at: Time,
}

/// A client of a queue. One id may be both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Client {
    Producer(ClientId),
    Listener(ClientId),
}

/// A queue that nobody has defined.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FirstUse {
    /// Since when it has no client.
    pub(super) unused_since: Option<Time>,
}

/// How starting relays goes.
#[derive(Default)]
pub(super) struct Starts {
    /// In a row.
    pub(super) failures: u32,
    pub(super) not_before: Time,
    /// Relays that died and are to be replaced.
    pub(super) owed: u32,
    /// The record has no room for another one, which users have been notified of.
    pub(super) full: bool,
    /// The directory has no place for another one, which users have been notified of.
    pub(super) no_place: bool,
}

impl Queue {
    pub(super) fn new(cx: &Context<'_>, name: String, fence: Fence, first_relay: u64) -> Self {
        let definition = cx.settings.definition.clone();
        let budget = Budget::new(cx.now, cx.settings.relay_cost_per_hour_micros, 0);
        Self {
            name,
            fence,
            planning: Planning::new(cx.now),
            definition,
            generation: fence.0 << 32,
            relays: BTreeMap::new(),
            next_relay: first_relay,
            producers: BTreeMap::new(),
            listeners: BTreeMap::new(),
            clients_by_peer: BTreeMap::new(),
            absent: BTreeSet::new(),
            unassigned: BTreeSet::new(),
            moves_due: BTreeSet::new(),
            moves_prepared: BTreeMap::new(),
            moves_done: 0,
            moves_aborted: 0,
            listen_generation: 0,
            listeners_counted: 0,
            usual_load: 1.0,
            starts: Starts::default(),
            strays: BTreeMap::new(),
            writer: RecordWriter::default(),
            reconnect_grace: None,
            budget,
            events: Events::default(),
            deleting: false,
            successor: None,
            stopping: false,
            first_use: None,
            watch_at: cx.now,
            scheduled_at: cx.now,
        }
    }

    /// Returns when [`Self::tick`] is due.
    pub(super) fn deadline(&self) -> Time {
        let mut at = self.watch_at;
        // A queue that is being deleted or stopped is planned no more.
        if !self.is_ending() {
            at = at.min(self.planning.due_at());
        }
        if let Some((due, _)) = self.moves_due.first() {
            at = at.min(*due);
        }
        if let Some(retry) = self.writer.deadline() {
            at = at.min(retry);
        }
        if let Some(grace) = &self.reconnect_grace {
            at = at.min(grace.until());
        }
        at
    }

    /// Does what is due by time.
    pub(super) fn tick(&mut self, cx: &mut Context<'_>) {
        self.check_reconnect_grace(cx);
        self.moves_tick(cx);
        if self.watch_at <= cx.now {
            self.watch_at = cx.now.plus_ms(self.watch_period_ms(cx));
            self.forget_absent(cx);
            self.recount();
            self.check_relays(cx);
            self.check_drains(cx);
            self.start_missing(cx);
            self.assign_all(cx);
            self.end_if_unused(cx);
        }
        if self.planning.due_at() <= cx.now && !self.is_ending() {
            self.count_spent(cx);
            self.plan_and_act(cx);
        }
    }

    /// Returns the milliseconds between two looks at all relays and clients.
    pub(super) fn watch_period_ms(&self, cx: &Context<'_>) -> u64 {
        u64::from(cx.settings.report_ms / 2).max(1)
    }

    /// Returns what relays need to know of the queue.
    pub(super) fn relay_settings(&self, cx: &Context<'_>) -> RelaySettings {
        let keep = if self.definition.keep.is_empty() {
            (String::new(), String::new())
        } else {
            (cx.settings.keeper.clone(), self.definition.keep.clone())
        };
        RelaySettings {
            acknowledge: self.definition.acknowledge,
            slow: self.definition.slow,
            ring_bytes_max: self.definition.ring_bytes_max,
            report_ms: cx.settings.report_ms,
            keep,
        }
    }

    /// Returns whether it was made by using it, and nobody has defined it.
    pub(super) const fn is_first_use(&self) -> bool {
        self.first_use.is_some()
    }

    /// A queue that only its use has made ends when nobody has used it for a while, and is made anew when it is used
    /// again.
    fn end_if_unused(&mut self, cx: &mut Context<'_>) {
        if self.is_ending() {
            return;
        }
        let Some(first_use) = &mut self.first_use else { return };
        // Who has lost the directory may be at a relay still.
        let is_at_relays =
            self.relays.values().any(|relay| relay.report.listeners > 0 || !relay.slots.is_empty());
        if is_at_relays || !(self.producers.is_empty() && self.listeners.is_empty()) {
            first_use.unused_since = None;
            return;
        }
        let since = *first_use.unused_since.get_or_insert(cx.now);
        let most_ms = cx.settings.first_use.unused_ms_max;
        if most_ms > 0 && cx.now.since_ms(since) >= most_ms {
            let reason = format!("made on first use, and unused for {most_ms} ms");
            self.log(cx, "unused", format!("queue {}", self.name), reason);
            self.delete(cx);
        }
    }

    /// The definition came anew.
    pub(super) fn define(&mut self, cx: &mut Context<'_>, definition: Definition) {
        if self.deleting {
            self.successor = Some(definition);
            return;
        }
        if self.first_use.take().is_some() {
            self.change();
        }
        if self.definition != definition {
            self.set_definition(cx, definition);
        }
    }

    fn set_definition(&mut self, cx: &mut Context<'_>, definition: Definition) {
        self.definition = definition;
        self.change();
        let (subject, reason) = (format!("queue {}", self.name), self.definition.to_json());
        self.log(cx, "define", subject, reason.to_string());
        self.send_settings(cx);
        self.start_missing(cx);
    }

    /// Returns what a relay gets when it has registered.
    pub(super) fn registered(&self, cx: &Context<'_>) -> Frame {
        Frame::Registered { fence: self.fence, settings: self.relay_settings(cx) }
    }

    /// Sends all connected relays the fence and the settings as they are now.
    pub(super) fn send_settings(&mut self, cx: &mut Context<'_>) {
        let registered = self.registered(cx);
        for relay in self.relays.values().filter(|relay| relay.serves()) {
            if let Some(peer) = relay.peer {
                cx.send(peer, registered.clone());
            }
        }
    }

    /// The queue is to be no more: its clients get a notice, its relays are ended.
    pub(super) fn delete(&mut self, cx: &mut Context<'_>) {
        self.successor = None;
        if !self.deleting {
            self.deleting = true;
            self.change();
            self.log(cx, "delete", format!("queue {}", self.name), "asked for".to_owned());
        }
        let peers: Vec<Peer> = self.clients_by_peer.keys().copied().collect();
        for peer in peers {
            let text = format!("queue {} was deleted", self.name);
            cx.refuse(peer, ErrorCode::Queue, "queue", text);
        }
        self.forget_clients();
        let relays: Vec<RelayId> = self.relays.keys().copied().collect();
        for relay in relays {
            self.stop_relay(cx, relay, "the queue is deleted");
        }
    }

    /// The directory stops. Its connections are closed, and no STOP is sent to the relays: they write out what they
    /// have when the provider asks them to end.
    pub(super) fn stop(&mut self, cx: &mut Context<'_>) {
        self.stopping = true;
        self.forget_clients();
        let relays: Vec<RelayId> = self.relays.keys().copied().collect();
        for id in relays {
            if let Some(relay) = self.relays.get_mut(&id) {
                relay.peer = None;
            }
            self.stop_relay(cx, id, "the directory stops");
        }
    }

    /// Returns whether nothing is begun any more: no relay is started, nothing is planned.
    pub(super) fn is_ending(&self) -> bool {
        self.deleting || self.stopping
    }

    fn forget_clients(&mut self) {
        self.clients_by_peer.clear();
        self.producers.clear();
        self.listeners.clear();
        self.absent.clear();
        self.unassigned.clear();
        self.moves_due.clear();
        self.moves_prepared.clear();
        self.listeners_counted = 0;
    }

    /// Returns whether it is deleted, and nothing of it is left but the record.
    pub(super) fn is_gone(&self) -> bool {
        self.deleting && self.relays.is_empty()
    }

    /// Makes the queue that was defined while this one was being deleted, once nothing of this one is left. Relays
    /// and writes are numbered on: what the provider and the store say yet of this one's is not about the new one's.
    pub(super) fn begin_anew(&mut self, cx: &mut Context<'_>) {
        if !self.is_gone() {
            return;
        }
        let Some(definition) = self.successor.take() else { return };
        let new = Self::new(cx, self.name.clone(), self.fence, self.next_relay);
        *self = Self {
            generation: self.generation,
            strays: std::mem::take(&mut self.strays),
            writer: std::mem::take(&mut self.writer),
            events: std::mem::take(&mut self.events),
            stopping: self.stopping,
            watch_at: self.watch_at,
            scheduled_at: self.scheduled_at,
            ..new
        };
        self.set_definition(cx, definition);
    }

    /// A connection ended.
    pub(super) fn disconnected(&mut self, cx: &mut Context<'_>, peer: Peer) {
        for client in self.clients_by_peer.remove(&peer).unwrap_or_default() {
            let gone_at = cx.now.plus_ms(cx.settings.absent_ms);
            match client {
                Client::Producer(id) => self.producer_disconnected(cx, id),
                Client::Listener(id) => {
                    if let Some(listener) = self.listeners.get_mut(&id) {
                        listener.peer = None;
                    }
                }
            }
            self.absent.insert((gone_at, client));
        }
    }

    /// Links a client to the connection over which it is reached now.
    pub(super) fn link(&mut self, peer: Peer, client: Client) {
        let before = match client {
            Client::Producer(id) => self.producers.get(&id).and_then(|producer| producer.peer),
            Client::Listener(id) => self.listeners.get(&id).and_then(|listener| listener.peer),
        };
        if let Some(before) = before {
            self.unlink(before, client);
        }
        self.clients_by_peer.entry(peer).or_default().insert(client);
    }

    pub(super) fn unlink(&mut self, peer: Peer, client: Client) {
        if let Some(clients) = self.clients_by_peer.get_mut(&peer) {
            clients.remove(&client);
            if clients.is_empty() {
                self.clients_by_peer.remove(&peer);
            }
        }
    }

    /// A client leaves by itself.
    pub(super) fn close(&mut self, cx: &mut Context<'_>, peer: Peer, id: ClientId) {
        if self.is_linked(peer, Client::Producer(id)) {
            self.unlink(peer, Client::Producer(id));
            self.forget_producer(id);
        }
        if self.is_linked(peer, Client::Listener(id)) {
            self.unlink(peer, Client::Listener(id));
            self.forget_listener(cx, id);
        }
    }

    pub(super) fn is_linked(&self, peer: Peer, client: Client) -> bool {
        self.clients_by_peer.get(&peer).is_some_and(|clients| clients.contains(&client))
    }

    fn forget_absent(&mut self, cx: &mut Context<'_>) {
        while let Some(&(due, client)) = self.absent.first() {
            if due > cx.now {
                break;
            }
            self.absent.remove(&(due, client));
            match client {
                Client::Producer(id) => {
                    let Some(producer) = self.producers.get(&id) else { continue };
                    if producer.peer.is_some() {
                        continue;
                    }
                    let place = producer.place.and_then(|place| self.relays.get(&place.relay));
                    if place.is_some_and(|relay| relay.slots.contains_key(&id)) {
                        let again = cx.now.plus_ms(cx.settings.absent_ms);
                        self.absent.insert((again, client));
                    } else {
                        self.forget_producer(id);
                    }
                }
                Client::Listener(id) => {
                    if self.listeners.get(&id).is_some_and(|listener| listener.peer.is_none()) {
                        self.forget_listener(cx, id);
                    }
                }
            }
        }
    }

    /// Counts anew who is where: steps keep these figures only roughly.
    pub(super) fn recount(&mut self) {
        for relay in self.relays.values_mut() {
            (relay.producers, relay.projected, relay.moves) = (0, 0.0, 0);
        }
        self.usual_load = self.mean_load();
        let usual = self.usual_load;
        for producer in self.producers.values() {
            let place = producer.place.map(|place| place.relay);
            let target = producer.moving.as_ref().map(|moving| moving.to);
            if let Some(relay) = place.and_then(|place| self.relays.get_mut(&place)) {
                relay.producers += 1;
                relay.moves += u32::from(target.is_some());
            }
            if let Some(relay) = target.and_then(|target| self.relays.get_mut(&target)) {
                relay.producers += usize::from(place != target);
                relay.moves += 1;
            }
            if let Some(relay) = target.or(place).and_then(|to| self.relays.get_mut(&to)) {
                relay.projected += producer.estimate(usual);
            }
        }
    }

    pub(super) fn status(&self, now: Time) -> QueueStatus {
        let mut load = Load::default();
        for relay in self.relays.values().filter(|relay| relay.serves()) {
            let one = relay.load();
            load.messages_in += one.messages_in;
            load.bytes_in += one.bytes_in;
            load.messages_out += one.messages_out;
            load.bytes_out += one.bytes_out;
            load.cpu += one.cpu;
            load.clients += one.clients;
            load.latency_us = load.latency_us.max(one.latency_us);
            load.memory = load.memory.max(one.memory);
            load.network = load.network.max(one.network);
        }
        let up = self.relays.values().filter(|relay| relay.state() == RelayState::Up);
        let kpi = QueueKpi::of(&self.definition.sla, up.map(Relay::capacity), &load);
        QueueStatus {
            name: self.name.clone(),
            fence: Some(self.fence),
            generation: self.generation,
            definition: self.definition.clone(),
            relays: self.relays.values().map(Relay::status).collect(),
            producers: self.producers.len(),
            listeners: self.listeners.len(),
            moves_under_way: self
                .producers
                .values()
                .filter(|producer| producer.moving.is_some())
                .count(),
            moves_done: self.moves_done,
            moves_aborted: self.moves_aborted,
            load,
            kpi,
            spent_this_hour_micros: self.budget.spent(now),
            minimal: self.planning.budget_spent,
        }
    }

    /// Sends each client and relay to the owner of the queue, before it is forgotten here.
    pub(super) fn redirect_all(&self, cx: &mut Context<'_>, owner: &str, retry_after_ms: u32) {
        let relays = self.relays.values().filter_map(|relay| relay.peer);
        for peer in self.clients_by_peer.keys().copied().chain(relays) {
            cx.send(
                peer,
                Frame::Redirect {
                    queue: self.name.clone(),
                    address: owner.to_owned(),
                    retry_after_ms,
                },
            );
        }
    }
}
