//! What becomes of a datagram of data: taken, or dropped and counted.

use crate::Time;
use crate::inbox::Inbox;
use crate::inbox::content::{Arrived, Content};
use crate::inbox::credit::KERNEL_BYTES;
use crate::inbox::delays::Delay;
use crate::inbox::delivering::{Admission, Whole};
use crate::inbox::mailboxes::DELIVERY_BYTES;
use crate::inbox::waiting::{HELD_BYTES, Held, of_its_own};
use crate::inbox::window::Place;
use crate::limits::{TRAIN_SEGMENTS_MAX, WINDOW_DATAGRAMS_MAX};
use crate::wire::data::Fragment;
use crate::wire::flags::{self, FlowMode};
use crate::wire::{Header, Malformed};

/// What became of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is in its flow's books: the same again would be a duplicate.
    Taken,
    /// It was counted and dropped; it may be welcome when it comes again.
    Dropped,
}

/// A datagram's place in its flow, and what that says of the ones before it.
#[derive(Clone, Copy)]
pub(super) struct Step {
    pub(super) place: Place,
    pub(super) missing_messages: u64,
    /// Whether it was computed from its group's others and parity.
    pub(super) recovered: bool,
}

/// Of less, a copy costs more than what it frees.
const PADDED_BYTES_MIN: usize = 1_024;

impl Inbox {
    /// Takes a datagram of data.
    ///
    /// # Errors
    /// What is wrong with its body. It was dropped; the caller counts it by cause.
    #[inline]
    pub fn on_data(&mut self, arrived: &Arrived<'_>) -> Result<Taken, Malformed> {
        let header = arrived.header;
        self.counters.datagrams += 1;
        self.counters.bytes += arrived.bytes as u64;
        let before = self.flows.last();
        let known = self.flows.find(&arrived.key());
        if let Some(slot) = known {
            self.flows.at(slot).counts.datagrams += 1;
            if !self.is_wanted(slot, arrived) {
                return Ok(Taken::Dropped);
            }
        }
        let body = &arrived.buffer[arrived.body.clone()];
        let content = Content::read(body, header.flags, header.count)?;
        let Some(slot) = known.or_else(|| self.admit_data(arrived)) else {
            return Ok(Taken::Dropped);
        };
        let flow = self.flows.at(slot);
        let place = flow.window.place(header.sequence, flow.mode.is_reliable());
        if place == Place::Beyond || place == Place::Late {
            self.on_useless(slot, place, arrived);
            return Ok(Taken::Dropped);
        }
        let Some(missing_messages) = flow.missing_messages(header, place) else {
            self.counters.inconsistent += 1;
            return Ok(Taken::Dropped);
        };
        // A train is of one flow. What is not, would keep the whole train's buffer for itself.
        let stranger = before != Some(slot);
        let step = Step { place, missing_messages, recovered: false };
        let taken = self.take(slot, arrived, content, step, stranger);
        if header.has(flags::REPAIR) {
            self.keep_for_repair(slot, arrived);
        }
        Ok(taken)
    }

    /// Makes a flow for the first datagram that comes of it.
    #[cold]
    fn admit_data(&mut self, arrived: &Arrived<'_>) -> Option<u32> {
        let slot = self.admit(arrived, None)?;
        self.flows.at(slot).counts.datagrams += 1;
        Some(slot)
    }

    /// Returns whether a datagram of a known flow brings anything; counts it if not. The body was
    /// not looked at yet: duplicates are cheap.
    #[inline]
    pub(super) fn is_wanted(&mut self, slot: u32, arrived: &Arrived<'_>) -> bool {
        let flow = self.flows.at(slot);
        if !flow.agrees(arrived.header) {
            self.counters.inconsistent += 1;
            return false;
        }
        let place = flow.window.place(arrived.header.sequence, flow.mode.is_reliable());
        if matches!(place, Place::New { .. } | Place::Missing) {
            return true;
        }
        self.on_useless(slot, place, arrived);
        false
    }

    #[cold]
    fn on_useless(&mut self, slot: u32, place: Place, arrived: &Arrived<'_>) {
        let counts = &mut self.flows.at(slot).counts;
        match place {
            Place::Duplicate => {
                counts.duplicates += 1;
                self.counters.duplicates += 1;
            }
            Place::Beyond => self.counters.beyond_window += 1,
            _ => {
                counts.late += 1;
                self.counters.late += 1;
            }
        }
        self.note_heard(slot, arrived.bytes, arrived.now);
        // Its sender does not know what came: a STATUS was lost, or the flow was forgotten here.
        if self.flows.at(slot).mode.is_reliable() || arrived.header.has(flags::STATUS_WANTED) {
            self.report_now(slot);
        }
    }

