//! What will not come any more.

use crate::Time;
use crate::inbox::Inbox;
use crate::inbox::delays::{Delay, GAP_DELAY_US};
use crate::inbox::peer_counts::PeerCounts;
use crate::wire::flags::{self, FlowMode};

/// An incomplete message of a flow that repeats nothing is given up at this age.
const PARTIAL_AGE_US: u64 = 1_000_000;

/// A sender that repeats is gone when it was silent for so long, and left something incomplete: twice
/// the time after which it would itself give up a peer that does not answer.
const STALLED_US: u64 = 120_000_000;

impl Inbox {
    /// Messages of a flow are lost for good.
    pub(super) fn lose(&mut self, slot: u32, messages: u64) {
        if messages == 0 {
            return;
        }
        let flow = self.flows.at(slot);
        flow.lost_messages = flow.lost_messages.saturating_add(messages);
        flow.counts.lost_messages = flow.counts.lost_messages.saturating_add(messages);
        if self.is_believed(slot) {
            self.report_lost(slot, messages);
        } else {
            let unproven = &mut self.counters.unproven_lost_messages;
            *unproven = unproven.saturating_add(messages);
        }
    }

    /// Returns whether a sender's numbers may be taken for what it has sent. Anybody may begin a
    /// flow in the name of another, and number its datagrams as if others had been sent; so who was
    /// asked for a proof has to give it first. To a group nobody is asked.
    fn is_believed(&mut self, slot: u32) -> bool {
        let in_group = self.in_group;
        let flow = self.flows.at(slot);
        flow.proven || in_group && !flow.wants_status()
    }

    /// What a flow lost before it was proven is lost beyond doubt now.
    pub(super) fn report_lost_before(&mut self, slot: u32) {
        if self.is_believed(slot) {
            // It was reported.
            return;
        }
        let counts = &self.flows.at(slot).counts;
        let (datagrams, messages) = (counts.lost_datagrams, counts.lost_messages);
        self.counters.lost_datagrams += datagrams;
        if messages > 0 {
            self.report_lost(slot, messages);
        }
    }

    fn report_lost(&mut self, slot: u32, messages: u64) {
        let flow = self.flows.at(slot);
        let (from, mailbox, proven) = (flow.key.from, flow.mailbox, flow.proven);
        self.counters.lost_messages = self.counters.lost_messages.saturating_add(messages);
        if !self.events.lost(from, mailbox, messages, proven) {
            self.counters.events_dropped += 1;
        }
    }

    /// Datagrams of a flow will not come any more.
    fn lose_datagrams(&mut self, slot: u32, datagrams: u64) {
        self.flows.at(slot).counts.lost_datagrams += datagrams;
        if self.is_believed(slot) {
            self.counters.lost_datagrams += datagrams;
        } else {
            self.counters.unproven_lost_datagrams += datagrams;
        }
    }

    /// Nothing below `floor` will come that has not come yet.
    pub(super) fn give_up_below(&mut self, slot: u32, floor: u64, now: Time) {
        let flow = self.flows.at(slot);
        let window = &flow.window;
        let incomplete: Vec<u64> = match &flow.waiting {
            None => Vec::new(),
            Some(waiting) => waiting
                .partials
                .iter()
                .map(|(first, partial)| (*first, first + u64::from(partial.fragments)))
                .filter(|(first, past)| window.missing_between(*first, floor.min(*past)) > 0)
                .map(|(first, _)| first)
                .collect(),
        };
        let lost =
            flow.gaps.give_up_below(floor, |first, past| window.missing_between(first, past));
        let never_came = flow.window.give_up_below(floor);
        self.lose_datagrams(slot, never_came);
        self.lose(slot, lost);
        for first in incomplete {
            self.give_up_partial(slot, first);
        }
        self.release(slot, now);
        self.end_if_complete(slot);
    }

    /// Gaps of a flow that repeats nothing have had their time.
    pub(super) fn on_gaps_due(&mut self, slot: u32, now: Time) {
        self.flows.at(slot).gaps_armed = false;
        loop {
            let flow = self.flows.at(slot);
            let (Some(since), Some((first, past))) = (flow.gaps.oldest(), flow.gaps.oldest_range())
            else {
                break;
            };
            let awaited = flow.awaits_parity_from();
            if now.since_us(since) < GAP_DELAY_US || awaited == Some(first) {
                flow.gaps_armed = true;
                let at = flow.at;
                self.delays.arm(Delay::Gap, at, now);
                break;
            }
            self.give_up_below(slot, awaited.unwrap_or(past), now);
        }
    }

