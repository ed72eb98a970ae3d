//! Looking at ready messages without taking them. Nothing of the queue changes and no delivery is counted; what is not in
//! memory is read for who looks only. A page of messages is one turn's work, and at most one read of the log at a time.

use std::collections::VecDeque;
use std::sync::Arc;

use quelea_model::limits::BROWSES_WAITING_MAX;
use quelea_model::{Message, QueueId, Seq, Timestamp};
use quelea_store::{Entry, Front, LoadItem, LoadWhat, Loaded, LoadedRange, PagedRange};
use rustc_hash::FxHashMap;

use super::Queues;
use super::reads::{LOAD_OVERHEAD_BYTES, ReadPurpose};
use crate::error::LimitReached;
use crate::ids::ChannelId;
use crate::log::Log;
use crate::request::{Browse, BrowsePlace};

/// Those who look at queues.
#[derive(Debug, Default)]
pub(super) struct Browses {
    /// Whose page waits for a read, by the read's number.
    waiting: FxHashMap<u64, Page>,
    /// Whose page is there.
    done: VecDeque<Page>,
}

/// What is found for somebody who looks.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) channel: ChannelId,
    queue: QueueId,
    wanted: Browse,
    now: Timestamp,
    bytes: usize,
    pub(crate) found: Vec<(Entry, Option<Arc<Message>>)>,
    /// Where to go on; `None`: the queue has been seen to its end.
    pub(crate) next: Option<BrowsePlace>,
}

impl Page {
    /// Takes a message, if it has room for it and the message is not over. False: it has no room.
    fn take(
        &mut self,
        entry: &Entry,
        expires_at: Option<Timestamp>,
        body: Option<&Arc<Message>>,
    ) -> bool {
        if expires_at.is_some_and(|at| at < self.now) {
            return true;
        }
        let bytes = self.bytes + entry.body_bytes as usize + LOAD_OVERHEAD_BYTES;
        let has_room = self.found.is_empty() || bytes <= self.wanted.body_bytes_max;
        if self.found.len() >= self.wanted.messages_max || !has_room {
            return false;
        }
        self.bytes = bytes;
        self.found.push((*entry, body.cloned()));
        true
    }

    /// Takes what was read of a paged-out range, from the place on at which the page begins.
    fn take_range(&mut self, loaded: &LoadedRange, bodies: &FxHashMap<Seq, Arc<Message>>) {
        let Some(from) = self.next.take() else { return };
        let priority = from.priority;
        for (at, entry) in loaded.entries.iter().enumerate() {
            let expires_at = loaded.expiries.get(at).copied();
            let is_before = entry.seq < from.seq;
            if !is_before && !self.take(entry, expires_at, bodies.get(&entry.seq)) {
                self.next = Some(BrowsePlace { priority, seq: entry.seq });
                return;
            }
        }
        self.next = Some(BrowsePlace { priority, seq: loaded.range.last.next() });
    }

    /// Returns what has to be read for it.
    fn missing(&self) -> Vec<LoadItem> {
        let missing = self.found.iter().filter(|(entry, body)| body.is_none() && entry.is_stored());
        let items = missing.map(|(entry, _)| LoadItem {
            seq: entry.seq,
            location: entry.location,
            body_bytes: entry.body_bytes,
        });
        items.collect()
    }
}

impl Queues {
    /// Looks at a queue for a channel. Returns how many entries were looked at.
    ///
    /// # Errors
    /// [`LimitReached`] if too many look already.
    pub(crate) fn browse(
        &mut self,
        log: &mut Log,
        (channel, id): (ChannelId, QueueId),
        mut wanted: Browse,
        entries_max: u64,
        now: Timestamp,
    ) -> Result<u64, LimitReached> {
        let limit = BROWSES_WAITING_MAX;
        if self.browses.waiting.len() + self.browses.done.len() >= limit {
            let what = String::from("another look at a queue's messages");
            return Err(LimitReached { what, limit });
        }
        wanted.body_bytes_max = wanted.body_bytes_max.min(self.config.read_ahead_bytes_max);
        let found = Vec::new();
        let mut page = Page { channel, queue: id, wanted, now, bytes: 0, found, next: None };
        let mut looked_at = 0;
        if let Some(range) = self.collect(&mut page, &mut looked_at, entries_max) {
            let what = LoadWhat::PagedRange(range);
            let read = self.reads.begin(log, ReadPurpose::Browse, id, what);
            self.browses.waiting.insert(read, page);
        } else {
            self.complete(log, page);
        }
        Ok(looked_at)
    }

    /// Collects a page's messages. Returns the paged-out range that has to be read for the first of them.
    fn collect(
        &self,
        page: &mut Page,
        looked_at: &mut u64,
        entries_max: u64,
    ) -> Option<PagedRange> {
        let queue = self.by_id.get(&page.queue)?;
        let from = page.wanted.from.unwrap_or(BrowsePlace::BEGINNING);
        for (priority, front) in queue.ready.all_from((from.priority, from.seq)) {
            match front {
                Front::Empty => {}
                Front::Paged(range) => {
                    let seq = if priority == from.priority {
                        from.seq.max(range.first)
                    } else {
                        range.first
                    };
                    page.next = Some(BrowsePlace { priority, seq });
                    return page.found.is_empty().then_some(*range);
                }
                Front::Entry { entry, expires_at, body } => {
                    if *looked_at >= entries_max || !page.take(entry, expires_at, body) {
                        page.next = Some(BrowsePlace { priority, seq: entry.seq });
                        return None;
                    }
                    *looked_at += 1;
                }
            }
        }
        None
    }

    /// Reads the bodies that a page misses, or it is done.
    fn complete(&mut self, log: &mut Log, page: Page) {
        let missing = page.missing();
        if missing.is_empty() {
            return self.browses.done.push_back(page);
        }
        let what = LoadWhat::Items(missing);
        let read = self.reads.begin(log, ReadPurpose::Browse, page.queue, what);
        self.browses.waiting.insert(read, page);
    }

    /// Takes what was read for somebody who looks. What cannot be read is left out; whoever is to get it says why.
    pub(super) fn fill_browse(&mut self, log: &mut Log, loaded: Loaded) {
        let Some(mut page) = self.browses.waiting.remove(&loaded.token) else { return };
        let bodies: FxHashMap<_, _> = loaded.messages.into_iter().collect();
        let queue = self.by_id.get(&page.queue);
        if let Some(range) = &loaded.range {
            page.take_range(range, &bodies);
            // The place in the log of what has left meanwhile may be another's.
            page.found.retain(|(entry, _)| queue.is_some_and(|q| q.ready.may_hold(entry.seq)));
            return self.complete(log, page);
        }
        for (entry, body) in &mut page.found {
            *body = body.take().or_else(|| bodies.get(&entry.seq).cloned());
        }
        page.found.retain(|(_, body)| body.is_some());
        if let Some(range) = loaded.errors.iter().find_map(|error| error.missed.range()) {
            // All of it is passed by.
            page.next = page.next.map(|next| BrowsePlace { seq: range.last.next(), ..next });
        }
        self.browses.done.push_back(page);
    }

    /// Takes a page that is there, if any.
    pub(crate) fn next_browsed(&mut self) -> Option<Page> {
        self.browses.done.pop_front()
    }
}
