//! Connections to relays: kept as the directory says, made anew when they are lost.

use bytes::Bytes;
use rustc_hash::FxHashMap;

use super::ListenerSession;
use super::manual_acks::ReceivedTracker;
use super::state::Held;
use crate::frame::{
    Acknowledge, AttachListener, ErrorCode, Frame, GapCause, RelayAddress, WireError,
};
use crate::limits::{
    ATTACH_MS_MAX, CONTROL_BYTES_MAX, RECONNECT_MS_MAX, RECONNECT_MS_MIN, RELAYS_MAX,
};
use crate::session::{Link, Session as _, SessionEvent};
use crate::{RelayId, Slot, Time};

/// The connection to one relay.
#[derive(Debug)]
pub(super) struct LinkState {
    /// Of the connection under way, or the last one.
    pub(super) link: Link,
    pub(super) relay: RelayAddress,
    pub(super) phase: Phase,
    /// Index of each slot that is not at its end.
    pub(super) slots: FxHashMap<Slot, usize>,
    /// The slot of the last message, since most come in runs of one producer.
    pub(super) recent: Option<(Slot, usize)>,
    /// DATA frames that came on the connection.
    pub(super) frames: u64,
    /// Which of them are not done, if the program acknowledges by hand.
    pub(super) tracker: ReceivedTracker,
    /// How many of them RECEIVED has covered.
    pub(super) received: u64,
    /// The last PING of the session before this connection was attached, and the last one answered.
    pub(super) attached_at: u64,
    pub(super) answered: u64,
    /// Attempts that failed since it was last attached.
    pub(super) failures: u32,
    /// Why messages are missing if they are when it is attached again.
    pub(super) cause: GapCause,
    /// It was attached once: the relay knows of us, and reports to producers what goes past us.
    pub(super) knows_us: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Connecting {
        until: Time,
    },
    /// ATTACH was sent.
    AttachSent {
        until: Time,
    },
    /// As AttachSent; all but the answer to a PING behind the last SUBSCRIBE is there.
    Subscribing {
        until: Time,
    },
    Attached,
    /// The directory has us leave: what the relay said before its answer to this PING is still read.
    Leaving {
        ping: u64,
        /// Then more DATA than these `frames` must have come.
        until: Time,
        frames: u64,
    },
    /// To be connected again.
    Lost {
        until: Time,
    },
}

impl LinkState {
    pub(super) fn is_attached(&self) -> bool {
        self.phase == Phase::Attached
    }

    pub(super) const fn is_leaving(&self) -> bool {
        matches!(self.phase, Phase::Leaving { .. })
    }

    /// Returns whether the relay has us as its listener.
    pub(super) fn is_at_relay(&self) -> bool {
        self.is_attached() || self.is_leaving()
    }

    /// Returns whether its first attempt is under way.
    pub(super) const fn is_coming(&self) -> bool {
        self.failures == 0
            && matches!(
                self.phase,
                Phase::Connecting { .. } | Phase::AttachSent { .. } | Phase::Subscribing { .. }
            )
    }

    fn slots_in_order(&self) -> Vec<usize> {
        let mut slots: Vec<usize> = self.slots.values().copied().collect();
        slots.sort_unstable();
        slots
    }

    pub(super) const fn deadline(&self) -> Option<Time> {
        match self.phase {
            Phase::Attached => None,
            Phase::Connecting { until }
            | Phase::AttachSent { until }
            | Phase::Subscribing { until }
            | Phase::Leaving { until, .. }
            | Phase::Lost { until } => Some(until),
        }
    }
}

/// The number of the PING behind the last SUBSCRIBE.
const SUBSCRIBED: u64 = u64::MAX;

impl ListenerSession {
    pub(super) fn link(&self, link: Link) -> Option<&LinkState> {
        self.links.iter().find(|state| state.link == link)
    }

    pub(super) fn link_mut(&mut self, link: Link) -> Option<&mut LinkState> {
        self.links.iter_mut().find(|state| state.link == link)
    }

