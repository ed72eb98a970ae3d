//! Finding the groups of all messages of a queue after a start, for which they are read once.

use std::iter::Peekable;

use quelea_model::{QueueId, Seq};
use quelea_store::{Entry, LoadItem, LoadWhat, Loaded, Missed};

use super::Queues;

use super::queue::groups::{Groups, NO_GROUP, Ordering, group_of};
use super::reads::ReadPurpose;
use crate::log::Log;

/// Bodies that are read at once to find their groups.
const READ_ITEMS_MAX: usize = 4_096;

impl Queues {
    /// Groups of a queue's messages matter from now on, or not any more, as its settings say.
    pub(super) fn regroup(&mut self, log: &mut Log, id: QueueId) {
        let Some(queue) = self.by_id.get_mut(&id) else {
            return;
        };
        let wanted = queue.settings().ordering();
        if wanted == queue.groups.as_ref().map(|groups| groups.ordering()) {
            return;
        }
        queue.groups = wanted.map(|ordering| Box::new(Groups::new(ordering)));
        // In a fair queue what is there already is nobody's, and comes first: only order needs every
        // group to be known. A queue is a FIFO queue from the start, so this is for restarts.
        let is_read = wanted == Some(Ordering::Fifo)
            && !(queue.ready.is_empty() && queue.invisible.is_empty() && queue.unacked == 0);
        if let Some(groups) = queue.groups.as_mut().filter(|_| is_read) {
            groups.is_unknown = true;
            self.read_groups(log, id);
        }
    }

    /// The first message with a group came to a queue that is no FIFO queue. From now on new messages
    /// have groups, after a start too.
    pub(crate) fn begin_fairness(&mut self, log: &mut Log, id: QueueId) {
        let Some(queue) = self.by_id.get_mut(&id) else {
            return;
        };
        queue.attributes.get_or_insert_default().settings.fair = true;
        self.persist_attributes(log, id);
        self.regroup(log, id);
    }

    /// Reads messages whose groups are not known, some at a time.
    fn read_groups(&mut self, log: &mut Log, id: QueueId) {
        let bytes_max = self.config.read_ahead_bytes_max;
        let Some(queue) = self.by_id.get_mut(&id) else {
            return;
        };
        let Some(groups) = &mut queue.groups else {
            return;
        };
        let what = if let Some(range) = queue.ready.first_paged_range() {
            LoadWhat::PagedRange(*range)
        } else {
            let from = groups.read_to;
            let invisible =
                queue.invisible.starting_from(from).map(|invisible| &invisible.message.entry);
            let both = MergedBySeq {
                a: queue.ready.entries_from(from).peekable(),
                b: invisible.peekable(),
            };
            let unknown = both.filter(|entry| !groups.knows(entry.seq));
            let mut bytes = 0;
            let items: Vec<_> = unknown
                .filter(|entry| entry.is_stored())
                .take_while(|entry| {
                    let is_first = bytes == 0;
                    bytes += entry.body_bytes as usize + 64;
                    is_first || bytes <= bytes_max
                })
                .take(READ_ITEMS_MAX)
                .map(|entry| LoadItem {
                    seq: entry.seq,
                    location: entry.location,
                    body_bytes: entry.body_bytes,
                })
                .collect();
            if let Some(last) = items.last() {
                groups.read_to = last.seq;
            } else if groups.read_to > Seq(0) {
                // What became visible meanwhile may lie behind.
                groups.read_to = Seq(0);
                return self.read_groups(log, id);
            } else {
                groups.is_unknown = false;
                return self.finish_groups(id);
            }
            LoadWhat::Items(items)
        };
        self.reads.begin(log, ReadPurpose::Groups, id, what);
    }

    /// Takes what was read for its groups.
    pub(super) fn fill_groups(&mut self, log: &mut Log, id: QueueId, mut loaded: Loaded) {
        let Some(queue) = self.by_id.get_mut(&id) else {
            return;
        };
        for error in std::mem::take(&mut loaded.errors) {
            let is_set_aside = match &error.missed {
                Missed::Message(seq) if queue.invisible.get(*seq).is_some() => {
                    // It is set aside when it is wanted.
                    if let Some(groups) = &mut queue.groups {
                        groups.add_in_flight(*seq, NO_GROUP);
                    }
                    false
                }
                Missed::Message(seq) => queue.set_aside(*seq),
                Missed::PagedRange(range) => queue.ready.take_paged_range(range.first_location()),
            };
            if is_set_aside {
                self.reads.note_missed(queue, error);
            }
        }
        if loaded.range.is_some() {
            queue.ready.fill(Loaded { messages: Vec::new(), ..loaded.clone() }, &mut |_| {});
        }
        if let Some(groups) = &mut queue.groups {
            for (seq, message) in &loaded.messages {
                let group = group_of(message);
                if groups.knows(*seq) {
                } else if let Some(invisible) = queue.invisible.get(*seq) {
                    groups.add_invisible(*seq, group, invisible.is_delayed());
                } else if queue.ready.get(*seq).is_some() {
                    groups.add_visible(*seq, group);
                }
            }
        }
        self.read_groups(log, id);
        self.reschedule(id);
    }

    /// All groups are known: those of messages that only memory has, too.
    fn finish_groups(&mut self, id: QueueId) {
        let Some(queue) = self.by_id.get_mut(&id) else {
            return;
        };
        let Some(groups) = &mut queue.groups else {
            return;
        };
        for invisible in queue.invisible.iter() {
            if let (seq, Some(body)) = (invisible.message.entry.seq, &invisible.message.body)
                && !groups.knows(seq)
            {
                groups.add_invisible(seq, group_of(body), invisible.is_delayed());
            }
        }
        let unstored: Vec<_> =
            queue.ready.entries().map(|e| e.seq).filter(|seq| !groups.knows(*seq)).collect();
        for seq in unstored {
            let held = queue.ready.get(seq);
            groups.add_visible(seq, held.and_then(|h| h.body).map_or(NO_GROUP, |b| group_of(b)));
        }
        self.wake(id);
    }
}

/// Two runs of entries as one, by their numbers.
struct MergedBySeq<A: Iterator, B: Iterator> {
    a: Peekable<A>,
    b: Peekable<B>,
}

impl<'a, A: Iterator<Item = &'a Entry>, B: Iterator<Item = &'a Entry>> Iterator
    for MergedBySeq<A, B>
{
    type Item = &'a Entry;

    fn next(&mut self) -> Option<&'a Entry> {
        match (self.a.peek(), self.b.peek()) {
            (Some(a), Some(b)) if b.seq < a.seq => self.b.next(),
            (Some(_), _) => self.a.next(),
            (None, _) => self.b.next(),
        }
    }
}
