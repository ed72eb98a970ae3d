//! A relay's core: takes messages from producers and gives each to all listeners with a prefix of its
//! topic. Knows nothing of sockets: whole frames that were read go in, what is to be written stands in a
//! ring for each client.
//!
//! The driver's turn: [`Relay::begin_turn`] with the time, [`Relay::received`] for each connection that
//! had something, then until nothing is left [`Relay::poll_writable`], each written by
//! [`Relay::slices`] and [`Relay::written`], with [`Relay::settle`] between two rounds.

mod client;
mod client_frames;
mod command;
mod counters;
mod edge;
mod fan_out;
mod keeper_queue;
mod ledger;
pub mod limits;
mod listening;
mod missed;
mod missed_listeners;
mod overflow;
mod prefix;
mod producer;
mod report;
mod ring;
mod slow;
mod slow_notice;
mod spill;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::io::IoSlice;

use bytes::Bytes;
use quelea_elastic_proto::frame::{
    Acknowledge, ErrorCode, Frame, RelaySettings, SlowPolicy, WireError,
};
use quelea_elastic_proto::{ClientId, Epoch, Fence, RelayId, Slot, Time};
use slab::Slab;

use client::{Awaiting, Client, Kind, Phase};
pub use command::Command;
pub use counters::Counters;
use counters::Latency;
use fan_out::FilteredRun;
use keeper_queue::KeeperQueue;
use ledger::{EntryNumber, Holds};
use limits::{AWAITING_MAX, HANDSHAKE_MS, HEARTBEAT_MS, RING_BYTES_DEFAULT, RING_ITEMS_LOW};
use missed_listeners::MissedListeners;
use overflow::Overflow;
use prefix::PrefixMap;
use producer::Producer;
pub use slow_notice::SlowNotice;
use slow_notice::SlowNotices;
pub use spill::SpillJob;

/// The configuration of a relay.
#[derive(Clone, Debug)]
pub struct RelayConfig {
    /// The queue that it serves.
    pub queue: String,
    /// Its number, 0 if it stands alone.
    pub relay: RelayId,
    /// Clients must have this key; empty if none is asked for.
    pub key: Bytes,
    /// Most connections.
    pub connections_max: usize,
    /// What it does with messages, until a directory says otherwise.
    pub settings: RelaySettings,
}

/// Returns the settings where nobody says anything else.
#[must_use]
pub const fn default_settings() -> RelaySettings {
    RelaySettings {
        acknowledge: Acknowledge::Relayed,
        slow: SlowPolicy::DropNewest,
        ring_bytes_max: RING_BYTES_DEFAULT,
        report_ms: 1_000,
        keep: (String::new(), String::new()),
    }
}

/// A connection, or the peer of an edge, at the relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port {
    index: u32,
    generation: u32,
}

impl Port {
    /// Returns the index, which is small, and no two ports have the same at the same time.
    #[must_use]
    pub const fn index(self) -> usize {
        self.index as usize
    }
}

