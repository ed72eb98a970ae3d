//! The policy Spill: what a listener's ring has no room for goes to a store of the driver, as the frames
//! that would have been written, and comes back when there is room. While anything of a listener is in
//! the store, its messages and the frames with a place among them all go that way, so that they keep their
//! order. A run that is not stored yet holds back its producer's credit: producers feel the store's
//! speed, never the listener's.

use std::collections::{BTreeMap, VecDeque};

use bytes::{Bytes, BytesMut};
use quelea_elastic_proto::frame::{ErrorCode, Frame, Gap, WireError};
use quelea_elastic_proto::wire::{DataHeader, FrameHeader, Kind};
use quelea_elastic_proto::{MessageSeq, Slot, Time};

use crate::relay::ledger::{EntryNumber, Holds};
use crate::relay::limits::{
    CONTROL_BYTES_MAX, SPILL_HELD_MAX, SPILL_READ_BYTES, SPILL_WRITE_BYTES,
};
use crate::relay::overflow::Overflow;
use crate::relay::ring::{Control, Ring, Run, add_to_gap, encoded};
use crate::relay::{Port, Relay, release_in};

/// What the driver has to do, in this order. Each listener's frames are one stream of bytes.
#[derive(Debug)]
pub enum SpillJob {
    /// Append them to the listener's stream, then call [`Relay::spilled`].
    Store {
        /// Whose.
        port: Port,
        /// In order.
        frames: Vec<Bytes>,
    },
    /// Take so many bytes from its front, all of which were stored or are being, and call
    /// [`Relay::read_back`].
    Read {
        /// Whose.
        port: Port,
        /// How many.
        bytes: usize,
    },
    /// Forget the stream.
    Forget {
        /// Whose.
        port: Port,
    },
}

/// What of a listener is not in its ring.
#[derive(Debug, Default)]
pub(crate) struct Spill {
    staged: VecDeque<Staged>,
    staged_bytes: usize,
    /// Given to the driver, and not known to be stored.
    storing: VecDeque<Vec<Run>>,
    /// Given to the driver, and not asked back.
    stored_bytes: u64,
    /// Asked back.
    asked_bytes: usize,
    /// Came back without its end.
    torn: BytesMut,
    /// Runs that are acknowledged when the listener has them, in order: their acknowledgement is
    /// held here until they are back in the ring.
    held: VecDeque<Held>,
    /// Messages in all of these.
    messages: u64,
    /// Of messages that the store has no room for.
    gaps: BTreeMap<Slot, Gap>,
    dropping: bool,
    /// It is on the list of those for whom there may be a job.
    due: bool,
}

#[derive(Debug)]
enum Staged {
    Run(Run),
    Control(Bytes, Control),
}

#[derive(Debug)]
struct Held {
    slot: Slot,
    next: MessageSeq,
    producer: u32,
    entry: EntryNumber,
    at: Time,
}

impl Spill {
    pub(crate) fn is_active(&self) -> bool {
        // A gap that is still to be reported stands before what comes next.
        self.bytes() > 0 || !self.staged.is_empty() || !self.gaps.is_empty()
    }

    /// Returns when the oldest run that is not acknowledged before the listener has it was read.
    pub(crate) fn oldest_held(&self) -> Option<Time> {
        self.held.front().map(|held| held.at)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.stored_bytes + (self.staged_bytes + self.asked_bytes) as u64
    }

    fn push_control(&mut self, frame: Bytes, control: Control) {
        if let Control::Fin(slot) = control
            && let Some(gap) = self.gaps.remove(&slot)
        {
            self.push_gap(gap);
        }
        self.staged_bytes += frame.len();
        self.staged.push_back(Staged::Control(frame, control));
    }

    fn push_gap(&mut self, gap: Gap) {
        let frame = encoded(&Frame::Gap(gap));
        self.staged_bytes += frame.len();
        self.staged.push_back(Staged::Control(frame, Control::Other));
    }

