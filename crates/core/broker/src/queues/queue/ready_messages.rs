//! The messages of a queue that wait for a consumer: one index, or one per used priority.

use quelea_model::{QueueId, Resident, Seq, Timestamp};
use quelea_store::{
    CheckpointCursor, Drained, Entry, Front, LoadWhat, Loaded, Location, NextRead, PagedRange,
    QueueIndex, QueuedMessage, QueuedMessageRef, Store, UnstoredMessage,
};

/// What would be given out next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Head {
    Empty,
    /// A message that is in memory.
    Here,
    /// A message whose body, or whose place in the index, has to be read first.
    Absent,
}

/// What is taken because it expired.
#[derive(Debug)]
pub(crate) enum Expired {
    Nothing,
    Message(QueuedMessage),
    /// An expired message may lie in what is not in memory.
    Absent,
}

#[derive(Debug)]
struct Level {
    priority: u8,
    index: QueueIndex,
}

/// Highest priority first, and in the order of publication within a priority.
#[derive(Debug)]
pub(crate) struct ReadyMessages {
    /// Never empty. A queue without priorities has one level.
    levels: Vec<Level>,
    priority_max: u8,
    len: usize,
    /// Paged-out ranges that cannot be read back. They stay in the log, for whoever repairs it.
    unreadable: Vec<PagedRange>,
}

impl ReadyMessages {
    /// Takes what was recovered, or an empty index.
    pub(crate) fn new(priority_max: Option<u8>, recovered: QueueIndex) -> Self {
        let priority_max = priority_max.unwrap_or(0);
        let len = recovered.len();
        let mut ready = Self {
            levels: vec![Level { priority: 0, index: QueueIndex::new() }],
            priority_max,
            len,
            unreadable: Vec::new(),
        };
        if priority_max == 0 {
            ready.levels[0].index = recovered;
        } else {
            ready.distribute(recovered);
        }
        ready
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn body_bytes(&self) -> u64 {
        self.levels.iter().map(|level| level.index.body_bytes()).sum()
    }

    pub(crate) fn resident(&self) -> Resident {
        let levels = self.levels.iter().map(|level| level.index.resident());
        levels.fold(Resident::default(), |sum, level| sum + level)
    }

    pub(crate) fn index_bytes(&self) -> usize {
        self.levels.iter().map(|level| level.index.index_bytes()).sum()
    }

    /// A new message: the greatest number so far.
    pub(crate) fn push(&mut self, message: QueuedMessage) {
        self.len += 1;
        let level = self.level_of(message.entry.priority);
        level.index.push_back(message.entry, message.expires_at, message.body);
    }

    /// A message goes back to its old place.
    pub(crate) fn insert(&mut self, message: QueuedMessage) {
        self.len += 1;
        let level = self.level_of(message.entry.priority);
        level.index.insert(message.entry, message.expires_at, message.body);
    }

    pub(crate) fn head(&self) -> Head {
        let Some(level) = self.first() else {
            return Head::Empty;
        };
        match level.index.front() {
            Front::Entry { body: Some(_), .. } => Head::Here,
            Front::Entry { body: None, .. } | Front::Paged(_) => Head::Absent,
            Front::Empty => Head::Empty,
        }
    }

    /// Returns the number of what comes next; `None` if there is nothing or it is paged out.
    pub(crate) fn head_seq(&self) -> Option<Seq> {
        match self.first()?.index.front() {
            Front::Entry { entry, .. } => Some(entry.seq),
            Front::Paged(_) | Front::Empty => None,
        }
    }

    /// Takes what comes next, with or without its body; `None` if there is nothing or it is paged
    /// out.
    pub(crate) fn pop(&mut self) -> Option<QueuedMessage> {
        let message = self.levels.iter_mut().find(|l| !l.index.is_empty())?.index.pop_front()?;
        self.len -= 1;
        Some(message)
    }

    /// Takes an expired message from the head of any priority. Behind a head that lives longer a
    /// message stays, expired or not, as in RabbitMQ.
    pub(crate) fn pop_expired(&mut self, is_expired: impl Fn(Timestamp) -> bool) -> Expired {
        for level in &mut self.levels {
            match level.index.front() {
                Front::Entry { expires_at: Some(at), .. } if is_expired(at) => {
                    if let Some(message) = level.index.pop_front() {
                        self.len -= 1;
                        return Expired::Message(message);
                    }
                }
                Front::Paged(range) if is_expired(range.earliest_expiry) => {
                    return Expired::Absent;
                }
                _ => {}
            }
        }
        Expired::Nothing
    }

    /// Returns when the first of the heads expires.
    pub(crate) fn next_expiry(&self) -> Option<Timestamp> {
        let expiries = self.levels.iter().filter_map(|level| match level.index.front() {
            Front::Entry { expires_at, .. } => expires_at,
            Front::Paged(range) if range.earliest_expiry != quelea_store::NEVER => {
                Some(range.earliest_expiry)
            }
            _ => None,
        });
        expiries.min()
    }

    /// Returns the message of a number, if it is here and not paged out.
    pub(crate) fn get(&self, seq: Seq) -> Option<QueuedMessageRef<'_>> {
        self.levels.iter().find_map(|level| level.index.get(seq))
    }