/// The core of one relay.
#[derive(Debug)]
pub struct Relay {
    config: RelayConfig,
    ring_bytes_max: usize,
    now: Time,
    /// No `SlotMap`: the lists of listeners and writers hold their dense indices, four bytes each, by which a driver
    /// keeps its outlets, too.
    clients: Slab<Client>,
    generation: u32,
    /// Those of the clients that listen, in the order in which they came.
    listeners: Vec<u32>,
    /// Those of the listeners that take everything.
    everything: Vec<u32>,
    prefixes: PrefixMap,
    /// Prefixes that are new, or gone, for edges that announce them to their producers.
    subscription_changes: VecDeque<(Bytes, bool)>,
    producers: Slab<Producer>,
    by_producer: BTreeMap<ClientId, u32>,
    last_slot: u32,
    /// Bytes of finished slots that wait for somebody: producers that have come and gone have them under way.
    finished_bytes: u64,
    /// There are producers that were given no credit yet, for that.
    withholds_credit: bool,
    /// Least epochs of producers that were moved away by force, and the order in which that was said.
    fenced: BTreeMap<ClientId, Epoch>,
    fenced_order: VecDeque<ClientId>,
    /// The highest that a directory has said.
    fence: Fence,
    draining: Option<Time>,
    /// A directory has had listeners leave when this fence was the highest.
    left_under: Option<Fence>,
    missed_listeners: MissedListeners,
    /// Clients with something to write.
    dirty: VecDeque<u32>,
    unsettled: Vec<u32>,
    /// Clients for whom too much waits: they are cut off when nobody walks the lists any more.
    overfull: Vec<(Port, Overflow)>,
    /// Listeners that lost something, for the log.
    slow_notices: SlowNotices,
    filtered_runs: Vec<FilteredRun>,
    keeper_queue: KeeperQueue,
    /// Bytes that each listener may have away at the policy Spill; 0 if there is no store for them.
    spill_bytes_max: u64,
    /// Listeners for whom the store may have something to do, and those who have left it.
    spill_due: VecDeque<u32>,
    spill_forgotten: VecDeque<Port>,
    lag_check_at: Option<Time>,
    heartbeat_at: Time,
    counters: Counters,
    latency: Latency,
    started_at: Time,
    reports: u64,
}

impl Relay {
    /// Returns a relay that has begun at `now`.
    #[must_use]
    pub fn new(config: RelayConfig, now: Time) -> Self {
        let mut relay = Self {
            ring_bytes_max: 0,
            now,
            clients: Slab::new(),
            generation: 0,
            listeners: Vec::new(),
            everything: Vec::new(),
            prefixes: PrefixMap::default(),
            subscription_changes: VecDeque::new(),
            producers: Slab::new(),
            by_producer: BTreeMap::new(),
            last_slot: 0,
            finished_bytes: 0,
            withholds_credit: false,
            fenced: BTreeMap::new(),
            fenced_order: VecDeque::new(),
            fence: Fence(0),
            draining: None,
            left_under: None,
            missed_listeners: MissedListeners::default(),
            dirty: VecDeque::new(),
            unsettled: Vec::new(),
            overfull: Vec::new(),
            slow_notices: SlowNotices::default(),
            filtered_runs: Vec::new(),
            keeper_queue: KeeperQueue::default(),
            spill_bytes_max: 0,
            spill_due: VecDeque::new(),
            spill_forgotten: VecDeque::new(),
            lag_check_at: None,
            heartbeat_at: now.plus_ms(u64::from(HEARTBEAT_MS)),
            counters: Counters::default(),
            latency: Latency::default(),
            started_at: now,
            reports: 0,
            config,
        };
        relay.set(relay.config.settings.clone());
        relay
    }

    /// The time of what follows.
    pub fn begin_turn(&mut self, now: Time) {
        self.now = self.now.max(now);
    }

    /// Takes a connection that somebody made. Returns its port.
    ///
    /// # Errors
    /// If there are too many: the error is to be sent, and the connection to be closed.
    pub fn connect(&mut self) -> Result<Port, WireError> {
        self.connect_as(Kind::Native)
    }

    fn connect_as(&mut self, kind: Kind) -> Result<Port, WireError> {
        if self.clients.len() >= self.config.connections_max {
            self.counters.refused += 1;
            let text =
                format!("{} connections are the limit of this relay", self.config.connections_max);
            return Err(WireError::fatal(ErrorCode::Limit, "connections", text));
        }
        self.generation = self.generation.wrapping_add(1);
        let generation = self.generation;
        let index = self.clients.insert(Client::new(generation, kind, self.now)) as u32;
        Ok(Port { index, generation })
    }

    /// A connection ended, from whichever side.
    pub fn disconnected(&mut self, port: Port) {
        if let Some(index) = self.index(port) {
            self.leave(index);
            self.clients.remove(index as usize);
        }
    }

