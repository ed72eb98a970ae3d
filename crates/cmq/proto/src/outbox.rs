//! What an endpoint has to send: the paper's map from key to batch, and its queue of deadlines. A
//! batch leaves before the message that would make it too large, or when its first message is as old
//! as the timeout allows.

mod classic_list;
mod control_frames;
mod copying;
mod counters;
mod deadlines;
mod departure;
mod destination;
mod destination_table;
mod ending;
mod fifo;
mod fragments;
mod parities;
mod pool;
mod priority;
mod profiles;
mod room;
mod scheduling;
mod sealing;
mod train;

use core::net::IpAddr;
use std::collections::VecDeque;

use bytes::BytesMut;
pub use counters::{DestinationStats, Sending};

use crate::Time;
use crate::config::{Config, DestinationOptions, Wire};
use crate::destination_id::DestinationId;
use crate::error::{DestinationError, PushError};
use crate::event::Event;
use crate::flight::Flight;
use crate::key::Key;
use crate::limits;
use crate::mode::Repair;
use crate::repair::PARITY_OVERHEAD_BYTES;
use crate::seal::{Keyring, Salts, TAG_BYTES};
use crate::transmit::Transmit;
use crate::wire::data::framed_bytes;
use deadlines::Deadlines;
use destination::Destination;
use destination_table::DestinationTable;
use fragments::Cut;
use pool::{Class, Pool};
use priority::PrioritySearchQueue;
use profiles::Profiles;
use train::{Closed, Shape, Train};

/// The destinations of an endpoint with their batches.
#[derive(Debug)]
pub(crate) struct Outbox {
    config: Config,
    destinations: DestinationTable,
    profiles: Profiles,
    deadlines: Deadlines,
    pool: Pool,
    /// Destinations that may have something to send, each once, in turns.
    ready: VecDeque<u32>,
    /// Memory of all batches, open and waiting.
    held_bytes: usize,
    /// Destinations that were pushed to since they were settled.
    unsettled: usize,
    last_generation: u32,
    last_flow: u32,
    /// The last PROBE's number.
    last_number: u64,
    /// This endpoint's, on all that it sends of its own.
    session: u64,
    keyring: Option<Keyring>,
    salts: Salts,
    /// When each flight has something to do.
    timers: PrioritySearchQueue,
    /// Flights that are due, while they are looked at.
    due: Vec<u32>,
    /// Destinations with idle flights.
    resting: VecDeque<DestinationId>,
    /// Small datagrams that leave before all trains.
    replies: VecDeque<Transmit>,
    events: VecDeque<Event>,
    counters: Sending,
}

impl Outbox {
    /// Creates an outbox without destinations. `seed` must be random.
    pub(crate) fn new(config: &Config, session: u64, seed: &[u8; 32]) -> Self {
        let mut salts = Salts::new(seed);
        Self {
            config: config.clone(),
            destinations: DestinationTable::new(salts.session() as usize),
            profiles: Profiles::default(),
            deadlines: Deadlines::default(),
            pool: Pool::default(),
            ready: VecDeque::new(),
            held_bytes: 0,
            unsettled: 0,
            last_generation: 0,
            last_flow: 0,
            last_number: 0,
            session,
            keyring: config
                .pre_shared_key
                .clone()
                .filter(|_| config.wire == Wire::Quelea)
                .map(Keyring::new),
            salts,
            timers: PrioritySearchQueue::default(),
            due: Vec::new(),
            resting: VecDeque::new(),
            replies: VecDeque::new(),
            events: VecDeque::new(),
            counters: Sending::default(),
        }
    }

