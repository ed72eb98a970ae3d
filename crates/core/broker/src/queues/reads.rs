//! Reading messages back from the log, ahead of the consumers and beside the publishers.

use quelea_model::{QueueId, QueueName, Seq, Timestamp, VhostName};
use quelea_store::{Damage, Entry, LoadError, LoadItem, LoadRequest, LoadWhat, Loaded, Missed};
use rustc_hash::FxHashMap;

use super::Queues;
use super::queue::Queue;
use crate::log::Log;

/// What a message costs in memory besides its body, for the bound of one read.
pub(super) const LOAD_OVERHEAD_BYTES: usize = 64;

/// What a read is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum ReadPurpose {
    /// The head of a queue.
    Ready,
    /// Messages on their way to a dead-letter exchange.
    DeadLetters,
    /// The groups of a queue's messages.
    Groups,
    /// Somebody who looks at a queue.
    Browse,
}

/// Reads under way.
#[derive(Debug, Default)]
pub(super) struct Reads {
    next: u64,
    under_way: FxHashMap<u64, (ReadPurpose, QueueId)>,
    /// Messages that could not be read since the start, and what was said last.
    pub(super) failed: u64,
    pub(super) last_error: Option<String>,
    /// What is to be said of them, and whose they are.
    pub(super) unreported: Vec<(VhostName, QueueName, LoadError)>,
}

impl Reads {
    /// Creates it with what the start has left out already.
    pub(super) fn recovered(damage: &[Damage]) -> Self {
        Self {
            failed: damage.iter().map(Damage::messages).sum(),
            last_error: damage.last().map(ToString::to_string),
            ..Self::default()
        }
    }

    /// Asks the store for something of a queue. Returns the read's number.
    pub(super) fn begin(
        &mut self,
        log: &mut Log,
        purpose: ReadPurpose,
        queue: QueueId,
        what: LoadWhat,
    ) -> u64 {
        self.next += 1;
        self.under_way.insert(self.next, (purpose, queue));
        log.store.load(LoadRequest { token: self.next, queue, what });
        self.next
    }

    /// Notes that messages were set aside since they cannot be read.
    pub(super) fn note_missed(&mut self, queue: &Queue, error: LoadError) {
        self.failed += u64::from(error.missed.messages());
        self.last_error = Some(error.to_string());
        self.unreported.push((queue.vhost_name.clone(), queue.name.clone(), error));
    }
}

impl Queues {
    /// Reads what the head of a queue misses, unless reads for it are under way.
    pub(crate) fn read_head(&mut self, log: &mut Log, id: QueueId, now: Timestamp) {
        let Some(queue) = self.by_id.get_mut(&id) else {
            return;
        };
        if queue.read_ahead.is_under_way() {
            return;
        }
        let bytes_max = self.config.read_ahead_bytes_max;
        let mut missing = queue.ready.missing_expired(bytes_max, |at| at <= now);
        if missing.is_empty() {
            missing = queue.ready.missing(bytes_max);
        }
        queue.read_ahead.begin(missing.len());
        for what in missing {
            self.reads.begin(log, ReadPurpose::Ready, id, what);
        }
    }

    /// Reads a message that is wanted before those at the head, and then those.
    pub(crate) fn read_one(&mut self, log: &mut Log, id: QueueId, seq: Seq) {
        let bytes_max = self.config.read_ahead_bytes_max;
        let Some(queue) = self.by_id.get_mut(&id) else {
            return;
        };
        let Some(entry) = queue.ready.get(seq).map(|held| *held.entry) else {
            return;
        };
        if queue.read_ahead.is_under_way() {
            return;
        }
        let one = LoadItem { seq, location: entry.location, body_bytes: entry.body_bytes };
        let mut missing = vec![LoadWhat::Items(vec![one])];
        missing.extend(queue.ready.missing(bytes_max));
        queue.read_ahead.begin(missing.len());
        for what in missing {
            self.reads.begin(log, ReadPurpose::Ready, id, what);
        }
    }

    /// Reads messages that are to be given out together. False: other reads for the queue's head are
    /// under way, whose end leads here again.
    pub(crate) fn read_together(&mut self, log: &mut Log, id: QueueId, wanted: &[Entry]) -> bool {
        let Some(queue) = self.by_id.get_mut(&id).filter(|q| !q.read_ahead.is_under_way()) else {
            return false;
        };
        let items = wanted.iter().map(|entry| LoadItem {
            seq: entry.seq,
            location: entry.location,
            body_bytes: entry.body_bytes,
        });
        queue.read_ahead.begin(1);
        self.reads.begin(log, ReadPurpose::Ready, id, LoadWhat::Items(items.collect()));
        true
    }