    /// The relays to listen to, all of them.
    pub(super) fn follow(&mut self, relays: &[RelayAddress], now: Time) {
        let is_named = |state: &LinkState| relays.contains(&state.relay);
        let left = self.links.iter().filter(|state| state.is_attached() && !is_named(state));
        let left: Vec<Link> = left.map(|state| state.link).collect();
        left.into_iter().for_each(|link| self.leave(link, relays, now));
        let is_over = |state: &mut LinkState| !state.is_leaving() && !is_named(state);
        let over: Vec<LinkState> = self.links.extract_if(.., is_over).collect();
        for state in self.links.iter_mut().filter(|state| state.is_leaving() && is_named(state)) {
            state.phase = Phase::Attached; // It never ceased to be.
        }
        for relay in relays.iter().take(RELAYS_MAX) {
            let leads_there =
                |state: &LinkState| state.relay.relay == relay.relay && !state.is_leaving();
            if self.links.iter().any(leads_there) {
                continue;
            }
            let link = self.outbox.next_link();
            let until = now.plus_ms(ATTACH_MS_MAX);
            self.outbox.connect(link, relay.clone());
            self.links.push(LinkState {
                link,
                relay: relay.clone(),
                phase: Phase::Connecting { until },
                slots: FxHashMap::default(),
                recent: None,
                frames: 0,
                tracker: ReceivedTracker::default(),
                received: 0,
                attached_at: 0,
                answered: 0,
                failures: 0,
                cause: GapCause::RelayLost,
                knows_us: false,
            });
        }
        let never_known = over.iter().any(|state| !state.knows_us);
        for state in over {
            self.outbox.close(state.link);
            self.slots_lost(&state.slots_in_order(), now);
        }
        if never_known {
            self.unseen_may_miss();
        }
        self.announce_listening();
    }

    /// The directory has us leave a relay where we are. What it has sent us is under way, and nobody would
    /// miss the end of what a producer published that is gone: it is read on until the relay has answered.
    fn leave(&mut self, link: Link, relays: &[RelayAddress], now: Time) {
        self.last_ping += 1;
        let (ping, until) = (self.last_ping, now.plus_ms(ATTACH_MS_MAX));
        let Some(state) = self.link_mut(link) else { return };
        state.phase = Phase::Leaving { ping, until, frames: state.frames };
        // A relay that has its address now may be the one where we are, and is not to let its producers go.
        let has_address = |relay: &RelayAddress| relay.address == state.relay.address;
        if !relays.iter().any(has_address) {
            // If the directory holds it for dead and cannot reach it, it would take all that it has for
            // delivered when the last listener leaves.
            self.outbox.send(link, &Frame::Stop { fence: self.fence });
        }
        self.outbox.send(link, &Frame::Ping(ping));
    }

    /// Nothing more comes from a relay that was left.
    fn left(&mut self, link: Link, now: Time) {
        let Some(index) = self.links.iter().position(|state| state.link == link) else { return };
        let state = self.links.remove(index);
        self.slots_lost(&state.slots_in_order(), now);
        self.settle_waiting(now);
    }

    /// The connection is there (WELCOME need not be).
    pub(super) fn connected(&mut self, link: Link, now: Time) {
        let Some(state) = self.link_mut(link) else { return };
        if !matches!(state.phase, Phase::Connecting { .. }) {
            return;
        }
        let until = now.plus_ms(ATTACH_MS_MAX);
        let (prefixes, rest) = split_prefixes(&self.config.prefixes);
        let attach = Frame::AttachListener(AttachListener {
            queue: self.config.queue.clone(),
            listener: self.config.listener,
            slow: self.config.slow,
            prefixes: prefixes.to_vec(),
        });
        let rest: Vec<Bytes> = rest.to_vec();
        let phase = if rest.is_empty() {
            Phase::AttachSent { until }
        } else {
            Phase::Subscribing { until }
        };
        self.outbox.send(link, &attach);
        if !rest.is_empty() {
            rest.into_iter().for_each(|prefix| self.outbox.send(link, &Frame::Subscribe(prefix)));
            self.outbox.send(link, &Frame::Ping(SUBSCRIBED));
        }
        if let Some(state) = self.link_mut(link) {
            state.phase = phase;
        }
    }

    /// Everything but DATA.
    pub(super) fn control(&mut self, link: Link, frame: Frame, now: Time) {
        match frame {
            Frame::Attached { acknowledge, .. } => {
                self.acknowledge = acknowledge;
                if let Some(state) = self.link_mut(link)
                    && matches!(state.phase, Phase::AttachSent { .. })
                {
                    self.link_attached(link, now);
                }
            }
            Frame::Pong(SUBSCRIBED) => self.link_attached(link, now),
            Frame::Pong(number) => {
                if let Some(state) = self.link_mut(link) {
                    state.answered = state.answered.max(number);
                    let is_left =
                        matches!(state.phase, Phase::Leaving { ping, .. } if ping <= number);
                    self.settle_waiting(now);
                    if is_left {
                        self.outbox.close(link);
                        self.left(link, now);
                    }
                }
            }
            Frame::Start(start) => self.started(link, &start, now),
            Frame::Fin { slot, next } => self.fin(link, slot, next, now),
            Frame::Gap(gap) => self.gap(link, gap),
            Frame::Missed { producer, listener, below } if listener == self.config.listener => {
                self.missed(producer, below);
            }
            Frame::Error(error) => self.link_refused(link, error, now),
            Frame::Ping(number) => self.outbox.send(link, &Frame::Pong(number)),
            _ => {} // PONG, DRAINING: the directory says where to go.
        }
    }