    /// Returns the number of the message that has `n` before it, of those with the highest
    /// priority.
    pub(crate) fn nth(&self, n: usize) -> Option<Seq> {
        self.first()?.index.nth(n)
    }

    /// Returns the range that a number lies in.
    pub(crate) fn paged_range_of(&self, seq: Seq) -> Option<&PagedRange> {
        self.levels.iter().find_map(|level| level.index.paged_range_of(seq))
    }

    /// Returns the entries from this number on that are not paged out, in order within each
    /// priority.
    pub(crate) fn entries_from(&self, seq: Seq) -> impl Iterator<Item = &Entry> {
        self.levels.iter().flat_map(move |level| level.index.entries_from(seq))
    }

    /// Sets the range that begins at `location` aside, since it cannot be read. False if there is none.
    pub(crate) fn take_paged_range(&mut self, location: Location) -> bool {
        let range = self.levels.iter_mut().find_map(|l| l.index.remove_paged_range(location));
        self.set_range_aside(range)
    }

    /// Returns the first range that is paged out.
    pub(crate) fn first_paged_range(&self) -> Option<&PagedRange> {
        self.levels.iter().find_map(|level| level.index.paged_ranges().next())
    }

    /// Returns the entries that are not paged out, in order within each priority.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.levels.iter().flat_map(|level| level.index.entries().map(|(entry, _)| entry))
    }

    /// Returns all from a place on in the order in which it is given out, each with its level's
    /// priority. A range that recovery made may hold lower priorities, too.
    pub(crate) fn all_from(
        &self,
        (priority, seq): (u8, Seq),
    ) -> impl Iterator<Item = (u8, Front<'_>)> {
        let levels = self.levels.iter().filter(move |level| level.priority <= priority);
        levels.flat_map(move |level| {
            let from = if level.priority == priority { seq } else { Seq(0) };
            level.index.all_from(from).map(|front| (level.priority, front))
        })
    }

    /// Returns whether a message is in it, paged out or not.
    pub(crate) fn may_hold(&self, seq: Seq) -> bool {
        self.get(seq).is_some() || self.paged_range_of(seq).is_some()
    }

    /// Returns the smallest number of all.
    pub(crate) fn oldest_seq(&self) -> Option<Seq> {
        let heads = self.levels.iter().filter_map(|level| match level.index.front() {
            Front::Entry { entry, .. } => Some(entry.seq),
            Front::Paged(range) => Some(range.first),
            Front::Empty => None,
        });
        heads.min()
    }

    /// Returns when the message at the head of the highest priority expires; of a range that is
    /// paged out, the earliest expiry in it. It says when the message was sent.
    pub(crate) fn head_expiry(&self) -> Option<Timestamp> {
        match self.first()?.index.front() {
            Front::Entry { expires_at, .. } => expires_at,
            Front::Paged(range) => Some(range.earliest_expiry),
            Front::Empty => None,
        }
    }

    /// A message came that is not visible yet: [`QueueIndex::skip`].
    pub(crate) fn skip(&mut self) {
        self.levels.iter_mut().for_each(|level| level.index.skip());
    }

    /// Takes a message by its number.
    pub(crate) fn remove(&mut self, seq: Seq) -> Option<QueuedMessage> {
        let message = self.levels.iter_mut().find_map(|level| level.index.remove(seq))?;
        self.len -= 1;
        Some(message)
    }

    /// Takes anything, whether it can be read or not: all of it goes.
    pub(crate) fn pop_any(&mut self) -> Option<Drained> {
        let Some(level) = self.levels.iter_mut().find(|level| !level.index.is_empty()) else {
            return self.unreadable.pop().map(Drained::PagedRange);
        };
        if let Some(range) = level.index.pop_front_paged_range() {
            self.len -= range.count as usize;
            return Some(Drained::PagedRange(range));
        }
        self.len -= 1;
        level.index.pop_front().map(Drained::Entry)
    }

    /// Returns what has to be read so that the next messages are in memory, up to `bytes_max`.
    pub(crate) fn missing(&self, bytes_max: usize) -> Vec<LoadWhat> {
        let Some(level) = self.first() else {
            return Vec::new();
        };
        match level.index.next_read(bytes_max) {
            NextRead::Nothing => Vec::new(),
            NextRead::Items(items) => vec![LoadWhat::Items(items)],
            NextRead::PagedRange(_) => within(level.index.paged_ranges(), bytes_max),
        }
    }

    /// Returns what has to be read to find the expired messages at the head of some priority.
    pub(crate) fn missing_expired(
        &self,
        bytes_max: usize,
        is_expired: impl Fn(Timestamp) -> bool,
    ) -> Vec<LoadWhat> {
        let expired = |level: &&Level| match level.index.front() {
            Front::Paged(range) => is_expired(range.earliest_expiry),
            _ => false,
        };
        match self.levels.iter().find(expired) {
            Some(level) => {
                let ranges = level.index.paged_ranges();
                within(ranges.take_while(|s| is_expired(s.earliest_expiry)), bytes_max)
            }
            None => Vec::new(),
        }
    }

    /// Takes what was read. `moved_down` is called with each message that this moves to a lower
    /// priority's level: a checkpoint under way has been there already.
    pub(crate) fn fill(&mut self, loaded: Loaded, moved_down: &mut dyn FnMut(&QueuedMessage)) {
        if self.levels.len() == 1 && self.priority_max == 0 {
            return self.levels[0].index.fill(loaded);
        }
        let range = loaded.range.as_ref().map(|loaded| loaded.range);
        for level in &mut self.levels {
            level.index.fill(loaded.clone());
        }
        // A range that recovery made may hold several priorities.
        if let Some(range) = range
            && self.capped(range.priority_min) != self.capped(range.priority_max)
        {
            self.redistribute(range.first, range.last, moved_down);
        }
    }

    /// Sets the range that begins at `location` aside, since it cannot be read, if it is at the
    /// head of its priority. Otherwise it is tried again when it has come there.
    /// Returns whether it was.
    pub(crate) fn skip_paged_range(&mut self, location: Location) -> bool {
        let is_it = |level: &&mut Level| match level.index.front() {
            Front::Paged(range) => range.first_location() == location,
            _ => false,
        };
        let level = self.levels.iter_mut().find(is_it);
        let range = level.and_then(|level| level.index.pop_front_paged_range());
        self.set_range_aside(range)
    }

    fn set_range_aside(&mut self, range: Option<PagedRange>) -> bool {
        let Some(range) = range else { return false };
        self.len -= range.count as usize;
        self.unreadable.push(range);
        true
    }

    /// Returns how many messages are in ranges that were set aside since they cannot be read.
    pub(crate) fn unreadable(&self) -> u64 {
        self.unreadable.iter().map(|range| u64::from(range.count)).sum()
    }

    /// Drops bodies that the log has, the ones that are needed last first. Returns the bytes.
    pub(crate) fn evict(&mut self, bytes_wanted: usize) -> usize {
        self.free(bytes_wanted, QueueIndex::evict)
    }

    /// Pages out index entries. Returns the bytes.
    pub(crate) fn page_out(&mut self, bytes_wanted: usize) -> usize {
        self.free(bytes_wanted, QueueIndex::page_out)
    }

    /// Lets the lowest priorities free memory first, until it is enough.
    fn free(&mut self, wanted: usize, free: impl Fn(&mut QueueIndex, usize) -> usize) -> usize {
        self.levels.iter_mut().rev().fold(0, |freed, level| match wanted.saturating_sub(freed) {
            0 => freed,
            left => freed + free(&mut level.index, left),
        })
    }

    /// Returns some messages that are only in memory.
    pub(crate) fn unstored(&mut self, max: usize) -> Vec<UnstoredMessage> {
        let level = self.levels.iter_mut().rev().find(|level| level.index.unstored_len() > 0);
        level.map(|level| level.index.unstored(max)).unwrap_or_default()
    }

    /// Notes that a message is in the log now.
    pub(crate) fn mark_stored(&mut self, seq: Seq, location: Location) -> bool {
        self.levels.iter_mut().any(|level| level.index.mark_stored(seq, location))
    }

    /// Writes entries to the store's checkpoint. True when all have been written.
    pub(crate) fn checkpoint(
        &mut self,
        queue: QueueId,
        cursor: &mut ReadyCursor,
        max: usize,
        store: &mut dyn Store,
    ) -> bool {
        loop {
            let level =
                self.levels.iter_mut().rev().find(|l| u16::from(l.priority) >= cursor.level);
            let Some(level) = level else {
                self.unreadable.iter().for_each(|s| store.checkpoint_paged_range(queue, s));
                return true;
            };
            if u16::from(level.priority) > cursor.level {
                *cursor =
                    ReadyCursor { level: u16::from(level.priority), ..ReadyCursor::default() };
            }
            if !level.index.checkpoint(queue, &mut cursor.within, max, store) {
                return false;
            }
            *cursor = ReadyCursor { level: cursor.level + 1, ..ReadyCursor::default() };
        }
    }

    fn first(&self) -> Option<&Level> {
        self.levels.iter().find(|level| !level.index.is_empty())
    }

    fn capped(&self, priority: u8) -> u8 {
        priority.min(self.priority_max)
    }

    /// Returns the level of a priority, made when it is first used.
    fn level_of(&mut self, priority: u8) -> &mut Level {
        let priority = self.capped(priority);
        let at = match self.levels.binary_search_by(|level| priority.cmp(&level.priority)) {
            Ok(at) => at,
            Err(at) => {
                self.levels.insert(at, Level { priority, index: QueueIndex::new() });
                at
            }
        };
        &mut self.levels[at]
    }

    /// Sorts an index of mixed priorities into levels. A range of several priorities stays with
    /// its highest until it is read.
    ///
    /// What was taken out of the middle before is not known any more, so nothing of it may be paged
    /// out again but as the ranges that it came in.
    fn distribute(&mut self, mut mixed: QueueIndex) {
        while !mixed.is_empty() {
            if let Some(range) = mixed.pop_front_paged_range() {
                self.level_of(range.priority_max).index.push_back_paged_range(range);
            } else if let Some(message) = mixed.pop_front() {
                let level = self.level_of(message.entry.priority);
                level.index.push_back(message.entry, message.expires_at, message.body);
            } else {
                break;
            }
        }
        self.levels.iter_mut().for_each(|level| level.index.mark_sparse());
    }

    /// Moves the messages of a range of numbers to the levels of their priorities.
    fn redistribute(&mut self, first: Seq, last: Seq, moved_down: &mut dyn FnMut(&QueuedMessage)) {
        let mut moving = Vec::new();
        for level in &mut self.levels {
            while let Front::Entry { entry, .. } = level.index.front()
                && (first..=last).contains(&entry.seq)
                && let Some(message) = level.index.pop_front()
            {
                moving.push((level.priority, message));
            }
        }
        for (from, message) in moving {
            if self.capped(message.entry.priority) < from {
                moved_down(&message);
            }
            let level = self.level_of(message.entry.priority);
            level.index.insert(message.entry, message.expires_at, message.body);
        }
    }
}

