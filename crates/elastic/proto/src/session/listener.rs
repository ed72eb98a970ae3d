//! A listener's session: it is attached to all relays of the queue that the directory says, and gives
//! its program each producer's messages in their order, each once, and every gap.
//!
//! Each slot at a relay covers its producer's messages from START's `first` on, without a hole but those
//! that a GAP says. For each producer the session knows `done`: all below was given, was a gap, or did
//! not match. A slot that begins at or below `done` is *open*: its messages are given at once, and those
//! below `done` are repetitions. A slot that begins above is *held* until others have brought `done` to
//! its beginning, or until nobody can any more: then there is a gap.

mod links;
mod manual_acks;
mod order;
mod state;

use std::collections::VecDeque;

use bytes::Bytes;
use rustc_hash::FxHashMap;
use slab::Slab;
use thiserror::Error;

use self::links::LinkState;
use self::manual_acks::ManualAcks;
use self::state::{Producer, ProducerSlot};
use crate::error::FrameError;
use crate::frame::{Acknowledge, Frame, GapCause, OpenListener, RelayAddress, SlowPolicy};
use crate::limits::{LISTENER_BYTES_MAX, LISTENER_EVENTS_MAX, PREFIX_BYTES_MAX, PREFIXES_MAX};
use crate::parts::{self, Parts};
use crate::session::outbox::Outbox;
use crate::session::{Link, Output, Session, SessionEvent};
use crate::{ClientId, Fence, MessageSeq, RelayId, Time};

/// Who listens to what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerConfig {
    /// The queue's name.
    pub queue: String,
    /// Who: chosen at random, never used before.
    pub listener: ClientId,
    /// What happens when it is too slow; `None`: as the queue says.
    pub slow: Option<SlowPolicy>,
    /// Prefixes of the first part; one empty prefix is everything.
    pub prefixes: Vec<Bytes>,
    /// The program says when it is done with messages ([`ListenerSession::acknowledge`]); else they are
    /// when it takes them.
    pub acknowledge_by_hand: bool,
}

/// Something for the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A message.
    Message(Message),
    /// Messages that do not come.
    Gap(GapNotice),
}

/// A message. Its parts share the memory of what was read with it: whoever keeps a few messages for long
/// should copy them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Who sent it.
    pub producer: ClientId,
    /// Its number: counts the producer's messages.
    pub sequence: MessageSeq,
    /// All parts, as ZMTP frames.
    pub encoded: Bytes,
}

impl Message {
    /// Returns the first part, which prefixes are compared with.
    #[must_use]
    pub fn topic(&self) -> &[u8] {
        parts::first(&self.encoded).unwrap_or_default() // It was checked when it was read.
    }

    /// Returns the second part, empty if there is none: the body of a message of two parts.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        self.parts().nth(1).unwrap_or_default()
    }

    /// Returns all parts as ZMTP frames, as [`parts::encode`] makes them.
    #[must_use]
    pub const fn framed(&self) -> &Bytes {
        &self.encoded
    }

    /// Returns all parts.
    #[must_use]
    pub fn parts(&self) -> Parts<'_> {
        Parts::new(&self.encoded)
    }
}

/// Messages of one producer that do not come, or came so late that they were dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GapNotice {
    /// Whose.
    pub producer: ClientId,
    /// The first one.
    pub from: MessageSeq,
    /// One past the last one.
    pub to: MessageSeq,
    /// How many of these matched, if that is known.
    pub messages: Option<u64>,
    /// Why.
    pub cause: GapCause,
}

/// Why a subscription was not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SubscribeError {
    /// More than [`PREFIX_BYTES_MAX`].
    #[error("prefix: {value} bytes are more than the limit of {PREFIX_BYTES_MAX}")]
    TooLong {
        /// Its bytes.
        value: usize,
    },
    /// More than [`PREFIXES_MAX`].
    #[error("prefixes: {value} are more than the limit of {PREFIXES_MAX}")]
    TooMany {
        /// How many it would be.
        value: usize,
    },
    /// It is not subscribed to.
    #[error("prefix: it is not subscribed to")]
    Unknown,
}

/// What has happened so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListenerStats {
    /// Messages given to the program.
    pub messages: u64,
    /// Repetitions that were dropped.
    pub duplicates: u64,
    /// Gaps that were announced.
    pub gaps: u64,
    /// Moves of producers that were seen through: a held slot that was opened without a gap.
    pub moves: u64,
    /// The longest that messages of the last such move were held, microseconds.
    pub last_hold_us: u64,
    /// Connections to relays that were lost.
    pub relays_lost: u64,
}