    /// Returns the destination of `key`, which is made if there is none.
    pub(crate) fn destination(
        &mut self,
        key: Key,
        options: DestinationOptions,
    ) -> Result<DestinationId, DestinationError> {
        let options = options.checked(&key, &self.config)?;
        if let Some(slot) = self.destinations.find(&key) {
            let found = self.destinations.at(slot);
            let same = DestinationOptions { path_bytes: 0, ..options }
                == *self.profiles.get(found.profile);
            let id = DestinationId { slot, generation: found.generation };
            return if same { Ok(id) } else { Err(DestinationError::Conflict) };
        }
        let limit = self.config.destinations_max.min(limits::DESTINATIONS_MAX);
        if self.destinations.len() >= limit {
            return Err(DestinationError::TooMany { limit });
        }
        self.last_generation = self.last_generation.wrapping_add(1);
        self.last_flow = self.last_flow.wrapping_add(1);
        let slot = self.destinations.insert(Destination {
            key,
            next_sequence: 0,
            next_message: 0,
            train: None,
            busy: None,
            flow: self.last_flow,
            repeated: 0,
            generation: self.last_generation,
            path_bytes: u16::try_from(options.path_bytes).unwrap_or(u16::MAX),
            reliable: options.mode.is_reliable(),
            profile: self.profiles.share(options),
            class: Class::default(),
            given_up: 0,
            queued: false,
            unsettled: false,
            dead: false,
            closing: false,
        });
        Ok(DestinationId { slot, generation: self.last_generation })
    }

    /// Returns the destination of `key` if there is one.
    pub(crate) fn find(&self, key: &Key) -> Option<DestinationId> {
        let slot = self.destinations.find(key)?;
        Some(DestinationId { slot, generation: self.destinations.at(slot).generation })
    }

    /// Appends a message to the destination's batch; `now` is read only if a batch begins.
    #[inline]
    pub(crate) fn push(
        &mut self,
        id: DestinationId,
        message: &[u8],
        now: impl FnOnce() -> Time,
    ) -> Result<(), PushError> {
        let destination = self.destinations.get_mut(id).ok_or(PushError::Closed)?;
        if let Some(train) = &mut destination.train
            && train.push_here(message)
        {
            return Ok(());
        }
        self.push_further(id.slot, message, now)
    }

    /// Pushes a message that begins a segment or a train, or needs memory.
    #[cold]
    #[inline(never)]
    fn push_further(
        &mut self,
        slot: u32,
        message: &[u8],
        now: impl FnOnce() -> Time,
    ) -> Result<(), PushError> {
        let destination = self.destinations.at(slot);
        if destination.closing || destination.is_dead() {
            return Err(PushError::Closed);
        }
        if let Some(element) = self.element() {
            return self.push_to_list(slot, message, element, now);
        }
        let shape = self.shape(destination);
        let cut = self.cut(message.len(), &shape)?;
        let bytes = cut.map_or_else(|| framed_bytes(message.len()), |cut| cut.bytes_from(0));
        if !self.has_room(slot, bytes) && !self.make_room(slot, bytes)? {
            return Ok(());
        }
        if let Some(cut) = cut {
            self.push_fragments(slot, message, &cut, &shape, now);
            return Ok(());
        }
        if let Some(train) = &mut self.destinations.at_mut(slot).train {
            let before = train.capacity();
            let pushed = train.push(message, &shape);
            self.held_bytes += train.capacity() - before;
            if pushed {
                return Ok(());
            }
            self.close_train(slot);
        }
        self.begin_train(slot, message, now(), &shape);
        Ok(())
    }

    /// Begins a train with a message that a segment holds.
    fn begin_train(&mut self, slot: u32, message: &[u8], now: Time, shape: &Shape) {
        let destination = self.destinations.at(slot);
        let first = train::first_bytes(message.len(), shape);
        let buffer = self.pool.take(destination.class, first);
        let mut train = Train::begin(buffer, now, shape);
        let pushed = train.push(message, shape);
        debug_assert!(pushed, "an empty train has room for what a segment holds");
        self.open_train(slot, train, now);
    }

    /// Appends the fragments of a message to the open train, and to as many others as it takes.
    fn push_fragments(
        &mut self,
        slot: u32,
        message: &[u8],
        cut: &Cut,
        shape: &Shape,
        now: impl FnOnce() -> Time,
    ) {
        let mut next = 0;
        let repair = self.profiles.get(self.destinations.at(slot).profile).repair;
        // Parity leaves between two trains, but not in the midst of a message: with one after the other
        // that spans two, it would wait for the last.
        if let Some(train) = &mut self.destinations.at_mut(slot).train
            && (repair == Repair::None || train.has_room_for(cut, shape))
        {
            let before = train.capacity();
            next = train.push_fragments(message, cut, next, shape);
            self.held_bytes += train.capacity() - before;
            if next == cut.fragments() {
                return;
            }
        }
        let now = now();
        while next < cut.fragments() {
            self.close_train(slot);
            let rest = cut.bytes_from(next).min(shape.train_bytes);
            let buffer = self.pool.take(self.destinations.at(slot).class, rest);
            let mut train = Train::begin(buffer, now, shape);
            let first = next;
            next = train.push_fragments(message, cut, first, shape);
            debug_assert!(next > first, "an empty train has room for a fragment");
            self.open_train(slot, train, now);
        }
    }

