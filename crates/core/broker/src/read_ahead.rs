//! Reading messages back from the log, ahead of the consumers and beside the publishers.

use quelea_model::{QueueId, Seq, Timestamp};
use quelea_store::{LoadItem, LoadRequest, LoadWhat, Loaded};
use rustc_hash::FxHashMap;

use crate::Broker;

/// What a message costs in memory besides its body, for the bound of one read.
const LOAD_OVERHEAD_BYTES: usize = 64;

/// Reads for the head of a queue: how many are under way, and how much of what the last ones
/// brought is still to be given out.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReadAhead {
    under_way: usize,
    read: usize,
    left: usize,
}

impl ReadAhead {
    pub(crate) const fn is_under_way(&self) -> bool {
        self.under_way > 0
    }

    /// A message was given out.
    pub(crate) const fn given_out(&mut self) {
        self.left = self.left.saturating_sub(1);
    }

    /// Whether it is time to read more, so that the disk works while the consumers do.
    pub(crate) const fn is_low(&self) -> bool {
        self.under_way == 0 && self.read > 0 && self.left <= self.read / 2
    }

    pub(crate) const fn begin(&mut self, reads: usize) {
        *self = Self { under_way: reads, read: 0, left: 0 };
    }

    const fn has_read(&mut self, messages: usize) {
        self.under_way -= 1;
        self.read += messages;
        self.left += messages;
    }
}

/// For whom a read is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    /// The head of a queue.
    Ready(QueueId),
    /// Messages on their way to a dead-letter exchange.
    Transit(QueueId),
    /// The groups of a queue's messages.
    Groups(QueueId),
}

/// Reads under way.
#[derive(Debug, Default)]
pub(crate) struct Loads {
    next: u64,
    under_way: FxHashMap<u64, Purpose>,
    /// Messages and ranges that could not be read since the start, and what was said last.
    pub(crate) failed: u64,
    pub(crate) last_error: Option<String>,
}

impl Loads {
    pub(crate) fn begin(&mut self, purpose: Purpose) -> u64 {
        self.next += 1;
        self.under_way.insert(self.next, purpose);
        self.next
    }
}

impl Broker {
    /// Reads what the head of a queue misses, unless reads for it are under way.
    pub(crate) fn read_ahead(&mut self, id: QueueId, now: Timestamp) {
        let Some(queue) = self.queues.get_mut(&id) else {
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
            let token = self.loads.begin(Purpose::Ready(id));
            self.store.load(LoadRequest { token, queue: id, what });
        }
    }

    /// Reads a message that is wanted before those at the head, and then those.
    pub(crate) fn read_one(&mut self, id: QueueId, seq: Seq) {
        let bytes_max = self.config.read_ahead_bytes_max;
        let Some(queue) = self.queues.get_mut(&id) else {
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
            let token = self.loads.begin(Purpose::Ready(id));
            self.store.load(LoadRequest { token, queue: id, what });
        }
    }

    /// Reads the bodies of the first messages that wait for their dead-letter exchange.
    pub(crate) fn read_transit(&mut self, id: QueueId) {
        let Some(queue) = self.queues.get_mut(&id) else {
            return;
        };
        if queue.is_loading_transit {
            return;
        }
        let mut items = Vec::new();
        let mut bytes = 0;
        for message in queue.transit.iter() {
            let entry = &message.entry;
            bytes += entry.body_bytes as usize + LOAD_OVERHEAD_BYTES;
            if bytes > self.config.read_ahead_bytes_max && !items.is_empty() {
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
        queue.is_loading_transit = true;
        let token = self.loads.begin(Purpose::Transit(id));
        self.store.load(LoadRequest { token, queue: id, what: LoadWhat::Items(items) });
    }

    /// Takes what was read and wakes the queues that waited for it. True if there was anything.
    pub(crate) fn take_loaded(&mut self) -> bool {
        let mut any = false;
        while let Some(loaded) = self.store.poll_loaded() {
            match self.loads.under_way.remove(&loaded.token) {
                Some(Purpose::Ready(id)) => self.fill_ready(id, loaded),
                Some(Purpose::Transit(id)) => self.fill_transit(id, loaded),
                Some(Purpose::Groups(id)) => {
                    self.note_errors(&loaded);
                    self.fill_groups(id, &loaded);
                }
                None => {}
            }
            any = true;
        }
        any
    }

    fn fill_ready(&mut self, id: QueueId, loaded: Loaded) {
        self.note_errors(&loaded);
        let Some(queue) = self.queues.get_mut(&id) else {
            return;
        };
        for error in &loaded.errors {
            // Who cannot be read does not stand in the way of the others.
            match error.seq {
                Some(seq) => queue.set_aside(seq),
                None => queue.ready.skip_paged_range(error.location),
            }
        }
        queue.read_ahead.has_read(loaded.messages.len());
        let store = &mut self.store;
        let has_checkpoint = store.checkpoint_under_way();
        queue.ready.fill(loaded, &mut |message| {
            // The checkpoint may have passed the level that the message comes to.
            if has_checkpoint && message.entry.is_durable() && message.entry.is_stored() {
                store.append_requeue(id, &message.entry, message.expires_at);
            }
        });
        self.touch(id);
        self.follow_up(id);
    }

    fn fill_transit(&mut self, id: QueueId, loaded: Loaded) {
        self.note_errors(&loaded);
        let Some(queue) = self.queues.get_mut(&id) else {
            return;
        };
        queue.is_loading_transit = false;
        let bodies: FxHashMap<_, _> = loaded.messages.into_iter().collect();
        queue.transit.fill(&bodies);
        for seq in loaded.errors.iter().filter_map(|error| error.seq) {
            queue.unreadable.extend(queue.transit.remove(seq));
        }
        self.follow_up(id);
    }

    fn note_errors(&mut self, loaded: &Loaded) {
        self.loads.failed += loaded.errors.len() as u64;
        if let Some(error) = loaded.errors.last() {
            self.loads.last_error = Some(error.to_string());
        }
    }
}