/// A listener of one queue.
#[derive(Debug)]
pub struct ListenerSession {
    config: ListenerConfig,
    /// Attached or to be attached: one for each relay that the directory said; and those that are being left.
    links: Vec<LinkState>,
    slots: Slab<ProducerSlot>,
    producers: Slab<Producer>,
    by_id: FxHashMap<ClientId, usize>,
    /// Producers of which a slot is held.
    waiting: Vec<usize>,
    /// Producers without a slot, by when they were left, with the number of that leaving.
    departed: VecDeque<(usize, u64)>,
    departures: u64,
    manual_acks: Option<ManualAcks>,
    acknowledge: Acknowledge,
    fence: Fence,
    generation: u64,
    /// The last LISTENING: its generation, and the relays in it.
    announced: Option<(u64, Vec<RelayId>)>,
    /// When to ask the directory again, if it has said nothing.
    open_retry_at: Option<Time>,
    events: VecDeque<Event>,
    /// Bytes of the messages in `events`.
    events_bytes: usize,
    /// Bytes of the messages in held slots.
    held_bytes: usize,
    last_ping: u64,
    outbox: Outbox,
    closed: bool,
    stats: ListenerStats,
}

impl ListenerSession {
    /// Returns a session that knows of no directory yet.
    ///
    /// # Errors
    /// If a prefix is too long, or they are too many.
    pub fn new(config: ListenerConfig) -> Result<Self, SubscribeError> {
        if config.prefixes.len() > PREFIXES_MAX {
            return Err(SubscribeError::TooMany { value: config.prefixes.len() });
        }
        for prefix in &config.prefixes {
            check_prefix(prefix)?;
        }
        let manual_acks = config.acknowledge_by_hand.then(ManualAcks::default);
        let outbox = Outbox::new(config.queue.clone(), config.listener);
        Ok(Self {
            config,
            manual_acks,
            links: Vec::new(),
            slots: Slab::new(),
            producers: Slab::new(),
            by_id: FxHashMap::default(),
            waiting: Vec::new(),
            departed: VecDeque::new(),
            departures: 0,
            acknowledge: Acknowledge::Relayed,
            fence: Fence(0),
            generation: 0,
            announced: None,
            open_retry_at: None,
            events: VecDeque::new(),
            events_bytes: 0,
            held_bytes: 0,
            last_ping: 0,
            outbox,
            closed: false,
            stats: ListenerStats::default(),
        })
    }

    /// Subscribes to one prefix more, at all relays.
    ///
    /// # Errors
    /// If it is too long, or there are too many.
    pub fn subscribe(&mut self, prefix: Bytes) -> Result<(), SubscribeError> {
        check_prefix(&prefix)?;
        let value = self.config.prefixes.len() + 1;
        if value > PREFIXES_MAX {
            return Err(SubscribeError::TooMany { value });
        }
        self.config.prefixes.push(prefix.clone());
        self.send_to_attached(&Frame::Subscribe(prefix));
        Ok(())
    }

    /// Unsubscribes from one prefix, at all relays. A prefix that was subscribed to twice is still
    /// there once.
    ///
    /// # Errors
    /// If it is not subscribed to.
    pub fn unsubscribe(&mut self, prefix: &Bytes) -> Result<(), SubscribeError> {
        let mut prefixes = self.config.prefixes.iter();
        let index = prefixes.position(|of| of == prefix).ok_or(SubscribeError::Unknown)?;
        self.config.prefixes.swap_remove(index);
        self.send_to_attached(&Frame::Unsubscribe(prefix.clone()));
        Ok(())
    }

    /// Returns whether [`Session::poll`] has something: asked by who wakes the driver.
    #[must_use]
    pub fn has_output(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// Swaps all that is there for the program with `into`, which is empty: the program has these
    /// messages now, and relays may be sent RECEIVED.
    pub fn take_events(&mut self, into: &mut VecDeque<Event>) {
        debug_assert!(into.is_empty(), "what was taken before is handled");
        std::mem::swap(&mut self.events, into);
        self.events_bytes = 0;
        if self.manual_acks.is_none() {
            self.send_received();
        }
    }

    /// Says RECEIVED for what never reaches the program, as repetitions do: nobody takes events then.
    pub(super) fn send_received_if_idle(&mut self) {
        if self.manual_acks.is_some() || self.events.is_empty() {
            self.send_received();
        }
    }

    /// Returns how many messages and gaps wait to be taken.
    #[must_use]
    pub fn waiting_events(&self) -> usize {
        self.events.len()
    }

    /// Returns whether more is to be read from relays: no while too much waits for the program, is
    /// held, or was not acknowledged by hand.
    #[must_use]
    pub fn wants_more(&self) -> bool {
        self.has_room() && self.events_bytes + self.held_bytes < LISTENER_BYTES_MAX
    }

    fn has_room(&self) -> bool {
        self.events.len() < LISTENER_EVENTS_MAX
            && !self.manual_acks.as_ref().is_some_and(ManualAcks::is_full)
    }

    /// Returns whether it is attached at all relays that the directory said.
    #[must_use]
    pub fn is_listening(&self) -> bool {
        let mut links = self.links.iter().filter(|state| !state.is_leaving()).peekable();
        links.peek().is_some() && links.all(LinkState::is_attached)
    }

    /// Returns what has happened so far.
    #[must_use]
    pub const fn stats(&self) -> ListenerStats {
        self.stats
    }

    /// Leaves the queue.
    pub fn close(&mut self) {
        if std::mem::replace(&mut self.closed, true) {
            return;
        }
        let links = std::mem::take(&mut self.links);
        for state in links.iter().filter(|state| state.is_at_relay()) {
            self.outbox.send(state.link, &Frame::Bye("the listener is closed".to_owned()));
        }
        links.iter().for_each(|state| self.outbox.close(state.link));
        self.open_retry_at = None;
        self.outbox.leave_queue();
    }
}

impl Session for ListenerSession {
    fn poll(&mut self) -> Option<Output> {
        self.outbox.poll()
    }

