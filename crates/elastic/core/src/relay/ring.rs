//! What waits to be written to one client: frames for it alone, and runs of messages that it
//! shares with others. Dropping keeps order and announces what is missing.

use std::collections::{BTreeMap, VecDeque};
use std::io::IoSlice;

use bytes::{Bytes, BytesMut};
use quelea_elastic_proto::frame::{Frame, Gap, GapCause};
use quelea_elastic_proto::wire::FrameHeader;
use quelea_elastic_proto::{MessageSeq, Slot, Time};

use crate::relay::ledger::{EntryNumber, Holds};

/// A run of one producer's messages, without a hole: whole DATA frames as they were read.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) bytes: Bytes,
    /// Number of the producer within the relay; another one may have it when `slot` differs.
    pub(crate) producer: u32,
    pub(crate) slot: Slot,
    pub(crate) first: MessageSeq,
    pub(crate) messages: u32,
    /// Where it stands in the producer's ledger, and what it holds back there.
    pub(crate) entry: EntryNumber,
    pub(crate) holds: Holds,
    /// It keeps alive a buffer many times its size.
    pub(crate) sparse: bool,
    /// When it was read.
    pub(crate) at: Time,
}

impl Run {
    pub(crate) const fn next(&self) -> MessageSeq {
        MessageSeq(self.first.0 + self.messages as u64)
    }
}

/// What was dropped of a ring.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Dropped<'a> {
    /// A run, whole: it holds nothing back any more.
    Run(&'a Run),
    /// So many messages of the run that is being written, which stays.
    Part(u32),
}

impl Dropped<'_> {
    pub(crate) fn messages(self) -> u64 {
        match self {
            Self::Run(run) => u64::from(run.messages),
            Self::Part(messages) => u64::from(messages),
        }
    }
}

/// A frame that is not a message, as far as dropping has to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Control {
    /// GAPs of this slot go before it.
    Fin(Slot),
    Other,
}

#[derive(Debug)]
enum Item {
    Run(Run),
    Control(Bytes, Control),
    /// Not encoded yet, so that more can be added to it.
    Gap(Gap),
}

impl Item {
    fn len(&self) -> usize {
        match self {
            Self::Run(run) => run.bytes.len(),
            Self::Control(bytes, _) => bytes.len(),
            Self::Gap(_) => 0,
        }
    }
}

/// What waits to be written to a client, in that order.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    items: VecDeque<Item>,
    /// Bytes of the first item that are written.
    written: usize,
    /// Bytes of all runs; the first one counts until all of it is written.
    bytes: usize,
    control_bytes: usize,
    /// Items that are GAPs: they have to be encoded before they are written.
    unsealed: usize,
    /// What was dropped since the last run of its slot, in the slots' order.
    open_gaps: BTreeMap<Slot, Gap>,
}

impl Ring {
    /// Appends a frame that is never dropped.
    pub(crate) fn push_control(&mut self, frame: Bytes, control: Control) {
        if let Control::Fin(slot) = control {
            self.close_gap(slot);
        }
        self.control_bytes += frame.len();
        self.items.push_back(Item::Control(frame, control));
    }

    /// Appends messages, behind the GAP of those of the same slot that were dropped before.
    pub(crate) fn push_run(&mut self, run: Run) {
        if !self.open_gaps.is_empty() {
            self.close_gap(run.slot);
        }
        self.bytes += run.bytes.len();
        self.items.push_back(Item::Run(run));
    }

    /// Notes that these messages are not given to the client: the newest ones of their slot.
    pub(crate) fn drop_newest(&mut self, run: &Run) {
        add_to_gap(&mut self.open_gaps, run.slot, run.first, run.next(), u64::from(run.messages));
    }

    fn close_gap(&mut self, slot: Slot) {
        if let Some(gap) = self.open_gaps.remove(&slot) {
            self.unsealed += 1;
            self.items.push_back(Item::Gap(gap));
        }
    }