    /// Takes all that a client was away. What is being written to it stays.
    fn leave(&mut self, index: u32) {
        let slots = std::mem::take(&mut self.clients[index as usize].slots);
        for (_, producer) in slots {
            self.abandon(producer);
        }
        self.end_listener(index);
        let Self { clients, producers, unsettled, counters, .. } = self;
        clients[index as usize].ring.clear(|part| {
            counters.dropped_gone += part.messages();
            if let ring::Dropped::Run(run) = part {
                release_in(producers, unsettled, run);
            }
        });
        // A run that was begun is written to its end if the client is sent why it has to go; nobody
        // waits for that.
        for run in clients[index as usize].ring.runs_mut() {
            release_in(producers, unsettled, run);
            run.holds = Holds::NONE;
        }
    }

    /// Returns whether this client was sent away: when all is written, close.
    #[must_use]
    pub fn is_closing(&self, port: Port) -> bool {
        self.index(port).is_none_or(|index| self.clients[index as usize].is_closing())
    }

    /// Returns whether it was sent away, and has had its time to read that.
    #[must_use]
    pub fn is_overdue(&self, port: Port) -> bool {
        self.index(port).is_some_and(|index| match self.clients[index as usize].phase {
            Phase::Closing(until) => until <= self.now,
            _ => false,
        })
    }

    /// Returns whether it has said HELLO, and was not refused.
    #[must_use]
    pub fn is_greeted(&self, port: Port) -> bool {
        self.index(port).is_some_and(|index| self.clients[index as usize].phase == Phase::Open)
    }

    /// Returns the next client that has something to write: to its socket, or for its edge.
    pub fn poll_writable(&mut self) -> Option<Port> {
        self.disconnect_overfull();
        while let Some(index) = self.dirty.pop_front() {
            if let Some(client) = self.clients.get_mut(index as usize)
                && std::mem::take(&mut client.dirty)
            {
                return Some(Port { index, generation: client.generation });
            }
        }
        None
    }