    fn open_train(&mut self, slot: u32, train: Train, now: Time) {
        let destination = self.destinations.at_mut(slot);
        self.unsettled += usize::from(!core::mem::replace(&mut destination.unsettled, true));
        self.held_bytes += train.capacity();
        destination.train = Some(Box::new(train));
        let options = self.profiles.get(destination.profile);
        match options.timeout {
            None => self.deadlines.arm_uniform(slot, now.after(self.config.timeout)),
            Some(timeout) => self.deadlines.arm_other(slot, now.after(timeout)),
        }
    }

    /// The batch of the destination leaves as soon as it may.
    pub(crate) fn flush_destination(&mut self, id: DestinationId) {
        if self.destinations.get(id).is_some() {
            self.flush(id.slot);
        }
    }

    fn flush(&mut self, slot: u32) {
        let destination = self.destinations.at_mut(slot);
        if let Some(train) = &mut destination.train
            && !train.leaving
        {
            train.leaving = true;
            self.deadlines.disarm(slot);
            self.enqueue(slot);
        }
    }

    /// All batches leave as soon as they may.
    pub(crate) fn flush_all(&mut self) {
        while let Some((_, slot)) = self.deadlines.oldest() {
            self.flush(slot);
        }
    }

    /// Returns when [`Outbox::on_timer`] has something to do.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        let due = [self.deadlines.oldest(), self.timers.oldest()];
        due.into_iter().flatten().map(|(due, _)| due).min()
    }

    /// Returns whether [`Outbox::poll_transmit`] may have something.
    pub(crate) fn has_transmit(&self) -> bool {
        !self.ready.is_empty() || !self.replies.is_empty()
    }

    /// Takes the next event.
    pub(crate) fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Returns what was counted so far.
    pub(crate) fn counters(&self) -> Sending {
        Sending { destinations: self.destinations.len() as u64, ..self.counters }
    }

    /// Returns what is known of one destination; none if it is closed and forgotten.
    pub(crate) fn destination_stats(&self, id: DestinationId) -> Option<DestinationStats> {
        let destination = self.destinations.get(id)?;
        let busy = destination.busy.as_deref();
        let flight = destination.flight();
        let gathering = destination.train.as_ref().map_or(0, |train| train.len());
        Some(DestinationStats {
            messages: destination.next_message,
            datagrams: destination.next_sequence,
            repeated: u64::from(destination.repeated),
            under_way_bytes: flight.map_or(0, Flight::under_way_bytes),
            waiting_bytes: gathering + busy.map_or(0, |busy| busy.waiting_bytes),
            kept_bytes: busy.map_or(0, |busy| busy.kept_bytes),
            missing_messages: flight.map_or(0, Flight::missing_messages),
            lost_messages: flight.map_or(0, Flight::lost_messages),
            round_trip: flight.and_then(Flight::round_trip),
            is_dead: destination.is_dead(),
        })
    }

    /// Returns a train's buffer for the next.
    pub(crate) fn recycle(&mut self, buffer: BytesMut) {
        self.pool.recycle(buffer);
    }

    /// Returns the memory of what waits to be sent or acknowledged.
    pub(crate) const fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Returns whether everything that was pushed has left, and is acknowledged where it is
    /// reliable.
    pub(crate) fn is_settled(&self, id: DestinationId) -> bool {
        self.destinations.get(id).is_none_or(Destination::is_settled)
    }

    /// Returns whether [`Outbox::is_settled`] holds for all, when everything was asked for by
    /// [`Outbox::poll_transmit`].
    pub(crate) const fn all_settled(&self) -> bool {
        self.unsettled == 0
    }

    /// The path to `address` carries this much: new trains obey.
    pub(crate) fn set_path_bytes(&mut self, address: IpAddr, path_bytes: usize) {
        let path_bytes = path_bytes.clamp(limits::SEGMENT_BYTES_MIN, limits::DATAGRAM_BYTES_MAX);
        let path_bytes = u16::try_from(path_bytes).unwrap_or(u16::MAX);
        for (_, destination) in self.destinations.iter_mut() {
            if destination.key.address.ip() == address {
                destination.path_bytes = path_bytes;
            }
        }
    }

    /// Returns the sizes of the destination's trains.
    fn shape(&self, destination: &Destination) -> Shape {
        let train_bytes = self.config.qthresh;
        let mut segment_bytes =
            usize::from(destination.path_bytes).min(self.config.segment_bytes_max).min(train_bytes);
        if self.profiles.get(destination.profile).repair != Repair::None {
            segment_bytes -= PARITY_OVERHEAD_BYTES;
        }
        Shape { segment_bytes, train_bytes, tag_bytes: self.tag_bytes() }
    }

    const fn tag_bytes(&self) -> usize {
        if self.keyring.is_some() { TAG_BYTES } else { 0 }
    }

    /// Returns how a message of `bytes` is cut, if no datagram holds it.
    fn cut(&self, bytes: usize, shape: &Shape) -> Result<Option<Cut>, PushError> {
        let limit = self.config.message_bytes_max;
        if bytes > limit {
            return Err(PushError::TooLarge { bytes, limit });
        }
        if framed_bytes(bytes) <= shape.body_bytes() {
            return Ok(None);
        }
        // What does not fit in an empty outbox, or in a flow's window, can never be sent.
        let limit = self.config.outbox_bytes_max / 2;
        let window = limits::WINDOW_DATAGRAMS_MAX * shape.body_bytes();
        match Cut::of(bytes, shape).filter(|cut| cut.bytes_from(0) <= limit) {
            Some(cut) => Ok(Some(cut)),
            None => Err(PushError::TooLarge { bytes, limit: limit.min(window) }),
        }
    }

    /// The open train, if there is one, waits behind the full ones.
    fn close_train(&mut self, slot: u32) {
        let destination = self.destinations.at(slot);
        let shape = self.shape(destination);
        let destination = self.destinations.at_mut(slot);
        let Some(train) = destination.train.take() else { return };
        destination.class = Class::holding(train.len());
        self.held_bytes -= train.capacity();
        self.deadlines.disarm(slot);
        let classic = self.element().is_some();
        self.add_waiting(slot, if classic { train.close_list() } else { train.close(&shape) });
    }

    fn add_waiting(&mut self, slot: u32, train: Closed) {
        let bytes = train.bytes.capacity();
        let destination = self.destinations.at_mut(slot);
        self.unsettled += usize::from(!core::mem::replace(&mut destination.unsettled, true));
        let busy = destination.busy.get_or_insert_default();
        busy.waiting_bytes += bytes;
        busy.waiting.push_back(train);
        self.held_bytes += bytes;
        self.enqueue(slot);
    }

    /// Takes the oldest full train.
    fn take_waiting(&mut self, slot: u32) -> Option<Closed> {
        let busy = self.destinations.at_mut(slot).busy.as_mut()?;
        let train = busy.waiting.pop_front()?;
        busy.waiting_bytes -= train.bytes.capacity();
        self.held_bytes -= train.bytes.capacity();
        Some(train)
    }

    fn first_waiting(&self, slot: u32) -> Option<&Closed> {
        self.destinations.at(slot).busy.as_ref().and_then(|busy| busy.waiting.front())
    }

    /// Returns whether what leaves next begins in the midst of a message.
    fn next_continues(&self, slot: u32) -> bool {
        match (self.first_waiting(slot), &self.destinations.at(slot).train) {
            (Some(train), _) => train.continues,
            (None, Some(train)) => train.continues,
            (None, None) => false,
        }
    }

    fn has_waiting(&self, slot: u32) -> bool {
        self.first_waiting(slot).is_some()
    }

    fn has_more(&self, slot: u32) -> bool {
        self.has_waiting(slot)
            || self.destinations.at(slot).train.as_ref().is_some_and(|train| train.leaving)
    }

    /// The destination gets a turn to send.
    fn enqueue(&mut self, slot: u32) {
        let destination = self.destinations.at_mut(slot);
        if !destination.queued {
            destination.queued = true;
            self.ready.push_back(slot);
        }
    }
}
