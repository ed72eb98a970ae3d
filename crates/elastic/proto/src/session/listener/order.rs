//! Each producer's messages in their order, over all its slots.

use bytes::Bytes;

use super::links::LinkState;
use super::manual_acks::LinkOrdinal;
use super::state::{Held, Producer, ProducerSlot, WaitsFor};
use super::{Event, GapNotice, ListenerSession, Message};
use crate::frame::{Acknowledge, ErrorCode, Gap, GapCause, Start, WireError};
use crate::limits::{
    DEPARTED_MAX, HOLD_DELIVERED_MS_MAX, HOLD_MS_MAX, LISTENER_SLOTS_MAX, RESEND_MS_MAX,
};
use crate::session::{Link, SessionEvent};
use crate::{ClientId, Epoch, MessageSeq, Slot, Time};

impl ListenerSession {
    /// START: a producer begins or goes on at a relay.
    pub(super) fn started(&mut self, link: Link, start: &Start, now: Time) {
        let others_come = self.links.iter().any(|state| state.link != link && state.is_coming());
        let Some(state) = self.link(link) else { return };
        let late = !state.is_at_relay();
        if self.slots.len() >= LISTENER_SLOTS_MAX || state.slots.contains_key(&start.slot) {
            self.refuse_start(start);
            return;
        }
        let producer = self.producer_of(start.producer);
        // Told of late, when a later slot that brings its messages again is known already.
        let (epoch, again) = self.producers[producer].resent;
        let limit = if start.epoch < epoch { again } else { MessageSeq(u64::MAX) };
        let slot = self.slots.insert(ProducerSlot {
            producer,
            link: Some(link),
            slot: start.slot,
            epoch: start.epoch,
            first: start.first,
            limit,
            previous: start.previous,
            late,
            open: false,
            barrier: None,
            since: now,
            held: std::collections::VecDeque::new(),
        });
        if let Some(state) = self.link_mut(link) {
            state.slots.insert(start.slot, slot);
        }
        let known = &mut self.producers[producer];
        known.slots.push(slot);
        if known.done.is_none()
            && known.slots.len() == 1
            && (start.previous == Epoch(0) || (late && !others_come))
        {
            known.begin_at(start.epoch, start.first); // Nothing below was promised to us by anybody.
        }
        if start.previous == Epoch(0) && !late {
            self.supersede(slot);
        }
        self.settle(producer, now);
    }

    fn refuse_start(&mut self, start: &Start) {
        let (field, text) = if self.slots.len() >= LISTENER_SLOTS_MAX {
            ("producer", format!("START: {LISTENER_SLOTS_MAX} slots are the limit"))
        } else {
            ("slot", format!("START: slot {} has started already", start.slot.0))
        };
        let error = WireError::refusal(ErrorCode::Limit, field, text);
        self.outbox.report(SessionEvent::Refused(error));
    }

    /// A producer sends all from this slot's first message on again. What is held of that elsewhere is
    /// dropped: it need not be kept, and it would keep RECEIVED back.
    fn supersede(&mut self, by: usize) {
        let ProducerSlot { producer, link, epoch, first, .. } = self.slots[by];
        let resent = &mut self.producers[producer].resent;
        *resent = (*resent).max((epoch, first));
        let mut dropped = Vec::new();
        for index in &self.producers[producer].slots {
            let tracked = &mut self.slots[*index];
            let older = tracked.epoch < epoch || (tracked.epoch == epoch && tracked.link == link);
            if *index == by || tracked.open || !older {
                continue;
            }
            tracked.limit = tracked.limit.min(first);
            let held_bytes = &mut self.held_bytes;
            tracked.held.retain_mut(|held| match held {
                Held::Message { sequence, .. } if *sequence < first => true,
                Held::Message { encoded, ordinal, .. } => {
                    *held_bytes -= encoded.len();
                    dropped.extend(tracked.link.map(|link| (link, *ordinal)));
                    false
                }
                Held::Gap(gap) => {
                    gap.to = gap.to.min(first);
                    gap.from < gap.to
                }
                Held::Fin(next) => {
                    *next = (*next).min(first);
                    true
                }
            });
        }
        dropped.into_iter().for_each(|place| self.done(place));
    }

