//! From what was taken to what the application gets: order, and messages made whole.

use bytes::Bytes;

use crate::Time;
use crate::delivery::{Delivery, DeliveryToken};
use crate::event::Event;
use crate::inbox::Inbox;
use crate::inbox::delays::Delay;
use crate::inbox::flow::Ending;
use crate::inbox::partial::{PARTIAL_BYTES, Partial};
use crate::inbox::waiting::{HELD_BYTES, Held, Waiting};
use crate::wire::data::Fragment;
use crate::wire::flags::FlowMode;

/// Messages that are whole, with what is to be known of them.
pub(super) struct Whole {
    /// The sequence of the first datagram that they came in.
    pub(super) first: u64,
    /// One past the last.
    pub(super) past: u64,
    pub(super) count: u32,
    pub(super) batch: Bytes,
    /// What their mailbox keeps for them.
    pub(super) room: usize,
}

/// What becomes of a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// Its message has memory.
    Admitted,
    /// Its message has none now.
    NoMemory,
    /// Its message is longer than messages may be here.
    TooLong,
    /// It is of another message than those around it.
    Contradicts,
    /// The beginning of its message was given up.
    Orphan,
}

/// In flows that repeat nothing, messages that are incomplete at a time; re-ordering makes few.
const PARTIALS_MAX: usize = 8;

impl Inbox {
    /// Hands messages over. `waited` says that their room was kept while they waited.
    #[inline]
    pub(super) fn deliver(&mut self, slot: u32, whole: Whole, waited: bool) {
        let flow = self.flows.at(slot);
        flow.delivered_below = flow.delivered_below.max(whole.past);
        flow.counts.messages += u64::from(whole.count);
        if flow.mode.is_reliable() {
            flow.unacknowledged.delivered(whole.first);
        }
        if let Some(room) = self.mailboxes.room(flow.room) {
            room.used += whole.room;
            if waited {
                room.waiting = room.waiting.saturating_sub(whole.room);
            }
        }
        self.counters.messages += u64::from(whole.count);
        self.counters.message_bytes += whole.batch.len() as u64;
        self.ready.push_back(Delivery {
            from: flow.key.from,
            session: flow.key.session,
            mailbox: flow.mailbox,
            mode: flow.application_mode(),
            batch: whole.batch,
            count: whole.count,
            token: DeliveryToken {
                flow: slot,
                flow_generation: flow.at.generation,
                mailbox: flow.room,
                sequence: whole.first,
                bytes: u32::try_from(whole.room).unwrap_or(u32::MAX),
            },
        });
    }

    /// Lets a datagram wait for its turn. Its memory was taken before.
    pub(super) fn hold(&mut self, slot: u32, sequence: u64, held: Held, now: Time) {
        let room = held.room;
        let waiting = self.waiting(slot, now);
        waiting.taken += held.body.len() + HELD_BYTES;
        waiting.held.insert(sequence, held);
        self.keep_room(slot, room);
    }

    /// Delivers what waited for what is no longer missing.
    pub(super) fn release(&mut self, slot: u32, now: Time) {
        loop {
            let flow = self.flows.at(slot);
            let below = flow.window.below();
            let Some((&sequence, held)) = flow.waiting.as_ref().and_then(|waiting| waiting.next())
            else {
                break;
            };
            let (is_fragment, count) = (held.fragment, held.count);
            if sequence >= below {
                break;
            }
            if is_fragment {
                // A slice of what is held, which was read when it came.
                let body = held.body.clone();
                let Ok((fragment, piece)) = Fragment::read(&body, count) else { break };
                let admission = self.admit_fragment(slot, sequence, &fragment, now);
                if admission == Admission::NoMemory {
                    // It counts as received, so it may not be dropped: others will make room.
                    break;
                }
                let Some(held) = self.take_held(slot, sequence, now) else { break };
                self.return_room(slot, held.room);
                match admission {
                    Admission::Admitted => {
                        self.assemble(slot, sequence, &fragment, piece, held.room, now);
                    }
                    _ => self.skip_fragment(slot, &fragment, admission),
                }
            } else if let Some(held) = self.take_held(slot, sequence, now) {
                let count = u32::from(count);
                let (first, past) = (sequence, sequence + 1);
                let whole = Whole { first, past, count, batch: held.body, room: held.room };
                self.deliver(slot, whole, true);
            }
        }
        self.give_up_broken(slot);
        self.drop_if_empty(slot);
    }