    /// Looks at what waits in a flow.
    pub(super) fn on_held_due(&mut self, slot: u32, now: Time) {
        self.flows.at(slot).held_armed = false;
        if self.flows.at(slot).mode.is_reliable() {
            self.release(slot, now);
            let flow = self.flows.at(slot);
            // One that still asks waits for room here, or cannot help it.
            if flow.waiting.is_some() && now.since_us(flow.last_arrival) >= STALLED_US {
                self.abandon(slot);
                return;
            }
        } else {
            self.give_up_old_partials(slot, now);
        }
        self.end_if_complete(slot);
        let flow = self.flows.at(slot);
        if flow.waiting.is_some() {
            flow.held_armed = true;
            let at = flow.at;
            self.delays.arm(Delay::Held, at, now);
        }
    }

    /// In a flow that repeats nothing, what is missing of a message is waited for only so long.
    fn give_up_old_partials(&mut self, slot: u32, now: Time) {
        let flow = self.flows.at(slot);
        let room = self.mailboxes.room(flow.room);
        let may_be_popped = room.is_some_and(|room| room.used > 0);
        if flow.credit.starved
            && may_be_popped
            && let Some(waiting) = &mut flow.waiting
        {
            // What the sender may not send for want of room here is not late.
            waiting.partials.values_mut().for_each(|partial| partial.since = now);
            return;
        }
        while let Some(waiting) = &self.flows.at(slot).waiting
            && let Some((&first, partial)) = waiting.partials.first_key_value()
            && now.since_us(partial.since) >= PARTIAL_AGE_US
        {
            self.give_up_partial(slot, first);
        }
    }

    /// The sender is gone for good: what it left incomplete is lost. If it was never proven, there may
    /// have been nothing; and what was superseded came in another flow.
    fn abandon(&mut self, slot: u32) {
        let superseded = self.is_superseded(slot);
        let flow = self.flows.at(slot);
        if flow.proven && !superseded {
            let highest = flow.window.highest();
            let missing = flow.gaps.give_up_below(highest, |_, _| 0);
            let waiting = flow.waiting.as_ref().map_or(0, |waiting| waiting.messages());
            let never_came = flow.window.give_up_below(highest);
            self.lose_datagrams(slot, never_came);
            self.lose(slot, missing + waiting);
        }
        self.forget(slot);
    }

    /// The sender was started anew: what is missing of its old session is lost, and what waits for it
    /// is delivered, unless nothing may be missing before it.
    pub(super) fn forget_old_session(&mut self, slot: u32, now: Time) {
        if self.flows.at(slot).mode == FlowMode::ReliableOrdered || self.is_superseded(slot) {
            return self.abandon(slot);
        }
        let highest = self.flows.at(slot).window.highest();
        self.give_up_below(slot, highest, now);
        while self.give_up_oldest_partial(slot) {}
        self.forget(slot);
    }

    /// Returns whether the sender has put another flow in this one's place. It learns that its receiver
    /// was started anew by the answer to a repetition, which is all that the new one knows of the
    /// flow: the beginning never comes, and what is missing comes in the other flow.
    fn is_superseded(&mut self, slot: u32) -> bool {
        let flow = self.flows.at(slot);
        let (at, from, session, mailbox) = (flow.at, flow.key.from, flow.key.session, flow.mailbox);
        flow.mode.is_reliable()
            && flow.window.below() == 0
            && self
                .flows
                .contact(from, mailbox)
                .is_some_and(|contact| contact.session == session && contact.flow != at)
    }

    /// Forgets a flow. What it has still waiting is dropped.
    pub(super) fn forget(&mut self, slot: u32) {
        let believed = self.is_believed(slot);
        let flow = self.flows.remove(slot);
        let (lost_datagrams, lost_messages) =
            if believed { (flow.counts.lost_datagrams, flow.counts.lost_messages) } else { (0, 0) };
        self.past += PeerCounts { lost_datagrams, lost_messages, ..flow.counts };
        if flow.mode.is_reliable() && flow.flags & flags::SEALED != 0 {
            self.forgotten.push(flow.key);
        }
        if flow.credit.active {
            self.credit.leave();
        }
        let kept = flow.waiting.as_ref().map_or(0, |waiting| waiting.room());
        self.budget.give_back(flow.taken() - flow.decoder_taken, flow.proven);
        self.budget.give_back_decoder(flow.decoder_taken, flow.proven);
        if let Some(room) = self.mailboxes.room(flow.room) {
            room.promised = room.promised.saturating_sub(u64::from(flow.credit.promised));
            room.waiting = room.waiting.saturating_sub(kept);
        }
    }
}