    /// Appends the GAPs that are open: there is room again, and nobody knows when the next message comes.
    pub(crate) fn close_gaps(&mut self) {
        while let Some((_, gap)) = self.open_gaps.pop_first() {
            self.unsealed += 1;
            self.items.push_back(Item::Gap(gap));
        }
    }

    /// Drops runs from the oldest on until at most `bytes_max` and about `items_max` are left, and puts
    /// GAPs in their place. A frame of which a part was written stays.
    pub(crate) fn drop_oldest(
        &mut self,
        bytes_max: usize,
        items_max: usize,
        mut dropped: impl FnMut(Dropped<'_>),
    ) {
        let under_way = (self.written > 0).then(|| self.items.pop_front()).flatten();
        let mut kept = Vec::new();
        let mut gaps = BTreeMap::new();
        let begun = match under_way {
            Some(Item::Run(run)) => {
                let (begun, messages) = self.cut_behind_written(run, &mut gaps);
                dropped(Dropped::Part(messages));
                Some(Item::Run(begun))
            }
            other => other,
        };
        while (self.bytes > bytes_max || self.items.len() + kept.len() > items_max)
            && let Some(item) = self.items.pop_front()
        {
            match item {
                Item::Run(run) => {
                    self.bytes -= run.bytes.len();
                    add_to_gap(&mut gaps, run.slot, run.first, run.next(), u64::from(run.messages));
                    dropped(Dropped::Run(&run));
                }
                Item::Gap(gap) => {
                    self.unsealed -= 1;
                    add_to_gap(&mut gaps, gap.slot, gap.from, gap.to, gap.messages);
                }
                Item::Control(bytes, control) => {
                    if let Control::Fin(slot) = control
                        && let Some(gap) = gaps.remove(&slot)
                    {
                        kept.push(Item::Gap(gap));
                    }
                    kept.push(Item::Control(bytes, control));
                }
            }
        }
        kept.extend(gaps.into_values().map(Item::Gap));
        self.unsealed += kept.iter().filter(|item| matches!(item, Item::Gap(_))).count();
        kept.into_iter().rev().for_each(|item| self.items.push_front(item));
        if let Some(begun) = begun {
            self.items.push_front(begun);
        }
    }

    /// Cuts off what comes behind the frame that is being written. Returns the rest of the run, and how
    /// many messages were cut off.
    fn cut_behind_written(&mut self, mut run: Run, gaps: &mut BTreeMap<Slot, Gap>) -> (Run, u32) {
        let (mut end, mut messages) = (0, 0);
        while end < self.written
            && let Ok(Some(header)) = FrameHeader::read(&run.bytes[end..])
        {
            end += header.frame_bytes();
            messages += 1;
        }
        let cut = run.messages - messages;
        if cut > 0 {
            let from = MessageSeq(run.first.0 + u64::from(messages));
            add_to_gap(gaps, run.slot, from, run.next(), u64::from(cut));
            self.bytes -= run.bytes.len() - end;
            run.bytes.truncate(end);
            run.messages = messages;
        }
        (run, cut)
    }

    /// Throws away all that was not begun: the client is going to be disconnected.
    pub(crate) fn clear(&mut self, mut dropped: impl FnMut(Dropped<'_>)) {
        self.drop_oldest(0, usize::MAX, &mut dropped);
        let keep = usize::from(self.written > 0);
        for item in self.items.drain(keep.min(self.items.len())..) {
            if let Item::Control(bytes, _) = item {
                self.control_bytes -= bytes.len();
            }
        }
        self.unsealed = 0;
        self.open_gaps.clear();
    }

    /// Returns the runs that wait, in order.
    pub(crate) fn runs_mut(&mut self) -> impl Iterator<Item = &mut Run> {
        self.items.iter_mut().filter_map(|item| match item {
            Item::Run(run) => Some(run),
            _ => None,
        })
    }

    /// Returns when the oldest run that is not acknowledged before the client has it was read.
    pub(crate) fn oldest_held(&self) -> Option<Time> {
        let held = |item: &Item| match item {
            Item::Run(run) if run.holds.acknowledgement => Some(run.at),
            _ => None,
        };
        self.items.iter().find_map(held)
    }

    /// Takes the next run away, for an edge that writes by itself. Frames for native clients are left out.
    pub(crate) fn pop_run(&mut self) -> Option<Run> {
        loop {
            match self.items.pop_front()? {
                Item::Run(run) => {
                    self.bytes -= run.bytes.len();
                    return Some(run);
                }
                Item::Control(bytes, _) => self.control_bytes -= bytes.len(),
                Item::Gap(_) => self.unsealed -= 1,
            }
        }
    }

    /// Fills `slices` with what is to be written next. Returns how many of them are filled.
    pub(crate) fn slices<'a>(&'a mut self, slices: &mut [IoSlice<'a>]) -> usize {
        if self.unsealed > 0 {
            self.seal();
        }
        let mut filled = 0;
        let mut skip = self.written;
        for (slice, item) in slices.iter_mut().zip(&self.items) {
            let (Item::Run(Run { bytes, .. }) | Item::Control(bytes, _)) = item else { break };
            *slice = IoSlice::new(&bytes[skip..]);
            skip = 0;
            filled += 1;
        }
        filled
    }

    fn seal(&mut self) {
        for item in &mut self.items {
            if let Item::Gap(gap) = item {
                let bytes = encoded(&Frame::Gap(*gap));
                self.control_bytes += bytes.len();
                *item = Item::Control(bytes, Control::Other);
            }
        }
        self.unsealed = 0;
    }

    /// So many bytes of the slices were written. Calls `finished` for each run that is written whole.
    pub(crate) fn advance(&mut self, bytes: usize, mut finished: impl FnMut(Run)) {
        self.written += bytes;
        while let Some(item) = self.items.front()
            && !matches!(item, Item::Gap(_))
            && self.written >= item.len()
        {
            self.written -= item.len();
            match self.items.pop_front() {
                Some(Item::Run(run)) => {
                    self.bytes -= run.bytes.len();
                    finished(run);
                }
                Some(Item::Control(bytes, _)) => self.control_bytes -= bytes.len(),
                _ => {}
            }
        }
    }

    /// Copies runs that keep large buffers alive: the ring is not written now, and may not be for long.
    pub(crate) fn unpin(&mut self) {
        for run in self.runs_mut().filter(|run| run.sparse) {
            run.unpin();
        }
    }

    /// Returns how many bytes the messages that wait have.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns how many bytes all frames that are no messages have.
    pub(crate) const fn control_bytes(&self) -> usize {
        self.control_bytes
    }

    /// Returns how many entries of any kind the ring has.
    pub(crate) fn items(&self) -> usize {
        self.items.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns whether messages are being dropped, and no GAP was sent yet.
    pub(crate) fn has_open_gaps(&self) -> bool {
        !self.open_gaps.is_empty()
    }
}

impl Run {
    /// Copies the messages out of the large buffer.
    pub(crate) fn unpin(&mut self) {
        self.bytes = Bytes::copy_from_slice(&self.bytes);
        self.sparse = false;
    }
}

pub(crate) fn add_to_gap(
    gaps: &mut BTreeMap<Slot, Gap>,
    slot: Slot,
    from: MessageSeq,
    to: MessageSeq,
    messages: u64,
) {
    let cause = GapCause::TooSlow;
    let gap = gaps.entry(slot).or_insert(Gap { slot, from, to, messages: 0, cause });
    gap.from = gap.from.min(from);
    gap.to = gap.to.max(to);
    gap.messages += messages;
}

/// Encodes a frame of the relay's own making, as on the wire.
pub(crate) fn encoded(frame: &Frame) -> Bytes {
    let mut bytes = BytesMut::new();
    // All that a relay says is within the limits: it was read within them, or is made of numbers.
    let fits = frame.encode(&mut bytes);
    debug_assert!(fits.is_ok(), "{frame:?}: {fits:?}");
    bytes.freeze()
}