    /// In order, a message is put together fragment by fragment: one whose next fragment was given up
    /// will never be whole.
    fn give_up_broken(&mut self, slot: u32) {
        loop {
            let flow = self.flows.at(slot);
            if !flow.mode.is_ordered() {
                return;
            }
            let below = flow.window.below();
            let Some(waiting) = &flow.waiting else { return };
            let Some((&first, partial)) = waiting.partials.first_key_value() else { return };
            let next = first + u64::from(partial.next());
            if next >= below || waiting.held.contains_key(&next) {
                return;
            }
            self.give_up_partial(slot, first);
        }
    }

    fn take_held(&mut self, slot: u32, sequence: u64, now: Time) -> Option<Held> {
        let flow = self.flows.at(slot);
        let proven = flow.proven;
        let waiting = flow.waiting.as_mut()?;
        let held = waiting.held.remove(&sequence)?;
        let taken = held.body.len() + HELD_BYTES;
        waiting.taken -= taken;
        waiting.progress = now;
        self.budget.give_back(taken, proven);
        Some(held)
    }

    /// Returns whether a fragment can be added to its message; takes memory for that if the message
    /// is new.
    pub(super) fn admit_fragment(
        &mut self,
        slot: u32,
        sequence: u64,
        fragment: &Fragment,
        now: Time,
    ) -> Admission {
        let Some(first) = sequence.checked_sub(u64::from(fragment.index)) else {
            return Admission::Contradicts;
        };
        if fragment.total as usize > self.message_bytes_max {
            return Admission::TooLong;
        }
        let flow = self.flows.at(slot);
        let (mode, proven) = (flow.mode, flow.proven);
        if let Some(waiting) = &flow.waiting
            && let Some(over) = waiting.partial_over(sequence)
        {
            let partial = &waiting.partials[&over];
            let agrees = over == first
                && partial.agrees(fragment)
                && (!mode.is_ordered() || partial.next() == fragment.index);
            return if agrees { Admission::Admitted } else { Admission::Contradicts };
        }
        if mode.is_ordered() && fragment.index > 0 {
            return Admission::Orphan;
        }
        if self.take_for_message(slot, first, fragment, mode, proven) {
            let taken = fragment.total as usize + PARTIAL_BYTES;
            let waiting = self.waiting(slot, now);
            waiting.taken += taken;
            waiting.partials.insert(first, Partial::new(fragment, taken, now));
            Admission::Admitted
        } else {
            Admission::NoMemory
        }
    }

    fn take_for_message(
        &mut self,
        slot: u32,
        first: u64,
        fragment: &Fragment,
        mode: FlowMode,
        proven: bool,
    ) -> bool {
        let taken = fragment.total as usize + PARTIAL_BYTES;
        if mode.is_reliable() {
            // If nothing before it is missing, it may take what is kept for such ones.
            let next = first <= self.flows.at(slot).window.below();
            return self.budget.take(taken, next, proven);
        }
        let waiting = self.flows.at(slot).waiting.as_ref();
        if waiting.is_some_and(|waiting| waiting.partials.len() >= PARTIALS_MAX) {
            self.give_up_oldest_partial(slot);
        }
        while !self.budget.take(taken, false, proven) {
            if !self.give_up_oldest_partial(slot) {
                return false;
            }
        }
        true
    }

    /// A fragment has come of which nothing can be made.
    pub(super) fn skip_fragment(&mut self, slot: u32, fragment: &Fragment, why: Admission) {
        match why {
            Admission::Contradicts => self.counters.inconsistent += 1,
            Admission::TooLong | Admission::NoMemory => self.counters.reassembly_full += 1,
            // Its message was counted when its beginning was given up.
            Admission::Orphan | Admission::Admitted => {}
        }
        if fragment.index == 0 {
            self.counters.incomplete_messages += 1;
            self.lose(slot, 1);
        }
    }