    fn link_attached(&mut self, link: Link, now: Time) {
        let attached_at = self.last_ping;
        let Some(state) = self.link_mut(link) else { return };
        if state.is_at_relay() {
            return;
        }
        state.phase = Phase::Attached;
        state.attached_at = attached_at;
        state.answered = 0;
        state.failures = 0;
        state.cause = GapCause::RelayLost;
        state.knows_us = true;
        self.settle_waiting(now);
        self.announce_listening();
    }

    fn link_refused(&mut self, link: Link, error: WireError, now: Time) {
        let cause = error.text.clone();
        let too_slow = error.code == ErrorCode::TooSlow;
        let over = error.fatal || self.link(link).is_some_and(|state| !state.is_at_relay());
        self.outbox.report(SessionEvent::Refused(error));
        if !over {
            return;
        }
        self.outbox.close(link);
        let Some(state) = self.link_mut(link) else { return };
        let was_attached = state.is_attached();
        if too_slow {
            state.cause = GapCause::TooSlow;
        }
        // Who is sent away is not waited for any more: what is acknowledged from here on may have been
        // for us. That the relay lives, its answer shows.
        let missed = was_attached.then_some(state.cause);
        self.lost(link, &cause, missed, false, now);
    }

    /// The connection is gone, or could not be made. It is made again after a while, if the directory
    /// does not say otherwise.
    /// `missed`: why messages may go past us from now on, if that is known; `dead`: the relay may be.
    pub(super) fn lost(
        &mut self,
        link: Link,
        cause: &str,
        missed: Option<GapCause>,
        dead: bool,
        now: Time,
    ) {
        let Some(state) = self.link_mut(link) else { return };
        match state.phase {
            Phase::Lost { .. } => return,
            Phase::Leaving { .. } => return self.left(link, now),
            _ => {}
        }
        // By a shift of the stored count: a state machine keeps no iterator of waits.
        let wait = (RECONNECT_MS_MIN << state.failures.min(10)).min(RECONNECT_MS_MAX);
        let was_attached = state.is_attached();
        state.phase = Phase::Lost { until: now.plus_ms(wait) };
        state.failures += 1;
        state.frames = 0;
        state.tracker = ReceivedTracker::default();
        state.received = 0;
        state.recent = None;
        let first = state.failures == 1;
        let knows_us = state.knows_us;
        let relay = state.relay.relay;
        let slots = state.slots_in_order();
        state.slots.clear();
        self.stats.relays_lost += u64::from(was_attached);
        if dead && (was_attached || first) {
            self.outbox.report_relay_lost(relay, cause);
        }
        let unreachable =
            |state: &LinkState| state.link != link && !state.knows_us && !state.is_coming();
        let missed =
            missed.or_else(|| self.links.iter().any(unreachable).then_some(GapCause::RelayLost));
        if missed.is_some() {
            self.slots_missed(&slots, missed);
        }
        self.slots_lost(&slots, now);
        if !knows_us {
            self.unseen_may_miss();
        }
        self.settle_waiting(now);
        self.announce_listening();
    }

    pub(super) fn links_timeout(&mut self, now: Time) {
        let due = |state: &&LinkState| state.deadline().is_some_and(|at| at <= now);
        let links: Vec<Link> = self.links.iter().filter(due).map(|state| state.link).collect();
        for link in links {
            let Some(index) = self.links.iter().position(|state| state.link == link) else {
                continue;
            };
            let until = now.plus_ms(ATTACH_MS_MAX);
            let is_read = self.wants_more_of(link);
            let state = &mut self.links[index];
            match state.phase {
                Phase::Lost { .. } => {
                    let link = self.outbox.next_link();
                    state.link = link;
                    state.phase = Phase::Connecting { until };
                    self.outbox.connect(link, state.relay.clone());
                }
                Phase::Leaving { ping, frames, .. } if state.frames > frames || !is_read => {
                    state.phase = Phase::Leaving { ping, until, frames: state.frames };
                }
                _ => {
                    self.outbox.close(link);
                    self.lost(link, "no answer to ATTACH in time", None, true, now);
                }
            }
        }
    }