    pub(super) fn take(
        &mut self,
        slot: u32,
        arrived: &Arrived<'_>,
        content: Content,
        step: Step,
        stranger: bool,
    ) -> Taken {
        let flow = self.flows.at(slot);
        let header = arrived.header;
        let reliable = flow.mode.is_reliable();
        if flow.mode == FlowMode::LatestOnly && header.sequence < flow.delivered_below {
            return self.on_outdated(slot, arrived, step);
        }
        let next = header.sequence == flow.window.below();
        let awaited = next && (reliable || matches!(content, Content::Fragment { .. }));
        let room = content.bytes() + DELIVERY_BYTES;
        let mailbox = self.mailboxes.room(flow.room);
        let waits = mailbox.as_ref().is_some_and(|room| room.may_wait(&flow.unacknowledged) == 0);
        if waits && reliable {
            // Its sender hears of more room when the application acknowledges.
            self.counters.beyond_window += 1;
            self.note_heard(slot, arrived.bytes, arrived.now);
            self.report_soon(slot, arrived.now);
            return Taken::Dropped;
        }
        let admits = mailbox.is_some_and(|mailbox| mailbox.admits(room, awaited));
        if !admits {
            return self.on_full_mailbox(slot, arrived, step);
        }
        match content {
            Content::Messages { bytes } => {
                let end = arrived.body.start + bytes;
                let mut body = arrived.buffer.slice(arrived.body.start..end);
                if flow.mode.is_ordered() && !(next && flow.nothing_before(header.sequence)) {
                    return self.take_ahead(
                        slot,
                        arrived,
                        step,
                        Held { body, count: header.count, fragment: false, room },
                    );
                }
                body = of_its_own(body, kept_bytes(arrived, stranger));
                self.note_arrival(slot, header, step, arrived.now);
                if header.count > 0 {
                    let (first, past) = (header.sequence, header.sequence + 1);
                    let count = u32::from(header.count);
                    self.deliver(slot, Whole { first, past, count, batch: body, room }, false);
                }
            }
            Content::Fragment { fragment, start, bytes } => {
                let start = arrived.body.start + start;
                if flow.mode.is_ordered() && !(next && flow.nothing_before(header.sequence)) {
                    let body = arrived.buffer.slice(arrived.body.start..start + bytes);
                    let held = Held { body, count: header.count, fragment: true, room };
                    return self.take_ahead(slot, arrived, step, held);
                }
                let piece = &arrived.buffer[start..start + bytes];
                if !self.take_fragment(slot, arrived, step, &fragment, piece, room) {
                    return Taken::Dropped;
                }
            }
        }
        self.after_arrival(slot, arrived, step);
        Taken::Taken
    }

    /// Takes a fragment in its turn. `false`: there is no memory for it, and its sender sends it again.
    fn take_fragment(
        &mut self,
        slot: u32,
        arrived: &Arrived<'_>,
        step: Step,
        fragment: &Fragment,
        piece: &[u8],
        room: usize,
    ) -> bool {
        let (header, now) = (arrived.header, arrived.now);
        let admission = self.admit_fragment(slot, header.sequence, fragment, now);
        if admission == Admission::NoMemory && self.flows.at(slot).mode.is_reliable() {
            self.counters.reassembly_full += 1;
            self.note_heard(slot, arrived.bytes, now);
            return false;
        }
        self.note_arrival(slot, header, step, now);
        if admission == Admission::Admitted {
            self.assemble(slot, header.sequence, fragment, piece, room, now);
        } else {
            self.skip_fragment(slot, fragment, admission);
        }
        true
    }

    /// Takes a datagram of an ordered flow before its turn.
    fn take_ahead(
        &mut self,
        slot: u32,
        arrived: &Arrived<'_>,
        step: Step,
        mut held: Held,
    ) -> Taken {
        let flow = self.flows.at(slot);
        let proven = flow.proven;
        if !self.budget.take(held.body.len() + HELD_BYTES, false, proven) {
            self.counters.reassembly_full += 1;
            self.note_heard(slot, arrived.bytes, arrived.now);
            return Taken::Dropped;
        }
        held.body = of_its_own(held.body, arrived.buffer.len());
        self.note_arrival(slot, arrived.header, step, arrived.now);
        self.hold(slot, arrived.header.sequence, held, arrived.now);
        self.after_arrival(slot, arrived, step);
        Taken::Taken
    }

    pub(super) fn after_arrival(&mut self, slot: u32, arrived: &Arrived<'_>, step: Step) {
        if self.flows.at(slot).waiting.is_some() {
            self.release(slot, arrived.now);
        }
        self.end_if_complete(slot);
        if !step.recovered {
            let gap = matches!(step.place, Place::New { missing: 1.. });
            self.note_credit(slot, arrived, gap);
        }
    }

    /// Takes a datagram that is outdated: something newer was delivered, where only the latest
    /// counts. It came, so nothing of it is lost.
    #[cold]
    fn on_outdated(&mut self, slot: u32, arrived: &Arrived<'_>, step: Step) -> Taken {
        self.flows.at(slot).counts.late += 1;
        self.counters.late += 1;
        self.note_arrival(slot, arrived.header, step, arrived.now);
        self.after_arrival(slot, arrived, step);
        Taken::Taken
    }

