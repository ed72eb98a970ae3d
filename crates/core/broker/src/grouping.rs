//! Queues whose messages have groups: finding a message's group, and finding those of all messages
//! after a start, for which they are read once.

use std::iter::Peekable;

use quelea_model::{Message, QueueId, Seq};
use quelea_store::{Entry, LoadItem, LoadRequest, LoadWhat, Loaded};

use crate::Broker;
use crate::queue::Groups;
use crate::queue::groups::{NO_GROUP, Ordering};
use crate::read_ahead::Purpose;

/// The header that names a message's group.
pub const GROUP_HEADER: &str = "x-message-group-id";

/// Bodies that are read at once to find their groups.
const READ_ITEMS_MAX: usize = 4_096;

/// The number that stands for a group id; never that of no group. FNV-1a of 64 bits, which is the
/// same in every version.
pub(crate) fn group_of_id(id: &str) -> u64 {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let hash = id.bytes().fold(BASIS, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME));
    hash.max(1)
}

/// The group that a message's headers name.
pub(crate) fn group_of(message: &Message) -> u64 {
    let headers = message.property_view().headers();
    let id = headers.as_ref().and_then(|headers| headers.get(GROUP_HEADER)?.as_text());
    id.map_or(NO_GROUP, group_of_id)
}

impl Broker {
    /// Groups of a queue's messages matter from now on, or not any more, as its settings say.
    pub(crate) fn regroup(&mut self, id: QueueId) {
        let Some(queue) = self.queues.get_mut(&id) else {
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
            && !(queue.ready.is_empty() && queue.hidden.is_empty() && queue.unacked == 0);
        if let Some(groups) = queue.groups.as_mut().filter(|_| is_read) {
            groups.is_unknown = true;
            self.read_groups(id);
        }
    }

    /// The first message with a group came to a queue that is no FIFO queue. From now on new messages
    /// have groups, after a start too.
    pub(crate) fn begin_fairness(&mut self, id: QueueId) {
        let Some(queue) = self.queues.get_mut(&id) else {
            return;
        };
        queue.attributes.get_or_insert_default().settings.fair = true;
        self.persist_attributes(id);
        self.regroup(id);
    }

    /// Reads messages whose groups are not known, some at a time.
    pub(crate) fn read_groups(&mut self, id: QueueId) {
        let bytes_max = self.config.read_ahead_bytes_max;
        let Some(queue) = self.queues.get_mut(&id) else {
            return;
        };
        let Some(groups) = &mut queue.groups else {
            return;
        };
        let what = if let Some(range) = queue.ready.first_paged_range() {
            LoadWhat::PagedRange(*range)
        } else {
            let from = groups.read_to;
            let hidden = queue.hidden.starting_from(from).map(|hidden| &hidden.message.entry);
            let both = Both { a: queue.ready.entries_from(from).peekable(), b: hidden.peekable() };
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
                return self.read_groups(id);
            } else {
                groups.is_unknown = false;
                return self.finish_groups(id);
            }
            LoadWhat::Items(items)
        };
        let token = self.loads.begin(Purpose::Groups(id));
        self.store.load(LoadRequest { token, queue: id, what });
    }

    /// Takes what was read for its groups.
    pub(crate) fn fill_groups(&mut self, id: QueueId, loaded: &Loaded) {
        let Some(queue) = self.queues.get_mut(&id) else {
            return;
        };
        for error in &loaded.errors {
            match error.seq {
                Some(seq) if queue.hidden.get(seq).is_some() => {
                    // It is set aside when it is wanted.
                    if let Some(groups) = &mut queue.groups {
                        groups.add_hidden(seq, NO_GROUP);
                    }
                }
                Some(seq) => queue.set_aside(seq),
                None => queue.ready.take_paged_range(error.location),
            }
        }
        if loaded.range.is_some() {
            queue.ready.fill(Loaded { messages: Vec::new(), ..loaded.clone() }, &mut |_| {});
        }
        if let Some(groups) = &mut queue.groups {
            for (seq, message) in &loaded.messages {
                let group = group_of(message);
                if groups.knows(*seq) {
                } else if let Some(hidden) = queue.hidden.get(*seq) {
                    groups.add_unseen(*seq, group, hidden.is_delayed());
                } else if queue.ready.get(*seq).is_some() {
                    groups.add_visible(*seq, group);
                }
            }
        }
        self.read_groups(id);
        self.follow_up(id);
    }

    /// All groups are known: those of messages that only memory has, too.
    fn finish_groups(&mut self, id: QueueId) {
        let Some(queue) = self.queues.get_mut(&id) else {
            return;
        };
        let Some(groups) = &mut queue.groups else {
            return;
        };
        for hidden in queue.hidden.iter() {
            if let (seq, Some(body)) = (hidden.message.entry.seq, &hidden.message.body)
                && !groups.knows(seq)
            {
                groups.add_unseen(seq, group_of(body), hidden.is_delayed());
            }
        }
        let unstored: Vec<_> =
            queue.ready.entries().map(|e| e.seq).filter(|seq| !groups.knows(*seq)).collect();
        for seq in unstored {
            let held = queue.ready.get(seq);
            groups.add_visible(seq, held.and_then(|h| h.body).map_or(NO_GROUP, |b| group_of(b)));
        }
        self.touch(id);
    }
}

/// Two runs of entries as one, by their numbers.
struct Both<A: Iterator, B: Iterator> {
    a: Peekable<A>,
    b: Peekable<B>,
}

impl<'a, A: Iterator<Item = &'a Entry>, B: Iterator<Item = &'a Entry>> Iterator for Both<A, B> {
    type Item = &'a Entry;

    fn next(&mut self) -> Option<&'a Entry> {
        match (self.a.peek(), self.b.peek()) {
            (Some(a), Some(b)) if b.seq < a.seq => self.b.next(),
            (Some(_), _) => self.a.next(),
            (None, _) => self.b.next(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_group_never_changes() {
        // The published test vectors of FNV-1a, 64 bits.
        let vectors = [
            ("", 0xcbf2_9ce4_8422_2325),
            ("a", 0xaf63_dc4c_8601_ec8c),
            ("foobar", 0x8594_4171_f739_67e8),
        ];
        for (id, group) in vectors {
            assert_eq!(group_of_id(id), group, "{id}");
        }
    }
}