    /// Returns the next job, if there is any: reading comes first, since a listener waits for it.
    fn next_job(&mut self, port: Port, room: bool) -> Option<SpillJob> {
        if room && self.asked_bytes == 0 && self.stored_bytes > 0 {
            let bytes = self.stored_bytes.min(SPILL_READ_BYTES);
            self.stored_bytes -= bytes;
            self.asked_bytes = bytes as usize;
            return Some(SpillJob::Read { port, bytes: self.asked_bytes });
        }
        // The last of it is on its way back: what has come since can follow without having been away.
        let nearly_empty = self.stored_bytes == 0 && self.asked_bytes > 0;
        if self.staged.is_empty() || (nearly_empty && self.staged_bytes < SPILL_WRITE_BYTES) {
            return None;
        }
        let (mut frames, mut runs, mut bytes) = (Vec::new(), Vec::new(), 0);
        while bytes < SPILL_WRITE_BYTES
            && let Some(staged) = self.staged.pop_front()
        {
            let frame = match staged {
                Staged::Run(run) => {
                    let frame = run.bytes.clone();
                    runs.push(Run { bytes: Bytes::new(), ..run });
                    frame
                }
                Staged::Control(frame, _) => frame,
            };
            bytes += frame.len();
            frames.push(frame);
        }
        self.staged_bytes -= bytes;
        self.stored_bytes += bytes as u64;
        self.storing.push_back(runs);
        Some(SpillJob::Store { port, frames })
    }

    /// Puts the rest into the ring, when nothing is away any more. Returns the runs that are here
    /// no more.
    fn join(&mut self, ring: &mut Ring) -> Vec<Run> {
        let mut freed = Vec::new();
        self.staged_bytes = 0;
        while let Some(staged) = self.staged.pop_front() {
            match staged {
                Staged::Run(run) => {
                    self.messages -= u64::from(run.messages);
                    freed.push(Run { bytes: Bytes::new(), ..run.clone() });
                    ring.push_run(self.held_again(run));
                }
                Staged::Control(frame, control) => ring.push_control(frame, control),
            }
        }
        freed
    }

    /// Lets the ring's run hold what is held for it here, and nothing else. Returns that run.
    fn held_again(&mut self, mut run: Run) -> Run {
        run.holds = Holds::NONE;
        let of_run = |held: &mut Held| held.slot == run.slot && held.next <= run.next();
        if let Some(held) = self.held.pop_front_if(of_run) {
            (run.producer, run.entry) = (held.producer, held.entry);
            run.holds.acknowledgement = true;
        }
        run
    }

    /// Whole frames that came back, as what they were.
    fn replay(&mut self, mut frames: Bytes, ring: &mut Ring, now: Time) {
        while let Ok(Some(header)) = FrameHeader::read(&frames) {
            if header.kind == Kind::Data {
                let run = self.take_run(&mut frames, now);
                self.messages -= u64::from(run.messages);
                ring.push_run(run);
            } else {
                let frame = frames.split_to(header.frame_bytes());
                let control = match Frame::decode(&mut frame.clone()) {
                    Ok(Some(Frame::Fin { slot, .. })) => Control::Fin(slot),
                    _ => Control::Other,
                };
                ring.push_control(frame, control);
            }
        }
    }

    /// Takes the run at the front of `frames`, as far as it is one entry of its producer's ledger.
    fn take_run(&mut self, frames: &mut Bytes, now: Time) -> Run {
        let (mut end, mut messages) = (0, 0);
        let (mut slot, mut first) = (Slot(0), MessageSeq(0));
        let ends_at = self.held.front().map(|held| held.next);
        while let Some(data) = DataHeader::of_frame(&frames[end..])
            && let Ok(Some(header)) = FrameHeader::read(&frames[end..])
            && header.kind == Kind::Data
        {
            let next = first.0 + u64::from(messages);
            if messages == 0 {
                (slot, first) = (data.slot, data.sequence);
            } else if data.slot != slot
                || data.sequence.0 != next
                || ends_at.is_some_and(|at| at.0 == next)
            {
                break;
            }
            end += header.frame_bytes();
            messages += 1;
        }
        let bytes = frames.split_to(end);
        let (producer, entry, holds) = (u32::MAX, 0, Holds::NONE);
        let run =
            Run { bytes, producer, slot, first, messages, entry, holds, sparse: false, at: now };
        self.held_again(run)
    }
}