    /// Adds a fragment to its message, for which there is memory, and delivers that if it is whole.
    pub(super) fn assemble(
        &mut self,
        slot: u32,
        sequence: u64,
        fragment: &Fragment,
        piece: &[u8],
        room: usize,
        now: Time,
    ) {
        self.keep_room(slot, room);
        let first = sequence - u64::from(fragment.index);
        let flow = self.flows.at(slot);
        let Some(waiting) = &mut flow.waiting else { return };
        let Some(partial) = waiting.partials.get_mut(&first) else { return };
        partial.add(fragment, piece, room);
        waiting.progress = now;
        let Some(batch) = partial.take_whole() else { return };
        let (room, taken) = (partial.room, partial.taken);
        let past = first + u64::from(partial.fragments);
        waiting.partials.remove(&first);
        waiting.taken -= taken;
        let proven = flow.proven;
        self.budget.give_back(taken, proven);
        self.drop_if_empty(slot);
        self.deliver(slot, Whole { first, past, count: 1, batch, room }, true);
    }

    /// Gives up the incomplete message that began first. False if there is none.
    pub(super) fn give_up_oldest_partial(&mut self, slot: u32) -> bool {
        let first =
            self.flows.at(slot).waiting.as_ref().and_then(|waiting| waiting.first_partial());
        first.is_some_and(|first| self.give_up_partial(slot, first))
    }

    /// Gives up the message whose first fragment has the sequence `first`.
    pub(super) fn give_up_partial(&mut self, slot: u32, first: u64) -> bool {
        let flow = self.flows.at(slot);
        let proven = flow.proven;
        let Some(waiting) = &mut flow.waiting else { return false };
        let Some(partial) = waiting.partials.remove(&first) else { return false };
        waiting.taken -= partial.taken;
        self.budget.give_back(partial.taken, proven);
        self.return_room(slot, partial.room);
        self.counters.incomplete_messages += 1;
        if partial.has_begun {
            self.lose(slot, 1);
        }
        self.drop_if_empty(slot);
        true
    }

    /// Reports to the application the flow's end, once everything before it is there or lost.
    #[inline]
    pub(super) fn end_if_complete(&mut self, slot: u32) {
        let flow = self.flows.at(slot);
        if let Ending::Announced(end) = flow.ending
            && flow.window.below() >= end
            && flow.waiting.is_none()
        {
            let (from, session, mailbox) = (flow.key.from, flow.key.session, flow.mailbox);
            let proven = flow.proven;
            // Where too many wait already it is reported later: someone may wait for it.
            if self.events.push(Event::Ended { from, session, mailbox }, proven) {
                flow.ending = Ending::Reported;
            } else {
                self.report_end_later(slot);
            }
        }
    }

    #[cold]
    fn report_end_later(&mut self, slot: u32) {
        let (proven, others) = self.flows.count();
        let flow = self.flows.at(slot);
        if flow.end_waits {
            return;
        }
        flow.end_waits = true;
        self.untold.push_back(flow.at);
        // Flows that were forgotten leave their places behind.
        if self.untold.len() > 2 * (proven + others) {
            self.untold.retain(|at| self.flows.get(*at).is_some());
        }
    }

    fn waiting(&mut self, slot: u32, now: Time) -> &mut Waiting {
        let flow = self.flows.at(slot);
        if !flow.held_armed {
            flow.held_armed = true;
            self.delays.arm(Delay::Held, flow.at, now);
        }
        flow.waiting
            .get_or_insert_with(|| Box::new(Waiting { progress: now, ..Waiting::default() }))
    }

    fn drop_if_empty(&mut self, slot: u32) {
        let flow = self.flows.at(slot);
        flow.waiting.take_if(|waiting| waiting.is_empty());
    }

    fn keep_room(&mut self, slot: u32, bytes: usize) {
        let at = self.flows.at(slot).room;
        if let Some(room) = self.mailboxes.room(at) {
            room.waiting += bytes;
        }
    }

    fn return_room(&mut self, slot: u32, bytes: usize) {
        let at = self.flows.at(slot).room;
        if let Some(room) = self.mailboxes.room(at) {
            room.waiting = room.waiting.saturating_sub(bytes);
        }
    }
}