    /// DATA: the hot path.
    pub(super) fn data(
        &mut self,
        link: Link,
        slot: Slot,
        sequence: MessageSeq,
        encoded: Bytes,
        now: Time,
    ) {
        let Some(state) = self.links.iter_mut().find(|state| state.link == link) else { return };
        let ordinal = state.frames;
        state.frames += 1;
        if self.manual_acks.is_some() {
            state.tracker.arrive();
        }
        let Some(index) = index_of(state, slot) else {
            self.done((link, ordinal));
            return;
        };
        let tracked = &mut self.slots[index];
        if sequence >= tracked.limit {
            self.stats.duplicates += 1; // It comes again in a later slot.
            let limit = tracked.limit;
            self.done((link, ordinal));
            self.fin(link, slot, limit, now);
        } else if tracked.open {
            self.deliver(index, sequence, encoded, (link, ordinal));
        } else {
            self.held_bytes += encoded.len();
            tracked.held.push_back(Held::Message { sequence, encoded, ordinal });
        }
    }

    /// GAP: the relay has dropped messages.
    pub(super) fn gap(&mut self, link: Link, gap: Gap) {
        let Some(state) = self.link_mut(link) else { return };
        let Some(index) = index_of(state, gap.slot) else { return };
        let tracked = &mut self.slots[index];
        let to = gap.to.min(tracked.limit);
        if gap.from >= to {
            return; // What the relay dropped comes again in a later slot.
        }
        if tracked.open {
            self.report_relay_gap(index, Gap { to, ..gap });
        } else {
            tracked.held.push_back(Held::Gap(Gap { to, ..gap }));
        }
    }

    /// FIN: the producer's last frame in this slot.
    pub(super) fn fin(&mut self, link: Link, slot: Slot, next: MessageSeq, now: Time) {
        let Some(state) = self.link_mut(link) else { return };
        let Some(index) = index_of(state, slot) else { return };
        let tracked = &mut self.slots[index];
        let (producer, next) = (tracked.producer, next.min(tracked.limit));
        if tracked.open {
            self.finished(index, next);
            self.settle(producer, now);
        } else {
            tracked.held.push_back(Held::Fin(next));
            if let Some(state) = self.link_mut(link) {
                state.slots.remove(&slot);
                state.recent = None;
            }
        }
    }

    /// MISSED: what was acknowledged may have gone past us.
    pub(super) fn missed(&mut self, producer: ClientId, below: MessageSeq) {
        if let Some(index) = self.by_id.get(&producer) {
            let known = &mut self.producers[*index];
            known.missed_below = known.missed_below.max(below);
        }
    }

    /// Notes that messages of the producers of these slots may go past us.
    pub(super) fn slots_missed(&mut self, slots: &[usize], cause: Option<GapCause>) {
        for slot in slots {
            let producer = self.slots[*slot].producer;
            self.producers[producer].missed = cause;
        }
    }

    /// A relay could not be reached that never knew of us: it may have acknowledged messages of any producer
    /// that we see nowhere, without us and without a MISSED.
    pub(super) fn unseen_may_miss(&mut self) {
        let producers: Vec<usize> = self.producers.iter().map(|(index, _)| index).collect();
        producers.into_iter().for_each(|producer| self.unseen_may_miss_of(producer));
    }

    fn unseen_may_miss_of(&mut self, producer: usize) {
        let Some(known) = self.producers.get_mut(producer) else { return };
        if !known.slots.iter().any(|index| self.slots[*index].open) {
            known.missed.get_or_insert(GapCause::RelayLost);
        }
    }

    /// Slots whose connection is gone: nothing more comes. What is held stays, and is given in its turn.
    pub(super) fn slots_lost(&mut self, slots: &[usize], now: Time) {
        let mut producers = Vec::new();
        for index in slots {
            let tracked = &mut self.slots[*index];
            tracked.link = None;
            producers.push(tracked.producer);
            if tracked.open || tracked.held.is_empty() {
                self.forget_slot(*index);
            }
        }
        for producer in producers {
            if self.producers.contains(producer) {
                self.settle(producer, now);
            }
        }
    }

