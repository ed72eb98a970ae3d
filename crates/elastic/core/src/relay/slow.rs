//! What happens when a listener does not keep up: its policy when its ring is full, and when producers
//! stop waiting for it.

use quelea_elastic_proto::frame::{ErrorCode, SlowPolicy, WireError};
use quelea_elastic_proto::{Slot, Time};

use crate::relay::client::{Awaiting, Client, Kind};
use crate::relay::ledger::{EntryNumber, Holds};
use crate::relay::limits::{
    AWAITING_MAX, CONTROL_BYTES_MAX, LAG_CHECK_MS, RECEIVED_DISCONNECT_MS_MAX, RECEIVED_MS_MAX,
    RING_ITEMS_LOW, RING_ITEMS_MAX, RING_MS_MAX,
};
use crate::relay::overflow::Overflow;
use crate::relay::ring::{Dropped, Run};
use crate::relay::{Port, Relay, release_entry, release_in};

impl Relay {
    /// Puts messages into a listener's ring, or does what its policy says.
    pub(crate) fn offer(&mut self, index: u32, mut run: Run) {
        let ring_bytes_max = self.ring_bytes_max;
        let client = &mut self.clients[index as usize];
        let Some(listener) = &mut client.listener else { return };
        let bytes = client.ring.bytes() + run.bytes.len();
        // An empty ring takes any message: it may be larger than the ring.
        let full = client.ring.bytes() > 0
            && (bytes > ring_bytes_max || client.ring.items() >= RING_ITEMS_MAX);
        if listener.spill.as_ref().is_some_and(|spill| spill.is_active()) {
            return self.spill(index, run);
        }
        if full || listener.dropping {
            match listener.slow {
                SlowPolicy::HoldProducers => {}
                SlowPolicy::Disconnect => {
                    listener.dropping = true;
                    self.mark_overfull(index, Overflow::Ring);
                    return;
                }
                SlowPolicy::DropOldest => self.drop_oldest(index, run.bytes.len()),
                SlowPolicy::Spill => return self.spill(index, run),
                SlowPolicy::DropNewest => {
                    // It goes on only when there is room for some time, or else each message more would
                    // have a GAP of its own.
                    listener.dropping = full
                        || bytes > low_mark(ring_bytes_max)
                        || client.ring.items() > RING_ITEMS_LOW;
                    if listener.dropping {
                        client.ring.drop_newest(&run);
                        listener.dropped += u64::from(run.messages);
                        self.counters.dropped_newest += u64::from(run.messages);
                        self.was_dropped_for(index);
                        return;
                    }
                }
            }
        }
        let late = self.config.settings.acknowledge.waits_for_listeners();
        let client = &mut self.clients[index as usize];
        let Some(listener) = &client.listener else { return };
        let acknowledgement = if late { !listener.left_behind } else { !listener.lagging };
        run.holds = Holds { credit: !listener.lagging, acknowledgement };
        // An edge takes when it has room, and is never blocked.
        let waits = client.blocked || (client.kind == Kind::Edge && !client.ring.is_empty());
        if run.sparse && waits {
            run.unpin();
        }
        self.producers[run.producer as usize].ledger.hold(run.holds);
        if bytes as u64 > self.lag_bytes() && self.lag_check_at.is_none() {
            self.lag_check_at = Some(self.now.plus_ms(LAG_CHECK_MS));
        }
        self.clients[index as usize].ring.push_run(run);
        self.mark_dirty(index);
    }

    fn drop_oldest(&mut self, index: u32, room: usize) {
        let target = low_mark(self.ring_bytes_max).saturating_sub(room);
        let Self { clients, producers, unsettled, counters, .. } = self;
        let client = &mut clients[index as usize];
        let mut dropped = 0;
        client.ring.drop_oldest(target, RING_ITEMS_LOW, |part| {
            dropped += part.messages();
            if let Dropped::Run(run) = part {
                release_in(producers, unsettled, run);
            }
        });
        counters.dropped_oldest += dropped;
        if let Some(listener) = &mut client.listener {
            listener.dropped += dropped;
        }
        if dropped > 0 {
            self.was_dropped_for(index);
        }
    }

    /// Notes a client that let too much pile up: lists of clients may be walked now.
    pub(crate) fn mark_overfull(&mut self, index: u32, passed: Overflow) {
        let generation = self.clients[index as usize].generation;
        self.overfull.push((Port { index, generation }, passed));
    }

    /// Ends clients that let too much pile up, unless they are gone: others may be in their places.
    pub(crate) fn disconnect_overfull(&mut self) {
        while let Some((port, passed)) = self.overfull.pop() {
            if let Some(index) = self.index(port) {
                self.too_slow(index, passed);
            }
        }
    }