    /// LISTENING, when no relay is still to come: those that cannot be reached are left out.
    fn announce_listening(&mut self) {
        if !self.outbox.has_directory()
            || self.closed
            || self.links.iter().any(LinkState::is_coming)
        {
            return;
        }
        let attached = self.links.iter().filter(|state| state.is_attached());
        let relays: Vec<RelayId> = attached.map(|state| state.relay.relay).collect();
        let announced = Some((self.generation, relays.clone()));
        if self.announced == announced || (self.generation == 0 && relays.is_empty()) {
            return;
        }
        self.announced = announced;
        let (queue, listener) = (self.config.queue.clone(), self.config.listener);
        let generation = self.generation;
        self.outbox.send_to_directory(Frame::Listening { queue, listener, generation, relays });
    }

    /// Asks all other relays for an answer behind all that they have sent so far. Returns its number.
    pub(super) fn ping_others(&mut self, but: Option<Link>) -> u64 {
        self.last_ping += 1;
        let number = self.last_ping;
        let others =
            self.links.iter().filter(|state| state.is_at_relay() && but != Some(state.link));
        let links: Vec<Link> = others.map(|state| state.link).collect();
        links.into_iter().for_each(|link| self.outbox.send(link, &Frame::Ping(number)));
        number
    }

    /// Returns whether all relays that [`Self::ping_others`] asked with this number have answered,
    /// or are gone.
    pub(super) fn others_answered(&self, but: Option<Link>, number: u64) -> bool {
        let asked = |state: &&LinkState| {
            state.is_at_relay() && state.attached_at < number && but != Some(state.link)
        };
        self.links.iter().filter(asked).all(|state| state.answered >= number)
    }

    /// RECEIVED, to relays whose producers wait for it: once for all that the program has taken.
    pub(super) fn send_received(&mut self) {
        if self.acknowledge == Acknowledge::Relayed {
            return;
        }
        for index in 0..self.links.len() {
            let state = &self.links[index];
            let taken = self.done_of(state);
            if state.is_at_relay() && taken > state.received {
                let link = state.link;
                self.links[index].received = taken;
                self.outbox.send(link, &Frame::Received(taken));
            }
        }
    }

    /// Returns how many of a connection's messages are done without a hole.
    pub(super) fn done_of(&self, state: &LinkState) -> u64 {
        if self.manual_acks.is_some() {
            return state.tracker.first();
        }
        self.first_held(state).unwrap_or(state.frames)
    }

    pub(super) fn send_to_attached(&mut self, frame: &Frame) {
        let asked = |state: &&LinkState| {
            !matches!(state.phase, Phase::Connecting { .. } | Phase::Lost { .. })
        };
        let links: Vec<Link> = self.links.iter().filter(asked).map(|state| state.link).collect();
        links.into_iter().for_each(|link| self.outbox.send(link, frame));
    }

    /// Returns whether messages of this relay are held.
    pub(super) fn holds(&self, state: &LinkState) -> bool {
        self.held_bytes > 0 && self.first_held(state).is_some()
    }

    /// Returns the first of a connection's messages that is held.
    pub(super) fn first_held(&self, state: &LinkState) -> Option<u64> {
        let slots = self.waiting.iter().flat_map(|producer| &self.producers[*producer].slots);
        let here = slots.map(|index| &self.slots[*index]).filter(|of| of.link == Some(state.link));
        let ordinals = here.filter_map(|tracked| {
            tracked.held.iter().find_map(|held| match held {
                Held::Message { ordinal, .. } => Some(*ordinal),
                Held::Gap(_) | Held::Fin(_) => None,
            })
        });
        ordinals.min()
    }
}

/// Splits the prefixes into as many as ATTACH_LISTENER has room for, and the others.
fn split_prefixes(prefixes: &[Bytes]) -> (&[Bytes], &[Bytes]) {
    let mut room = CONTROL_BYTES_MAX / 2; // The rest of the frame is small.
    let fits = |prefix: &Bytes| {
        let bytes = prefix.len() + 2;
        let fits = bytes <= room;
        room -= bytes.min(room);
        fits
    };
    let end = prefixes.iter().map(fits).position(|fits| !fits).unwrap_or(prefixes.len());
    prefixes.split_at(end)
}