    /// Relays have announced all their slots, or will not: producers that waited for that are looked at again.
    pub(super) fn settle_waiting(&mut self, now: Time) {
        for producer in self.waiting.clone() {
            self.settle(producer, now);
        }
    }

    pub(super) fn producers_timeout(&mut self, now: Time) {
        for index in self.waiting.clone() {
            let producer = &self.producers[index];
            if producer.wait_until.is_some_and(|until| until <= now) {
                let cause = match producer.waits_for {
                    WaitsFor::Resend => GapCause::RelayLost,
                    WaitsFor::Slot | WaitsFor::Nothing => GapCause::Deadline,
                };
                self.give_up_below_held(index, Some(cause));
                self.settle(index, now);
            }
        }
    }

    /// Opens the held slots of a producer that can be, and decides how long the others wait.
    fn settle(&mut self, producer: usize, now: Time) {
        loop {
            let known = &self.producers[producer];
            let held = known.slots.iter().copied().filter(|slot| !self.slots[*slot].open);
            let Some(lowest) = held.min_by_key(|slot| (self.slots[*slot].begin(), *slot)) else {
                self.stop_waiting(producer);
                return;
            };
            if known.done.is_some_and(|done| self.slots[lowest].begin() <= done) {
                self.open(lowest, now);
                continue;
            }
            match self.missing_source(producer, lowest) {
                MissingSource::Slot => self.wait(producer, WaitsFor::Slot, now),
                MissingSource::Resend => self.wait(producer, WaitsFor::Resend, now),
                MissingSource::Nothing(cause) => {
                    self.give_up_below_held(producer, cause);
                    continue;
                }
            }
            return;
        }
    }

    /// However often what is waited for changes, all of it has its end.
    fn wait(&mut self, producer: usize, waits_for: WaitsFor, now: Time) {
        let (hold_ms, resend_ms) = match self.acknowledge {
            Acknowledge::Relayed => (HOLD_MS_MAX, RESEND_MS_MAX),
            // Producers keep messages until listeners have them: they do come.
            Acknowledge::Delivered | Acknowledge::Stored => {
                (HOLD_DELIVERED_MS_MAX, HOLD_DELIVERED_MS_MAX)
            }
        };
        let known = &mut self.producers[producer];
        if known.waits_for == WaitsFor::Nothing {
            self.waiting.push(producer);
            known.waits_since = now;
        }
        if known.waits_for != waits_for {
            known.waits_for = waits_for;
            let end = known.waits_since.plus_ms(hold_ms);
            known.wait_until = Some(match waits_for {
                WaitsFor::Resend => now.plus_ms(resend_ms).min(end.plus_ms(resend_ms)),
                WaitsFor::Slot | WaitsFor::Nothing => end,
            });
        }
    }

    /// Returns who may bring what is missing below a held slot, and asks the other relays if it
    /// needs to.
    fn missing_source(&mut self, producer: usize, lowest: usize) -> MissingSource {
        let known = &self.producers[producer];
        let slot = &self.slots[lowest];
        let comes =
            self.links.iter().any(|state| state.is_coming() && slot.link != Some(state.link));
        let unknown = known.done.is_none();
        // Acknowledged means that listeners have all below that concerned them, this one included, unless
        // the producer has said MISSED of this one.
        let delivered = self.acknowledge != Acknowledge::Relayed;
        if !unknown && slot.previous == Epoch(0) && !slot.late && delivered {
            let lost = || known.done < Some(known.missed_below);
            return MissingSource::Nothing(
                known.missed.or_else(|| lost().then_some(GapCause::RelayLost)),
            );
        }
        if comes || known.slots.iter().any(|index| self.slots[*index].open) {
            return MissingSource::Slot;
        }
        let (link, final_start) = (slot.link, slot.previous == Epoch(0) || slot.late);
        // The slot that brings it may have been announced, and be under way to us.
        let Some(barrier) = slot.barrier else {
            let barrier = self.ping_others(link);
            self.slots[lowest].barrier = Some(barrier);
            return if self.others_answered(link, barrier) {
                self.missing_source(producer, lowest)
            } else {
                MissingSource::Slot
            };
        };
        if !self.others_answered(link, barrier) {
            return MissingSource::Slot;
        }
        if unknown {
            // Nobody had anything of this producer for us before.
            return MissingSource::Nothing(None);
        }
        if final_start {
            let state = link.and_then(|link| self.link(link));
            return MissingSource::Nothing(Some(
                state.map_or(GapCause::RelayLost, |state| state.cause),
            ));
        }
        MissingSource::Resend
    }