/// What an entry costs in memory besides its body, for the bound of one read.
const ENTRY_OVERHEAD_BYTES: u64 = 64;

/// Returns the first ranges that together stay within `bytes_max`, but at least one.
fn within<'a>(ranges: impl Iterator<Item = &'a PagedRange>, bytes_max: usize) -> Vec<LoadWhat> {
    let mut bytes = 0;
    let wanted = ranges.take_while(|range| {
        let is_first = bytes == 0;
        bytes += range.body_bytes + u64::from(range.count) * ENTRY_OVERHEAD_BYTES;
        is_first || bytes <= bytes_max as u64
    });
    wanted.map(|range| LoadWhat::PagedRange(*range)).collect()
}

/// How far a checkpoint has come in one queue: priorities rising.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReadyCursor {
    level: u16,
    within: CheckpointCursor,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paged_range_of_mixed_priorities_tells_which_of_its_messages_move_down() {
        let mut ready = ReadyMessages::new(Some(3), QueueIndex::new());
        for (seq, priority) in [(1, 3), (2, 0), (3, 9), (4, 1)] {
            let entry = Entry { seq: Seq(seq), priority, ..Entry::default() };
            ready.level_of(3).index.push_back(entry, None, None);
        }
        let mut moved = Vec::new();
        ready.redistribute(Seq(1), Seq(4), &mut |message| moved.push(message.entry.seq));
        assert_eq!(moved, [Seq(2), Seq(4)]);
        let entries = |priority| {
            let level = ready.levels.iter().find(|level| level.priority == priority);
            level.map_or(0, |level| level.index.len())
        };
        assert_eq!([entries(3), entries(1), entries(0)], [2, 1, 1]);
    }
}
