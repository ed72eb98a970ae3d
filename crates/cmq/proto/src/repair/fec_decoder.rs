//! The receiver's part: keeps what may be needed, and recovers what is missing.

use std::collections::{BTreeMap, VecDeque};

use crate::limits::{REPAIR_GROUPS_MAX, REPAIR_HELD_BYTES_MAX, REPAIR_KEPT_MAX};
use crate::repair::block::{Block, segment_of};
use crate::repair::code::{coefficient, solve};
use crate::repair::field::add_product;
use crate::wire::parity::{BLOCK_HEAD_BYTES, Parity};
use crate::wire::{HEADER_BYTES, Header, Malformed};

/// A DATA that was lost and is there again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// Its header.
    pub header: Header,
    /// Header and body, as it was before it was sealed; without STATUS_WANTED.
    pub segment: Vec<u8>,
}

/// What a DATA takes beside its body.
const KEPT_BYTES: usize = 96;

/// Recovers one flow. It holds at most [`REPAIR_HELD_BYTES_MAX`]: copies of the DATA of which parity may
/// still come, as that of a message in fragments comes behind its last one, and the parities of
/// groups that are not whole yet.
#[derive(Debug, Default)]
pub struct FecDecoder {
    /// The last DATA, by sequence.
    kept: BTreeMap<u64, Kept>,
    /// One past the DATA of the newest group that a parity came of.
    parity_below: u64,
    /// Groups that are not whole, the oldest first.
    groups: VecDeque<Group>,
    recovered: VecDeque<Result<Recovered, Malformed>>,
    /// Bytes of all of them.
    held: usize,
}

#[derive(Debug)]
struct Kept {
    header: Header,
    body: Vec<u8>,
}

impl Kept {
    const fn bytes(&self) -> usize {
        KEPT_BYTES + self.body.len()
    }
}

#[derive(Debug)]
struct Group {
    /// Of its first parity.
    header: Header,
    head: Parity,
    parities: Vec<(u8, Vec<u8>)>,
}

impl Group {
    fn has(&self, sequence: u64) -> bool {
        sequence.checked_sub(self.head.first).is_some_and(|at| at < u64::from(self.head.data))
    }

    fn bytes(&self) -> usize {
        self.parities.iter().map(|(_, bytes)| bytes.capacity()).sum()
    }
}

impl FecDecoder {
    /// Creates the decoder of a flow of which nothing came yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a DATA with the flag [`crate::wire::flags::REPAIR`] that came by itself, after it was
    /// opened. It may be the one that makes another one recoverable.
    pub fn on_data(&mut self, header: &Header, body: &[u8]) {
        self.keep(header, body);
        if let Some(at) = self.groups.iter().position(|group| group.has(header.sequence)) {
            self.try_mend(at);
        }
    }

    /// Takes a PARITY after it was opened: its header, and what [`Parity::read`] gave.
    pub fn on_parity(&mut self, header: &Header, head: Parity, parity: &[u8]) {
        self.parity_below = self.parity_below.max(head.first + u64::from(head.data));
        self.forget_below(head.first.saturating_sub(REPAIR_KEPT_MAX as u64));
        if self.missing(&head).is_empty() {
            return;
        }
        let known = self.groups.iter().position(|group| group.head.first == head.first);
        let at = known.unwrap_or_else(|| {
            self.groups.push_back(Group { header: *header, head, parities: Vec::new() });
            self.groups.len() - 1
        });
        let group = &mut self.groups[at];
        let is_new = group.parities.iter().all(|(index, _)| *index != head.index);
        // Of two groups that contradict each other the first one counts.
        if !is_new || group.head != (Parity { index: group.head.index, ..head }) {
            return;
        }
        group.parities.push((head.index, parity.to_vec()));
        self.held += parity.len();
        self.try_mend(at);
        while self.groups.len() > REPAIR_GROUPS_MAX || self.held > REPAIR_HELD_BYTES_MAX {
            if !self.forget_oldest() {
                break;
            }
        }
    }

    /// Returns what was recovered. Ask until there is none.
    ///
    /// # Errors
    /// [`Malformed`] if a group of parities was wrong.
    pub fn poll_recovered(&mut self) -> Option<Result<Recovered, Malformed>> {
        self.recovered.pop_front()
    }

    /// Returns from which DATA on parity may still come: none did of its group, nor of a later one.
    #[must_use]
    pub const fn parity_below(&self) -> u64 {
        self.parity_below
    }

    /// Returns how many bytes are held, for whoever counts them over all flows.
    #[must_use]
    pub const fn held_bytes(&self) -> usize {
        self.held
    }