impl Relay {
    /// Lets listeners spill, up to so many bytes each. Without it the policy Spill is refused.
    pub const fn allow_spill(&mut self, bytes_max: u64) {
        self.spill_bytes_max = bytes_max;
    }

    /// A run of a listener whose ring is full, or of whom something is away already.
    pub(crate) fn spill(&mut self, index: u32, mut run: Run) {
        let late = self.config.settings.acknowledge.waits_for_listeners();
        let spill_bytes_max = self.spill_bytes_max;
        let Some(listener) = &mut self.clients[index as usize].listener else { return };
        let held = late && !listener.left_behind;
        let spill = listener.spill.get_or_insert_default();
        let bytes = spill.bytes() + run.bytes.len() as u64;
        spill.dropping = bytes > spill_bytes_max
            || spill.held.len() >= SPILL_HELD_MAX
            || (spill.dropping && bytes > spill_bytes_max / 4 * 3);
        if spill.dropping {
            add_to_gap(&mut spill.gaps, run.slot, run.first, run.next(), u64::from(run.messages));
            listener.dropped += u64::from(run.messages);
            self.counters.dropped_newest += u64::from(run.messages);
            self.was_dropped_for(index);
            return;
        }
        if let Some(gap) = spill.gaps.remove(&run.slot) {
            spill.push_gap(gap);
        }
        if run.sparse {
            run.unpin();
        }
        run.holds = Holds { credit: true, acknowledgement: !late };
        let acknowledgement = held || !late;
        self.producers[run.producer as usize].ledger.hold(Holds { credit: true, acknowledgement });
        if held {
            let (slot, next, at) = (run.slot, run.next(), self.now);
            spill.held.push_back(Held { slot, next, producer: run.producer, entry: run.entry, at });
        }
        spill.messages += u64::from(run.messages);
        self.counters.spilled += u64::from(run.messages);
        spill.staged_bytes += run.bytes.len();
        spill.staged.push_back(Staged::Run(run));
        self.spill_is_due(index);
    }

    /// Takes a frame with a place among a listener's messages, if some of them are away. Returns it
    /// if not.
    pub(crate) fn spill_control(
        &mut self,
        index: u32,
        frame: Bytes,
        control: Control,
    ) -> Option<Bytes> {
        let Some(spill) = self.active_spill(index) else { return Some(frame) };
        spill.push_control(frame, control);
        if spill.bytes() > self.spill_bytes_max + CONTROL_BYTES_MAX as u64 {
            self.mark_overfull(index, Overflow::Spill);
        }
        self.spill_is_due(index);
        None
    }

    fn active_spill(&mut self, index: u32) -> Option<&mut Spill> {
        let listener = self.clients.get_mut(index as usize)?.listener.as_mut()?;
        listener.spill.as_deref_mut().filter(|spill| spill.is_active())
    }

    /// Something has changed that may make a job.
    pub(crate) fn spill_is_due(&mut self, index: u32) {
        if let Some(spill) = self.active_spill(index)
            && !std::mem::replace(&mut spill.due, true)
        {
            self.spill_due.push_back(index);
        }
    }

    /// Returns the next job that the driver has to do for the policy Spill.
    pub fn poll_spill(&mut self) -> Option<SpillJob> {
        if let Some(port) = self.spill_forgotten.pop_front() {
            return Some(SpillJob::Forget { port });
        }
        while let Some(index) = self.spill_due.pop_front() {
            if let Some(job) = self.spill_job(index) {
                self.spill_is_due(index);
                return Some(job);
            }
        }
        None
    }