    fn poll_event(&mut self) -> Option<SessionEvent> {
        self.outbox.poll_event()
    }

    fn next_deadline(&self) -> Option<Time> {
        let links = self.links.iter().filter_map(LinkState::deadline);
        let producers = self.waiting.iter().filter_map(|index| self.producers[*index].wait_until);
        links.chain(producers).chain(self.open_retry_at).min()
    }

    fn handle_timeout(&mut self, now: Time) {
        if self.open_retry_at.is_some_and(|at| at <= now) {
            self.send_open(now);
        }
        self.links_timeout(now);
        self.producers_timeout(now);
        self.send_received_if_idle();
    }

    fn handle_directory_connected(&mut self, now: Time) {
        self.outbox.directory_connected();
        self.announced = None;
        self.send_open(now);
    }

    fn handle_directory_lost(&mut self) {
        self.outbox.directory_lost();
        self.open_retry_at = None;
    }

    fn handle_directory_frame(&mut self, frame: Frame, now: Time) {
        match frame {
            Frame::ListenAt { queue, listener, fence, generation, relays }
                if queue == self.config.queue && listener == self.config.listener =>
            {
                self.listen_at(fence, generation, relays, now);
            }
            other => self.outbox.report_of_directory(other),
        }
    }

    fn handle_frames(
        &mut self,
        link: Link,
        mut frames: Bytes,
        now: Time,
    ) -> Result<(), FrameError> {
        while let Some(frame) = Frame::decode(&mut frames)? {
            match frame {
                Frame::Data { slot, sequence, parts } => {
                    self.data(link, slot, sequence, parts, now);
                }
                other => self.control(link, other, now),
            }
        }
        self.send_received_if_idle();
        Ok(())
    }

    fn handle_connected(&mut self, link: Link, now: Time) {
        self.connected(link, now);
    }

    fn handle_lost(&mut self, link: Link, cause: &str, now: Time) {
        self.lost(link, cause, None, true, now);
        self.send_received_if_idle();
    }

    /// Returns the same as [`ListenerSession::wants_more`], but while messages are held the relays
    /// that hold none are read on: they may owe what is waited for.
    fn wants_more_of(&self, link: Link) -> bool {
        self.wants_more()
            || (self.has_room()
                && self.events_bytes < LISTENER_BYTES_MAX
                && self.link(link).is_some_and(|state| !self.holds(state)))
    }

    fn has_events(&self) -> bool {
        self.waiting_events() > 0
    }
}

impl ListenerSession {
    fn send_open(&mut self, now: Time) {
        self.open_retry_at = None;
        if !self.outbox.has_directory() || self.closed {
            return;
        }
        let attached = self.links.iter().filter(|state| state.is_attached());
        let open = OpenListener {
            queue: self.config.queue.clone(),
            listener: self.config.listener,
            attached: attached.map(|state| state.relay.relay).collect(),
        };
        if self.links.iter().all(LinkState::is_leaving) {
            self.open_retry_at = Some(now.plus_ms(crate::limits::OPEN_RETRY_MS));
        }
        self.outbox.send_to_directory(Frame::OpenListener(open));
    }

    fn listen_at(&mut self, fence: Fence, generation: u64, relays: Vec<RelayAddress>, now: Time) {
        if fence < self.fence || (fence == self.fence && generation < self.generation) {
            let (field, text) = if fence < self.fence {
                ("fence", format!("fence: {} is below the highest seen, {}", fence.0, self.fence.0))
            } else {
                let seen = self.generation;
                ("generation", format!("generation: {generation} is below the last one, {seen}"))
            };
            self.outbox.refuse_fenced(field, text);
            return;
        }
        if self.closed {
            return;
        }
        self.fence = fence;
        self.generation = generation;
        self.open_retry_at = None;
        self.announced = None;
        self.follow(&relays, now);
        self.send_received_if_idle();
    }
}

const fn check_prefix(prefix: &Bytes) -> Result<(), SubscribeError> {
    if prefix.len() > PREFIX_BYTES_MAX {
        return Err(SubscribeError::TooLong { value: prefix.len() });
    }
    Ok(())
}