    fn too_slow(&mut self, index: u32, passed: Overflow) {
        let client = &self.clients[index as usize];
        if client.is_closing() {
            return;
        }
        let (field, text) = match passed {
            Overflow::Ring => (
                "ring_bytes_max",
                format!(
                    "{} bytes of messages in {} pieces wait for this client: {} and {RING_ITEMS_MAX} are the limits",
                    client.ring.bytes(),
                    client.ring.items(),
                    self.ring_bytes_max
                ),
            ),
            Overflow::Awaiting => (
                "received",
                format!(
                    "RECEIVED does not come for {} messages in {AWAITING_MAX} pieces, which is the limit",
                    self.awaited_messages(index)
                ),
            ),
            Overflow::Stalled => (
                "received",
                format!(
                    "RECEIVED has not come for {} messages: after {RECEIVED_DISCONNECT_MS_MAX} ms a listener with the policy Disconnect is",
                    self.awaited_messages(index)
                ),
            ),
            Overflow::Control => (
                "control_bytes_max",
                format!(
                    "{} bytes of frames that are no messages wait for this client: {CONTROL_BYTES_MAX} is the limit",
                    client.ring.control_bytes()
                ),
            ),
            Overflow::Spill => (
                "spill_bytes_max",
                format!(
                    "more than {} bytes of other frames are in this client's file beside the {} of messages that are the limit",
                    CONTROL_BYTES_MAX, self.spill_bytes_max
                ),
            ),
        };
        self.counters.too_slow += 1;
        self.notice_disconnection(index, &text);
        self.refuse(index, WireError::fatal(ErrorCode::TooSlow, field, text));
    }

    /// One that held messages back does not any more.
    pub(crate) fn release(&mut self, producer: u32, slot: Slot, entry: EntryNumber, holds: Holds) {
        if let Some(of) = self.producers.get_mut(producer as usize)
            && of.slot == slot
        {
            of.ledger.release(entry, holds);
            self.unsettle(producer);
        }
    }

    /// Returns how many bytes may wait for one listener: beyond this it is asked whether the
    /// producers should wait for it.
    pub(crate) fn lag_bytes(&self) -> u64 {
        self.window_bytes() * self.by_producer.len().max(1) as u64 / 2
    }

    /// Looks at who is far behind. Producers wait for a listener as long as it is about as quick as the
    /// others: the mean backlog counts each by what it was written, so one that stands still has no say,
    /// and a single slow one among quick ones little. A listener that is left behind holds producers back
    /// again when it has caught up. An only listener is behind nobody, however long it stands still.
    pub(crate) fn check_lag(&mut self, now: Time) {
        let limit = self.lag_bytes();
        let mean = self.mean_backlog();
        let mut again = false;
        for at in 0..self.listeners.len() {
            let index = self.listeners[at];
            let client = &mut self.clients[index as usize];
            let backlog = client.ring.bytes() as u64;
            let Some(listener) = &mut client.listener else { continue };
            again |= backlog > limit / 2;
            if listener.slow == SlowPolicy::HoldProducers {
                continue;
            }
            if listener.lagging {
                listener.lagging = backlog > limit / 2;
            } else if backlog > limit + 2 * mean {
                listener.lagging = true;
                self.let_go(index, Holds::BOTH);
            }
        }
        self.lag_check_at = again.then(|| now.plus_ms(LAG_CHECK_MS));
    }

    /// Returns the mean backlog of all listeners, each counted by its pace: what it was written
    /// since the last look, and the same before, fading.
    fn mean_backlog(&mut self) -> u64 {
        let Self { listeners, clients, .. } = self;
        let written = |index: &u32| {
            let listener = clients[*index as usize].listener.as_ref();
            listener.is_some_and(|listener| listener.written_bytes > 0)
        };
        let moves = listeners.iter().any(written);
        let (mut weighted, mut weights, mut least) = (0_u128, 0_u128, u64::MAX);
        for index in listeners {
            let client = &mut clients[*index as usize];
            let backlog = client.ring.bytes() as u64;
            let Some(listener) = &mut client.listener else { continue };
            // When all wait for one, nothing is written to those who have taken all: they are not slow for that,
            // and only the pace of the one fades.
            if moves || backlog > 0 {
                listener.pace /= 2;
            }
            listener.pace += std::mem::take(&mut listener.written_bytes);
            weighted += u128::from(listener.pace) * u128::from(backlog);
            weights += u128::from(listener.pace);
            least = least.min(backlog);
        }
        // Where nobody has a pace, the one for whom least waits stands for all.
        weighted.checked_div(weights).map_or(least, |mean| mean as u64)
    }

    fn awaited_messages(&self, index: u32) -> u64 {
        let listener = self.clients[index as usize].listener.as_ref();
        listener.map_or(0, |listener| listener.sent.saturating_sub(listener.received))
    }