    /// What is missing below the lowest held slot does not come: a gap, if there is a cause.
    fn give_up_below_held(&mut self, producer: usize, cause: Option<GapCause>) {
        let known = &self.producers[producer];
        let held = known.slots.iter().map(|slot| &self.slots[*slot]).filter(|slot| !slot.open);
        let Some((first, epoch)) = held.map(|slot| (slot.begin(), slot.epoch)).min() else {
            return;
        };
        match (known.done, cause) {
            (Some(done), Some(cause)) if done < first => {
                self.report_gap(producer, done, first, None, cause);
            }
            // Who did not answer in time may have had some of it for us, which is repeated if it dies.
            (None, Some(_)) => self.producers[producer].begin_at(Epoch(u64::MAX), first),
            (None, None) => self.producers[producer].begin_at(epoch, first),
            (Some(done), _) => self.producers[producer].done = Some(done.max(first)),
        }
    }

    /// Nobody brings what is below this slot's messages any more: they are given.
    fn open(&mut self, index: usize, now: Time) {
        let tracked = &mut self.slots[index];
        tracked.open = true;
        let producer = tracked.producer;
        self.producers[producer].missed = None;
        let since = tracked.since;
        let held = std::mem::take(&mut tracked.held);
        // Of a connection that is gone nothing is announced: this one never was.
        let link = tracked.link.unwrap_or_default();
        let (detached, moved) =
            (tracked.link.is_none(), tracked.previous != Epoch(0) && !tracked.late);
        if moved {
            self.stats.moves += 1;
            self.stats.last_hold_us = if held.is_empty() { 0 } else { now.since_us(since) };
        }
        let mut finished = false;
        for item in held {
            match item {
                Held::Message { sequence, encoded, ordinal } => {
                    self.held_bytes -= encoded.len();
                    self.deliver(index, sequence, encoded, (link, ordinal));
                }
                Held::Gap(gap) => self.report_relay_gap(index, gap),
                Held::Fin(next) => {
                    self.finished(index, next);
                    finished = true;
                }
            }
        }
        if detached && !finished {
            self.forget_slot(index);
        }
    }

    /// A message of an open slot, in its turn, or a repetition.
    #[inline]
    fn deliver(&mut self, index: usize, sequence: MessageSeq, encoded: Bytes, at: LinkOrdinal) {
        let producer = self.slots[index].producer;
        let known = &mut self.producers[producer];
        if known.done.is_some_and(|done| sequence < done) {
            self.stats.duplicates += 1;
            self.report_late(index, sequence);
            let known = &self.producers[producer];
            if let Some(manual_acks) = &mut self.manual_acks {
                let place = manual_acks.repeat(known.id, sequence, at);
                self.done(place);
            }
            return;
        }
        known.done = Some(MessageSeq(sequence.0 + 1));
        self.events_bytes += encoded.len();
        self.stats.messages += 1;
        if let Some(manual_acks) = &mut self.manual_acks {
            manual_acks.push(known.id, sequence, at);
        }
        self.events.push_back(Event::Message(Message { producer: known.id, sequence, encoded }));
    }

    /// A gap that a relay has announced in an open slot.
    fn report_relay_gap(&mut self, index: usize, gap: Gap) {
        self.report_late(index, gap.from);
        let producer = self.slots[index].producer;
        self.report_gap(producer, gap.from, gap.to, Some(gap.messages), gap.cause);
    }