    /// Takes down that there is no room for what a datagram has. What is repeated comes again.
    #[cold]
    fn on_full_mailbox(&mut self, slot: u32, arrived: &Arrived<'_>, step: Step) -> Taken {
        self.counters.mailbox_full += 1;
        if self.flows.at(slot).mode.is_reliable() {
            self.note_heard(slot, arrived.bytes, arrived.now);
            self.starve(slot);
            self.report_soon(slot, arrived.now);
            return Taken::Dropped;
        }
        let messages = u64::from(arrived.header.count);
        self.flows.at(slot).counts.mailbox_full_messages += messages;
        self.counters.mailbox_full_messages += messages;
        self.note_arrival(slot, arrived.header, step, arrived.now);
        self.after_arrival(slot, arrived, step);
        Taken::Taken
    }

    /// Enters a datagram in its flow's books.
    #[inline]
    pub(super) fn note_arrival(&mut self, slot: u32, header: &Header, step: Step, now: Time) {
        self.make_window(slot, header.sequence + 1, now);
        let flow = self.flows.at(slot);
        let before = flow.window.highest();
        flow.window.insert(header.sequence);
        match step.place {
            Place::New { missing } => {
                let first = flow.next_message + step.missing_messages;
                flow.next_message = first + u64::from(header.count);
                if missing > 0 {
                    let messages = Some(step.missing_messages);
                    self.open_gap(slot, before, header.sequence, messages, now);
                }
            }
            _ => {
                let (reordered, repaired) = (u64::from(!step.recovered), u64::from(step.recovered));
                flow.counts.reordered += reordered;
                flow.counts.repaired += repaired;
                self.counters.reordered += reordered;
                self.counters.repaired += repaired;
                let lost = flow.gaps.fill(header.sequence, header.count);
                self.lose(slot, lost);
            }
        }
    }

    /// The window of a flow that repeats nothing moves on, so that it can know what is below `next`.
    #[inline]
    pub(super) fn make_window(&mut self, slot: u32, next: u64, now: Time) {
        let flow = self.flows.at(slot);
        let known = next.saturating_sub(WINDOW_DATAGRAMS_MAX as u64);
        if flow.window.below() < known {
            self.give_up_below(slot, known, now);
        }
    }

    /// Datagrams were skipped. Where nothing is repeated they have a little time to come late.
    pub(super) fn open_gap(
        &mut self,
        slot: u32,
        first: u64,
        past: u64,
        messages: Option<u64>,
        now: Time,
    ) {
        let flow = self.flows.at(slot);
        flow.gaps.open(first, past, messages, now);
        if !flow.mode.is_reliable() && !flow.gaps_armed {
            flow.gaps_armed = true;
            self.delays.arm(Delay::Gap, flow.at, now);
        }
    }

    /// The flow was heard of, with so many bytes.
    #[inline]
    pub(super) fn note_heard(&mut self, slot: u32, bytes: usize, now: Time) {
        let flow = self.flows.at(slot);
        flow.last_arrival = now;
        if !flow.proven {
            flow.may_be_sent = flow.may_be_sent.saturating_add(bytes);
            self.challenge(slot, now);
        } else if !flow.credit.active && flow.has_credit() {
            flow.credit.active = true;
            let at = flow.at;
            self.credit.join(at, now);
        }
        self.flows.touch(slot);
    }

    /// Counts a datagram against what its sender may have under way, and says whether it has to hear
    /// of that now, soon, or not yet.
    #[inline]
    fn note_credit(&mut self, slot: u32, arrived: &Arrived<'_>, gap: bool) {
        let flow = self.flows.at(slot);
        let reliable = flow.mode.is_reliable();
        let new_train = flow.last_arrival != arrived.now || flow.report.trains == 0;
        let charge = u32::try_from(arrived.bytes + KERNEL_BYTES).unwrap_or(u32::MAX);
        let mut now = arrived.header.has(flags::STATUS_WANTED) || gap && reliable;
        if flow.has_credit() {
            let credit = &mut flow.credit;
            credit.since_status = credit.since_status.saturating_add(charge);
            credit.largest = credit.largest.max(charge);
            now |= credit.since_status >= credit.granted / 4;
            let spent = credit.promised.min(charge);
            if spent > 0 {
                credit.promised -= spent;
                if let Some(room) = self.mailboxes.room(flow.room) {
                    room.promised = room.promised.saturating_sub(u64::from(spent));
                }
            }
        }
        let mut soon = false;
        if reliable {
            flow.report.trains = flow.report.trains.saturating_add(u8::from(new_train));
            now |= flow.report.trains >= 2;
            soon = true;
        }
        self.note_heard(slot, arrived.bytes, arrived.now);
        if now {
            self.report_now(slot);
        } else if soon {
            self.report_soon(slot, arrived.now);
        }
    }
}

/// Returns how many bytes a delivery would keep from being freed, if it were a slice of what came.
/// A datagram's padding is its own. The rest of a train is its flow's, and charged to that, unless
/// the flow is another's.
fn kept_bytes(arrived: &Arrived<'_>, stranger: bool) -> usize {
    let buffer = arrived.buffer.len();
    if stranger {
        return buffer;
    }
    let bytes = arrived.bytes.max(buffer / TRAIN_SEGMENTS_MAX);
    if bytes < PADDED_BYTES_MIN { 0 } else { bytes }
}