    /// Where RECEIVED is waited for, a listener whose program has stopped would stop all producers: its
    /// library reads on, so its ring may never be full. The policy HoldProducers wants that; by the others
    /// it is left behind or disconnected.
    pub(crate) fn check_stalled_programs(&mut self) {
        if !self.config.settings.acknowledge.waits_for_listeners() {
            return self.check_stalled_sockets();
        }
        for index in self.listeners.clone() {
            let client = &self.clients[index as usize];
            let Some(listener) = &client.listener else { continue };
            let in_ring = || client.ring.oldest_held();
            let away = || listener.spill.as_ref().and_then(|spill| spill.oldest_held());
            let oldest = listener.awaiting.front().map(|awaiting| awaiting.at);
            let Some(oldest) = oldest.or_else(in_ring).or_else(away) else { continue };
            let silent_ms = self.now.since_ms(oldest.max(listener.received_at));
            match listener.slow {
                SlowPolicy::HoldProducers => {}
                SlowPolicy::Disconnect if silent_ms >= RECEIVED_DISCONNECT_MS_MAX => {
                    self.too_slow(index, Overflow::Stalled);
                }
                SlowPolicy::Disconnect => {}
                _ if silent_ms >= RECEIVED_MS_MAX => self.leave_behind(index),
                _ => {}
            }
        }
    }

    /// At the level Relayed a listener that takes nothing, and for whom less waits than makes it lag, would
    /// keep producers from their last acknowledgements for ever. Their credit it still holds if no other one goes on.
    fn check_stalled_sockets(&mut self) {
        let stands_still = |relay: &Self, index: u32| {
            let waits_since = relay.clients[index as usize].ring.oldest_held();
            waits_since.is_some_and(|at| relay.now.since_ms(at) >= RING_MS_MAX)
        };
        let lags = |relay: &Self, index: u32| {
            let listener = relay.clients[index as usize].listener.as_ref();
            listener.is_some_and(|listener| listener.lagging)
        };
        let goes_on = |index: &u32| !stands_still(self, *index) && !lags(self, *index);
        let another_goes_on = self.listeners.iter().any(goes_on);
        for index in self.listeners.clone() {
            let stalled = stands_still(self, index);
            let client = &mut self.clients[index as usize];
            let Some(listener) = &mut client.listener else { continue };
            if stalled && listener.slow != SlowPolicy::HoldProducers {
                if !another_goes_on {
                    self.let_go(index, Holds { credit: false, acknowledgement: true });
                    continue;
                }
                listener.lagging = true;
                self.let_go(index, Holds::BOTH);
                self.lag_check_at.get_or_insert_with(|| self.now.plus_ms(LAG_CHECK_MS));
            }
        }
    }

    /// Nothing waits for this listener's RECEIVED until it says one again. What it has, or will be
    /// written to it, is not lost by that; if it is lost with this relay, the listener knows by the numbers.
    fn leave_behind(&mut self, index: u32) {
        self.spill_holds_nothing(index);
        let Self { clients, producers, unsettled, counters, .. } = self;
        let Client { listener, ring, .. } = &mut clients[index as usize];
        let Some(listener) = listener else { return };
        listener.left_behind = true;
        let id = listener.id;
        counters.left_behind += 1;
        let holds = Holds { credit: false, acknowledgement: true };
        for run in ring.runs_mut().filter(|run| run.holds.acknowledgement) {
            run.holds.acknowledgement = false;
            release_entry(producers, unsettled, (run.producer, run.slot, run.entry), holds);
        }
        for Awaiting { producer, slot, entry, .. } in std::mem::take(&mut listener.awaiting) {
            release_entry(producers, unsettled, (producer, slot, entry), holds);
        }
        self.may_miss(id);
    }

    /// What waits for this listener holds these back no more. Acknowledgements that wait for RECEIVED do.
    fn let_go(&mut self, index: u32, freed: Holds) {
        let late = self.config.settings.acknowledge.waits_for_listeners();
        let Self { clients, producers, unsettled, .. } = self;
        for run in clients[index as usize].ring.runs_mut() {
            let before = run.holds;
            let freed = Holds {
                credit: before.credit && freed.credit,
                acknowledgement: before.acknowledgement && freed.acknowledgement && !late,
            };
            run.holds = Holds {
                credit: before.credit && !freed.credit,
                acknowledgement: before.acknowledgement && !freed.acknowledgement,
            };
            if let Some(producer) = producers.get_mut(run.producer as usize)
                && producer.slot == run.slot
            {
                producer.ledger.release(run.entry, freed);
                if !producer.unsettled {
                    producer.unsettled = true;
                    unsettled.push(run.producer);
                }
            }
        }
    }

    /// The socket of this client takes no more.
    pub fn blocked(&mut self, port: Port) {
        let Some(index) = self.index(port) else { return };
        let client = &mut self.clients[index as usize];
        if !client.blocked {
            client.blocked = true;
            client.ring.unpin();
        }
    }
}

/// Returns the bytes below which a ring that was full has room again.
pub(crate) const fn low_mark(ring_bytes_max: usize) -> usize {
    ring_bytes_max / 4 * 3
}