    /// A gap in a producer's messages, as far as it concerns what is not done.
    fn report_gap(
        &mut self,
        producer: usize,
        from: MessageSeq,
        to: MessageSeq,
        messages: Option<u64>,
        cause: GapCause,
    ) {
        let known = &mut self.producers[producer];
        let done = known.done.unwrap_or(from);
        if to <= done {
            return; // It came another way.
        }
        known.done = Some(to);
        let from = from.max(done);
        let gap = GapNotice { producer: known.id, from, to, messages, cause };
        self.push_gap(gap);
    }

    /// What comes below the first message that was given cannot be given in its order any more. All of
    /// it up to there is one gap: it was not known before that there was anything.
    fn report_late(&mut self, index: usize, from: MessageSeq) {
        let ProducerSlot { producer, epoch, .. } = self.slots[index];
        let known = &mut self.producers[producer];
        let (begin_epoch, begin) = &mut known.begin;
        if epoch < *begin_epoch && from < *begin {
            let to = std::mem::replace(begin, from);
            let (producer, cause) = (known.id, GapCause::Deadline);
            self.push_gap(GapNotice { producer, from, to, messages: None, cause });
        }
    }

    fn push_gap(&mut self, gap: GapNotice) {
        self.events.push_back(Event::Gap(gap));
        self.stats.gaps += 1;
    }

    fn finished(&mut self, index: usize, next: MessageSeq) {
        let producer = self.slots[index].producer;
        let known = &mut self.producers[producer];
        known.done = Some(known.done.map_or(next, |done| done.max(next)));
        self.forget_slot(index);
        // It may go on where nobody knows of us.
        if self.links.iter().any(|state| !state.knows_us) {
            self.unseen_may_miss_of(producer);
        }
    }

    fn forget_slot(&mut self, index: usize) {
        let tracked = self.slots.remove(index);
        if let Some(state) = tracked.link.and_then(|link| self.link_mut(link)) {
            state.slots.remove(&tracked.slot);
            state.recent = None;
        }
        let known = &mut self.producers[tracked.producer];
        known.slots.retain(|slot| *slot != index);
        if known.slots.is_empty() {
            self.departures += 1;
            known.departure = self.departures;
            self.departed.push_back((tracked.producer, self.departures));
            self.forget_departed();
        }
    }

    /// The ones that left first are forgotten, unless they came back.
    fn forget_departed(&mut self) {
        while self.departed.len() > DEPARTED_MAX
            && let Some((index, departure)) = self.departed.pop_front()
        {
            let is_gone = |known: &Producer| known.slots.is_empty() && known.departure == departure;
            if self.producers.get(index).is_some_and(is_gone) {
                self.stop_waiting(index);
                let known = self.producers.remove(index);
                self.by_id.remove(&known.id);
            }
        }
    }

    fn stop_waiting(&mut self, producer: usize) {
        let known = &mut self.producers[producer];
        if known.waits_for != WaitsFor::Nothing {
            known.waits_for = WaitsFor::Nothing;
            known.wait_until = None;
            self.waiting.retain(|of| *of != producer);
        }
    }

    fn producer_of(&mut self, id: ClientId) -> usize {
        *self.by_id.entry(id).or_insert_with(|| {
            self.producers.insert(Producer {
                id,
                done: None,
                begin: (Epoch(0), MessageSeq(0)),
                missed: None,
                missed_below: MessageSeq(0),
                resent: (Epoch(0), MessageSeq(0)),
                slots: Vec::new(),
                wait_until: None,
                waits_since: Time::ZERO,
                waits_for: WaitsFor::Nothing,
                departure: 0,
            })
        })
    }
}

/// Where what is missing may come from.
enum MissingSource {
    /// From another slot, that is open or may be announced.
    Slot,
    /// From its producer, that sends again what a dead relay owed.
    Resend,
    /// From nowhere: a gap with this cause, or with none if nothing can be missing.
    Nothing(Option<GapCause>),
}

fn index_of(state: &mut LinkState, slot: Slot) -> Option<usize> {
    if let Some((recent, index)) = state.recent
        && recent == slot
    {
        return Some(index);
    }
    let index = *state.slots.get(&slot)?;
    state.recent = Some((slot, index));
    Some(index)
}