    fn spill_job(&mut self, index: u32) -> Option<SpillJob> {
        let (ring_bytes_max, spill_bytes_max) = (self.ring_bytes_max, self.spill_bytes_max);
        let client = self.clients.get_mut(index as usize)?;
        let port = Port { index, generation: client.generation };
        let spill = client.listener.as_mut()?.spill.as_deref_mut()?;
        spill.due = false;
        if !spill.gaps.is_empty() && spill.bytes() <= spill_bytes_max / 4 * 3 {
            // There is room again, and nobody knows when the next message comes.
            spill.dropping = false;
            while let Some((_, gap)) = spill.gaps.pop_first() {
                spill.push_gap(gap);
            }
        }
        let room = client.ring.bytes() <= ring_bytes_max / 2;
        if room && spill.stored_bytes == 0 && spill.asked_bytes == 0 && !spill.staged.is_empty() {
            for run in spill.join(&mut client.ring) {
                release_in(&mut self.producers, &mut self.unsettled, &run);
            }
            self.mark_dirty(index);
            return None;
        }
        spill.next_job(port, room)
    }

    /// The oldest Store of this listener that was not yet said to be done is.
    pub fn spilled(&mut self, port: Port) {
        let Some(index) = self.index(port) else { return };
        let Self { clients, producers, unsettled, .. } = self;
        let Some(listener) = &mut clients[index as usize].listener else { return };
        let storing = listener.spill.as_mut().and_then(|spill| spill.storing.pop_front());
        for run in storing.into_iter().flatten() {
            release_in(producers, unsettled, &run);
        }
    }

    /// What was to be read is here.
    pub fn read_back(&mut self, port: Port, bytes: &[u8]) {
        let now = self.now;
        let Some(index) = self.index(port) else { return };
        let client = &mut self.clients[index as usize];
        let Some(spill) =
            client.listener.as_mut().and_then(|listener| listener.spill.as_deref_mut())
        else {
            return;
        };
        spill.asked_bytes = 0;
        spill.torn.extend_from_slice(bytes);
        let mut end = 0;
        while let Ok(Some(header)) = FrameHeader::read(&spill.torn[end..])
            && end + header.frame_bytes() <= spill.torn.len()
        {
            end += header.frame_bytes();
        }
        let frames = spill.torn.split_to(end).freeze();
        spill.replay(frames, &mut client.ring, now);
        self.mark_dirty(index);
        self.spill_is_due(index);
    }

    /// The store cannot do it: the listener is disconnected and has to come again; it will know by the messages'
    /// numbers what it has not got.
    pub fn spill_failed(&mut self, port: Port, cause: &str) {
        let Some(index) = self.index(port) else { return };
        self.counters.too_slow += 1;
        let text = format!("the messages that this client was too slow for are lost: {cause}");
        self.refuse(index, WireError::fatal(ErrorCode::Unavailable, "spill", text));
    }

    /// A listener is gone, and all of it that is away.
    pub(crate) fn forget_spill(&mut self, index: u32, spill: Spill) {
        let generation = self.clients[index as usize].generation;
        self.counters.dropped_gone += spill.messages;
        let staged = spill.staged.into_iter().filter_map(|staged| match staged {
            Staged::Run(run) => Some(run),
            Staged::Control(..) => None,
        });
        for run in staged.chain(spill.storing.into_iter().flatten()) {
            release_in(&mut self.producers, &mut self.unsettled, &run);
        }
        self.release_held(spill.held);
        self.spill_forgotten.push_back(Port { index, generation });
    }

    fn release_held(&mut self, held: VecDeque<Held>) {
        for Held { slot, producer, entry, .. } in held {
            self.release(producer, slot, entry, Holds { credit: false, acknowledgement: true });
        }
    }

    /// Nobody waits for this listener any more: the level is another one.
    pub(crate) fn spill_holds_nothing(&mut self, index: u32) {
        if let Some(spill) = self.active_spill(index) {
            let held = std::mem::take(&mut spill.held);
            self.release_held(held);
        }
    }
}