    /// Reads the bodies of the first messages that wait for their dead-letter exchange.
    pub(crate) fn read_dead_letters(&mut self, log: &mut Log, id: QueueId) {
        let bytes_max = self.config.read_ahead_bytes_max;
        let Some(queue) = self.letter_source_mut(id).filter(|q| !q.is_reading_dead_letters) else {
            return;
        };
        let mut items = Vec::new();
        let mut bytes = 0;
        for message in queue.dead_letters.iter() {
            let entry = &message.entry;
            bytes += entry.body_bytes as usize + LOAD_OVERHEAD_BYTES;
            if bytes > bytes_max && !items.is_empty() {
                break;
            }
            if message.body.is_none() {
                items.push(LoadItem {
                    seq: entry.seq,
                    location: entry.location,
                    body_bytes: entry.body_bytes,
                });
            }
        }
        if items.is_empty() {
            return;
        }
        queue.is_reading_dead_letters = true;
        self.reads.begin(log, ReadPurpose::DeadLetters, id, LoadWhat::Items(items));
    }

    /// Takes what was read and wakes the queues that waited for it. True if there was anything.
    pub(crate) fn take_loaded(&mut self, log: &mut Log) -> bool {
        let mut any = false;
        while let Some(loaded) = log.store.poll_loaded() {
            if let Some((purpose, id)) = self.reads.under_way.remove(&loaded.token) {
                match purpose {
                    ReadPurpose::Ready => self.fill_ready(log, id, loaded),
                    ReadPurpose::DeadLetters => self.fill_dead_letters(log, id, loaded),
                    ReadPurpose::Groups => self.fill_groups(log, id, loaded),
                    ReadPurpose::Browse => self.fill_browse(log, loaded),
                }
            }
            any = true;
        }
        any
    }

    fn fill_ready(&mut self, log: &mut Log, id: QueueId, mut loaded: Loaded) {
        let Some(queue) = self.by_id.get_mut(&id) else {
            return;
        };
        for error in std::mem::take(&mut loaded.errors) {
            // Who cannot be read does not stand in the way of the others.
            let is_set_aside = match &error.missed {
                Missed::Message(seq) => queue.set_aside(*seq),
                Missed::PagedRange(range) => queue.ready.skip_paged_range(range.first_location()),
            };
            if is_set_aside {
                self.reads.note_missed(queue, error);
            }
        }
        queue.read_ahead.has_read(loaded.messages.len());
        let store = &mut log.store;
        let has_checkpoint = store.checkpoint_under_way();
        queue.ready.fill(loaded, &mut |message| {
            // The checkpoint may have passed the level that the message comes to.
            if has_checkpoint && message.entry.is_durable() && message.entry.is_stored() {
                store.append_requeue(id, &message.entry, message.expires_at);
            }
        });
        self.wake(id);
        self.reschedule(id);
    }

    fn fill_dead_letters(&mut self, log: &mut Log, id: QueueId, loaded: Loaded) {
        let is_gone = !self.contains(id);
        let queues = if is_gone { &mut self.leaving } else { &mut self.by_id };
        let Some(queue) = queues.get_mut(&id) else {
            return;
        };
        queue.is_reading_dead_letters = false;
        let bodies: FxHashMap<_, _> = loaded.messages.into_iter().collect();
        queue.dead_letters.fill(&bodies);
        for error in loaded.errors {
            if let Missed::Message(seq) = error.missed
                && let Some(message) = queue.dead_letters.remove(seq)
            {
                self.reads.note_missed(queue, error);
                if is_gone {
                    log.store.release(&message.entry);
                } else {
                    queue.unreadable.push(message);
                }
            }
        }
        // Receives may have waited for what could not be read.
        self.wake(id);
        self.reschedule(id);
    }

    /// Reads what a message that is to be deleted lies in, if it is paged out. False: it is gone.
    pub(crate) fn read_range_of(&mut self, log: &mut Log, id: QueueId, seq: Seq) -> bool {
        let Some(queue) = self.by_id.get_mut(&id) else {
            return false;
        };
        let Some(range) = queue.ready.paged_range_of(seq).copied() else {
            return false;
        };
        if !queue.read_ahead.is_under_way() {
            queue.read_ahead.begin(1);
            self.reads.begin(log, ReadPurpose::Ready, id, LoadWhat::PagedRange(range));
        }
        true
    }
}