    /// Returns whether somebody has something to write.
    #[must_use]
    pub fn has_writable(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// The socket that took no more does again.
    pub fn unblocked(&mut self, port: Port) {
        if let Some(index) = self.index(port) {
            self.clients[index as usize].blocked = false;
        }
    }

    /// Fills `slices` with what is to be written to a client next. Returns how many of them are
    /// filled.
    pub fn slices<'a>(&'a mut self, port: Port, slices: &mut [IoSlice<'a>]) -> usize {
        match self.index(port) {
            Some(index) => self.clients[index as usize].ring.slices(slices),
            None => 0,
        }
    }

    /// So many bytes of the slices were written.
    pub fn written(&mut self, port: Port, bytes: usize) {
        let Some(index) = self.index(port) else { return };
        let late = self.config.settings.acknowledge.waits_for_listeners();
        let Self { clients, producers, unsettled, counters, latency, now, .. } = self;
        let Client { ring, listener, .. } = &mut clients[index as usize];
        if let Some(listener) = listener {
            listener.written_bytes += bytes as u64;
        }
        let mut passed = false;
        ring.advance(bytes, |mut run| {
            counters.messages_out += u64::from(run.messages);
            counters.bytes_out += run.bytes.len() as u64;
            latency.add(run.at, *now, run.messages);
            let Some(listener) = listener else { return };
            listener.sent += u64::from(run.messages);
            if late && run.holds.acknowledgement {
                let (producer, slot, entry) = (run.producer, run.slot, run.entry);
                listener.awaiting.push_back(Awaiting {
                    sent: listener.sent,
                    producer,
                    slot,
                    entry,
                    at: run.at,
                });
                passed |= listener.awaiting.len() > AWAITING_MAX;
                run.holds.acknowledgement = false;
            }
            if let Some(producer) = producers.get_mut(run.producer as usize)
                && producer.slot == run.slot
            {
                producer.bytes_out += run.bytes.len() as u64;
            }
            release_in(producers, unsettled, &run);
        });
        if passed {
            self.mark_overfull(index, Overflow::Awaiting);
        }
        self.make_room(index);
    }

    /// If a ring has room again: its listener is sent what is missing.
    fn make_room(&mut self, index: u32) {
        let client = &mut self.clients[index as usize];
        if client.ring.has_open_gaps()
            && client.ring.bytes() <= slow::low_mark(self.ring_bytes_max)
            && client.ring.items() <= RING_ITEMS_LOW
        {
            client.ring.close_gaps();
            if let Some(listener) = &mut client.listener {
                listener.dropping = false;
            }
            self.mark_dirty(index);
        }
        self.spill_is_due(index);
    }

    /// Returns when [`Relay::tick`] is due.
    #[must_use]
    pub fn deadline(&self) -> Time {
        self.lag_check_at.map_or(self.heartbeat_at, |at| at.min(self.heartbeat_at))
    }

    /// Time has passed.
    pub fn tick(&mut self) {
        let now = self.now;
        if self.lag_check_at.is_some_and(|at| at <= now) {
            self.check_lag(now);
        }
        if self.heartbeat_at <= now {
            self.heartbeat_at = now.plus_ms(u64::from(HEARTBEAT_MS) / 2);
            self.ping_silent_clients();
            self.check_stalled_programs();
        }
    }

    /// PINGs those from whom nothing came for a while, and lets go those who did not answer.
    fn ping_silent_clients(&mut self) {
        let native = |(_, client): &(usize, &Client)| client.kind == Kind::Native;
        let clients: Vec<usize> =
            self.clients.iter().filter(native).map(|(index, _)| index).collect();
        for index in clients {
            let client = &mut self.clients[index];
            let silent_ms = self.now.since_ms(client.last_read_at);
            let (code, text) = match client.phase {
                Phase::Closing(_) => continue,
                Phase::Greeting if silent_ms >= HANDSHAKE_MS => {
                    (ErrorCode::Order, format!("no HELLO came within {HANDSHAKE_MS} ms"))
                }
                Phase::Open if silent_ms >= 3 * u64::from(HEARTBEAT_MS) && client.pings > 1 => (
                    ErrorCode::Unavailable,
                    format!(
                        "nothing came for {silent_ms} ms, {} PINGs have no answer",
                        client.pings
                    ),
                ),
                Phase::Open if silent_ms >= u64::from(HEARTBEAT_MS) => {
                    client.pings += 1;
                    let number = u64::from(client.pings);
                    self.send(index as u32, &Frame::Ping(number));
                    continue;
                }
                _ => continue,
            };
            self.counters.silent += 1;
            self.refuse(index as u32, WireError::fatal(code, "", text));
        }
    }

    /// Takes no new producer from now on, and announces to all clients that it will stop.
    pub fn drain(&mut self, deadline_ms: u32) {
        self.draining = Some(self.now.plus_ms(u64::from(deadline_ms)));
        let native = |(_, client): &(usize, &Client)| {
            client.kind == Kind::Native && client.phase == Phase::Open
        };
        let clients: Vec<usize> =
            self.clients.iter().filter(native).map(|(index, _)| index).collect();
        for index in clients {
            self.send(index as u32, &Frame::Draining { deadline_ms });
        }
    }

    /// Returns when the drain has to be over, if there is one.
    #[must_use]
    pub const fn drains_until(&self) -> Option<Time> {
        self.draining
    }

    fn mark_dirty(&mut self, index: u32) {
        let client = &mut self.clients[index as usize];
        if !client.dirty {
            client.dirty = true;
            self.dirty.push_back(index);
        }
    }

    fn index(&self, port: Port) -> Option<u32> {
        let client = self.clients.get(port.index())?;
        (client.generation == port.generation).then_some(port.index)
    }
}

/// A run is not held by its ring any more.
fn release_in(producers: &mut Slab<Producer>, unsettled: &mut Vec<u32>, run: &ring::Run) {
    release_entry(producers, unsettled, (run.producer, run.slot, run.entry), run.holds);
}

/// The same by its producer's index and slot and its number there.
fn release_entry(
    producers: &mut Slab<Producer>,
    unsettled: &mut Vec<u32>,
    (index, slot, entry): (u32, Slot, EntryNumber),
    holds: Holds,
) {
    if let Some(producer) = producers.get_mut(index as usize)
        && producer.slot == slot
    {
        producer.ledger.release(entry, holds);
        if !producer.unsettled {
            producer.unsettled = true;
            unsettled.push(index);
        }
    }
}