    fn keep(&mut self, header: &Header, body: &[u8]) {
        let kept = Kept { header: *header, body: body.to_vec() };
        self.held += kept.bytes();
        if let Some(before) = self.kept.insert(header.sequence, kept) {
            self.held -= before.bytes();
        }
        while self.held > REPAIR_HELD_BYTES_MAX {
            if !self.forget_oldest() {
                break;
            }
        }
    }

    fn find(&self, sequence: u64) -> Option<&Kept> {
        self.kept.get(&sequence)
    }

    /// Returns which of a group's datagrams are not here.
    fn missing(&self, head: &Parity) -> Vec<u8> {
        (0..head.data).filter(|at| self.find(head.first + u64::from(*at)).is_none()).collect()
    }

    /// Recovers the group if it can be; then, or if nothing is missing, the group is done.
    fn try_mend(&mut self, at: usize) {
        let missing = self.missing(&self.groups[at].head);
        if missing.len() > self.groups[at].parities.len() {
            return;
        }
        let Some(group) = self.groups.remove(at) else { return };
        self.held -= group.bytes();
        if missing.is_empty() {
            return;
        }
        if self.is_too_short(&group, missing.len()) {
            self.recovered.push_back(Err(Malformed::Parity));
            return;
        }
        let blocks = self.blocks(&group, &missing);
        for (data, block) in missing.iter().zip(blocks) {
            let sequence = group.head.first + u64::from(*data);
            let Some((header, segment)) = segment_of(&block, &group.header, sequence) else {
                self.recovered.push_back(Err(Malformed::Parity));
                continue;
            };
            // The group's other parities are not to recover it again.
            self.keep(&header, &segment[HEADER_BYTES..]);
            self.recovered.push_back(Ok(Recovered { header, segment }));
        }
    }

    /// Returns whether a parity of which so many are used is shorter than a block that is here: its
    /// sender made none such, and to compute with it would cost much more than to send it.
    fn is_too_short(&self, group: &Group, used: usize) -> bool {
        let shortest = group.parities[..used].iter().map(|(_, bytes)| bytes.len()).min();
        let there = (0..group.head.data)
            .filter_map(|at| self.find(group.head.first + u64::from(at)))
            .map(|kept| BLOCK_HEAD_BYTES + kept.body.len());
        there.max() > shortest
    }

    /// Computes the missing blocks.
    fn blocks(&self, group: &Group, missing: &[u8]) -> Vec<Vec<u8>> {
        let parities = &group.parities[..missing.len()];
        // A parity may have padding behind it; so the longest is what a block has at most, and zeros
        // behind the others change nothing.
        let there = (0..group.head.data)
            .filter_map(|at| Some((at, self.find(group.head.first + u64::from(at))?)))
            .map(|(at, kept)| (at, Block::new(&kept.header, &kept.body)));
        let there: Vec<(u8, Block<'_>)> = there.collect();
        let longest = parities.iter().map(|(_, bytes)| bytes.len()).max();
        // `add_to` needs a block's head at least.
        let longest = longest.unwrap_or(0).max(BLOCK_HEAD_BYTES);
        // What is left of each parity when those that are here are taken out of it.
        let left: Vec<Vec<u8>> = parities
            .iter()
            .map(|(index, bytes)| {
                let mut left = bytes.clone();
                left.resize(longest, 0);
                for (at, block) in &there {
                    block.add_to(&mut left, coefficient(*index, *at));
                }
                left
            })
            .collect();
        let indexes: Vec<u8> = parities.iter().map(|(index, _)| *index).collect();
        let weigh = |weights: Vec<u8>| {
            let mut block = vec![0; longest];
            for (left, weight) in left.iter().zip(weights) {
                add_product(&mut block, left, weight);
            }
            block
        };
        solve(&indexes, missing).into_iter().map(weigh).collect()
    }

    /// Makes room. Returns whether there was anything to forget.
    fn forget_oldest(&mut self) -> bool {
        if let Some(group) = self.groups.pop_front() {
            self.held -= group.bytes();
            return true;
        }
        let oldest = self.kept.pop_first();
        self.held -= oldest.as_ref().map_or(0, |(_, kept)| kept.bytes());
        oldest.is_some()
    }

    /// Parity comes in the order of its groups: none of those before `floor` will come any more.
    fn forget_below(&mut self, floor: u64) {
        while let Some(oldest) = self.kept.first_entry()
            && *oldest.key() < floor
        {
            self.held -= oldest.remove().bytes();
        }
        let held = &mut self.held;
        self.groups.retain(|group| {
            let stays = group.head.first >= floor;
            *held -= if stays { 0 } else { group.bytes() };
            stays
        });
    }
}
