//! A queue: what it is, what waits in it, who takes from it.

pub(crate) mod arguments;
mod attempts;
pub(crate) mod attributes;
mod choice;
pub(crate) mod consumers;
pub(crate) mod dead_letters;
mod deduplications;
pub(crate) mod groups;
pub(crate) mod invisible;
mod pace;
mod read_ahead;
pub(crate) mod ready_messages;
pub(crate) mod receives;

use std::collections::VecDeque;

use quelea_model::{QueueId, QueueName, Resident, Seq, Table, Timestamp, VhostName};
use quelea_store::{Drained, Entry, QueueIndex, QueuedMessage, Store};

use arguments::{Overflow, QueueArguments};
use attributes::{QueueAttributes, QueueSettings};
pub(crate) use choice::Choice;
use consumers::QueueConsumers;
use dead_letters::{DeadLetterReason, DeadLetters};
use deduplications::Deduplications;
use groups::Groups;
pub(crate) use invisible::{InvisibleMessage, InvisibleMessages};
pub(crate) use pace::Pace;
use read_ahead::ReadAhead;
use ready_messages::ReadyMessages;
pub(crate) use receives::{WaitingReceive, WaitingReceives};

use crate::ids::{ChannelId, ConnectionId, VhostId};
use crate::report::MessageCounters;
use crate::topology::{Item, StoredAttributes, StoredQueue};

/// Their bodies are mostly read in a moment.
const REDRIVE_PATIENCE_MS: u64 = 1_000;

/// What the totals hold of one queue.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct QueueMemory {
    pub(crate) resident: Resident,
    pub(super) dead_letters: usize,
    pub(super) index: usize,
    pub(super) held: usize,
}

/// What a new queue is made of.
pub(crate) struct NewQueue {
    pub(crate) id: QueueId,
    pub(crate) name: QueueName,
    pub(crate) vhost: VhostId,
    pub(crate) vhost_name: VhostName,
    pub(crate) durable: bool,
    pub(crate) auto_delete: bool,
    pub(crate) owner: Option<ConnectionId>,
    pub(crate) table: Table,
    pub(crate) rules: QueueArguments,
    pub(crate) created_at: Timestamp,
    pub(crate) messages: QueueIndex,
}

/// A basic.get whose answer waits for the body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitingGet {
    pub(crate) channel: ChannelId,
    pub(crate) no_ack: bool,
}

#[derive(Debug)]
pub(crate) struct Queue {
    pub(crate) id: QueueId,
    pub(crate) name: QueueName,
    pub(crate) vhost: VhostId,
    pub(crate) vhost_name: VhostName,
    pub(crate) durable: bool,
    pub(crate) auto_delete: bool,
    /// The connection that owns an exclusive queue.
    pub(crate) owner: Option<ConnectionId>,
    pub(crate) table: Table,
    pub(crate) rules: QueueArguments,
    pub(crate) created_at: Timestamp,
    /// The last time it was declared, got from, or lost its last consumer: x-expires counts on.
    pub(crate) used_at: Timestamp,
    pub(crate) ready: ReadyMessages,
    /// Messages delivered and not settled; they are in the channels.
    pub(crate) unacked: u64,
    /// Those of them that are on their way back from channels that are closed: until they are back nothing is
    /// given out.
    pub(crate) returning: u64,
    /// Messages that may not be received yet.
    pub(crate) invisible: InvisibleMessages,
    pub(crate) dead_letters: DeadLetters,
    /// What was set of it after its declaration; `None`: nothing.
    pub(crate) attributes: Option<Box<QueueAttributes>>,
    /// The groups of its messages, where they matter.
    pub(crate) groups: Option<Box<Groups>>,
    /// What was sent with a deduplication id lately.
    pub(crate) deduplications: Option<Box<Deduplications>>,
    /// When it was last purged through SQS.
    pub(crate) purged_at: Option<Timestamp>,
    pub(crate) receives: WaitingReceives,
    pub(crate) consumers: QueueConsumers,
    pub(crate) gets: VecDeque<WaitingGet>,
    /// Acknowledgements that are not in the log yet. Empty at the end of each turn.
    pub(crate) acks: Vec<Entry>,
    /// It stands in the schedule's list of queues that have something to do.
    pub(crate) is_runnable: bool,
    /// A length limit is broken, and it is being shortened bit by bit.
    pub(crate) is_too_long: bool,
    /// It stands in the schedule's list of queues with `acks`.
    pub(in crate::queues) has_acks: bool,
    /// It stands in the schedule's list of queues with `dead_letters` to be moved on.
    pub(in crate::queues) is_dead_lettering: bool,
    /// Bodies and index entries that are read for its consumers.
    pub(crate) read_ahead: ReadAhead,
    /// Bodies are being read for `dead_letters`.
    pub(crate) is_reading_dead_letters: bool,
    /// Messages that cannot be read back. They stay in the log, for whoever repairs it.
    pub(crate) unreadable: Vec<QueuedMessage>,
    /// When the broker will look at it although nothing happens.
    pub(in crate::queues) timer: Option<Timestamp>,
    /// What the totals hold of it.
    pub(crate) counted: QueueMemory,
    pub(crate) counters: MessageCounters,
    /// How fast it is consumed from, while it is crowded.
    pub(crate) pace: Option<Box<Pace>>,
}

impl Queue {
    pub(crate) fn new(new: NewQueue) -> Self {
        Self {
            id: new.id,
            name: new.name,
            vhost: new.vhost,
            vhost_name: new.vhost_name,
            durable: new.durable,
            auto_delete: new.auto_delete,
            owner: new.owner,
            table: new.table,
            ready: ReadyMessages::new(new.rules.max_priority, new.messages),
            rules: new.rules,
            created_at: new.created_at,
            used_at: new.created_at,
            unacked: 0,
            returning: 0,
            invisible: InvisibleMessages::default(),
            dead_letters: DeadLetters::default(),
            attributes: None,
            groups: None,
            deduplications: None,
            purged_at: None,
            receives: WaitingReceives::default(),
            consumers: QueueConsumers::default(),
            gets: VecDeque::new(),
            acks: Vec::new(),
            is_runnable: false,
            is_too_long: false,
            has_acks: false,
            is_dead_lettering: false,
            read_ahead: ReadAhead::default(),
            is_reading_dead_letters: false,
            unreadable: Vec::new(),
            timer: None,
            counted: QueueMemory::default(),
            counters: MessageCounters::default(),
            pace: None,
        }
    }

    /// Returns whether persistent messages in it survive a restart. Exclusive queues never outlive
    /// their connection, so nothing of theirs is kept.
    pub(crate) const fn keeps_messages(&self) -> bool {
        self.durable && self.owner.is_none()
    }

    pub(crate) const fn is_exclusive(&self) -> bool {
        self.owner.is_some()
    }

    /// Returns whether the connection may not use it, since another one owns it.
    pub(crate) fn is_locked_for(&self, connection: ConnectionId) -> bool {
        self.owner.is_some_and(|owner| owner != connection)
    }

    /// Returns what it acts on besides its arguments.
    pub(crate) fn settings(&self) -> &QueueSettings {
        static DEFAULT: QueueSettings = QueueSettings::DEFAULT;
        self.attributes.as_ref().map_or(&DEFAULT, |attributes| &attributes.settings)
    }

    /// Returns how much longer than they want to receives wait for messages on their way to the
    /// dead-letter queue.
    pub(crate) fn receive_patience_ms(&self) -> u64 {
        if self.dead_letters.has_redriven() { REDRIVE_PATIENCE_MS } else { 0 }
    }

    /// Returns when a message published now expires: the soonest of the queue's and the message's
    /// own times.
    pub(crate) fn expiry(&self, now: Timestamp, message_ttl_ms: Option<u64>) -> Option<Timestamp> {
        self.lifetime_ms(message_ttl_ms).map(|ttl| now.plus_ms(ttl))
    }

    /// Returns how long it keeps a message that has this time to live of its own.
    pub(crate) fn lifetime_ms(&self, message_ttl_ms: Option<u64>) -> Option<u64> {
        let ttls = [self.rules.message_ttl_ms, self.settings().retention_ms, message_ttl_ms];
        ttls.into_iter().flatten().min()
    }

    /// Returns whether so many more messages, of so many bytes together, would break a limit.
    pub(crate) fn would_overflow(&self, messages: u64, body_bytes: u64) -> bool {
        // Delayed messages come back: they count, or a delay would be a way around the limit.
        let length = (self.ready.len() + self.invisible.delayed()) as u64 + messages;
        let bytes = self.ready.body_bytes() + body_bytes;
        self.rules.max_length.is_some_and(|max| length > max)
            || self.rules.max_length_bytes.is_some_and(|max| bytes > max)
    }

    /// Returns whether a limit is broken.
    pub(crate) fn is_over_limit(&self) -> bool {
        self.rules.max_length.is_some_and(|max| self.ready.len() as u64 > max)
            || self.rules.max_length_bytes.is_some_and(|max| self.ready.body_bytes() > max)
    }

    /// Returns whether a limit has it refuse messages.
    pub(crate) fn refuses_overflow(&self) -> bool {
        self.has_length_limit() && self.rules.overflow != Overflow::DropHead
    }

    pub(crate) const fn has_length_limit(&self) -> bool {
        self.rules.max_length.is_some() || self.rules.max_length_bytes.is_some()
    }

    /// Returns when x-expires deletes it, if nobody uses it until then.
    pub(crate) fn unused_deadline(&self) -> Option<Timestamp> {
        let expires = self.rules.expires_ms?;
        self.consumers.is_empty().then(|| self.used_at.plus_ms(expires))
    }

    /// A message leaves other than by acknowledgement: to the dead-letter exchange, or for good.
    pub(crate) fn discard(&mut self, message: QueuedMessage, reason: DeadLetterReason) {
        match reason {
            DeadLetterReason::Expired => self.counters.expired += 1,
            DeadLetterReason::MaxLength => self.counters.overflowed += 1,
            DeadLetterReason::Rejected => self.counters.discarded += 1,
            DeadLetterReason::DeliveryLimit | DeadLetterReason::Redriven => {
                self.counters.over_delivery_limit += 1
            }
        }
        self.forget_visible(message.entry.seq);
        if self.is_moved_on(reason) {
            self.dead_letters.push(message, reason);
        } else {
            self.settle(&message.entry);
        }
    }

    /// Returns whether a message that leaves for this reason goes somewhere else.
    fn is_moved_on(&self, reason: DeadLetterReason) -> bool {
        reason == DeadLetterReason::Redriven || self.rules.dead_letter.is_some()
    }

    /// Returns whether the retention period ends a message with this time to live of its own, and no time to live does
    /// so sooner.
    pub(crate) fn ends_by_retention(&self, message_ttl_ms: Option<u64>) -> bool {
        let ttl = [self.rules.message_ttl_ms, message_ttl_ms].into_iter().flatten().min();
        self.settings().retention_ms.is_some_and(|period| ttl.is_none_or(|ttl| period < ttl))
    }

    /// Returns what it knows of messages besides the index, in bytes of memory.
    pub(crate) fn held_bytes(&self) -> usize {
        self.invisible.bytes()
            + self.groups.as_ref().map_or(0, |groups| groups.bytes())
            + self.deduplications.as_ref().map_or(0, |known| known.bytes())
    }

    /// Returns how many messages clients of any protocol have and have not settled.
    pub(crate) fn in_flight(&self) -> u64 {
        self.unacked + self.invisible.in_flight() as u64
    }

    /// Forgets the deduplication ids when none of them counts any more.
    pub(crate) fn end_deduplications(&mut self, now: Timestamp) {
        if self.deduplications.as_ref().is_some_and(|ids| ids.end() <= now) {
            self.deduplications = None;
        }
    }

    /// Returns whether a checkpoint has anything to note of it but its entries and what is
    /// invisible.
    pub(crate) fn has_notes(&self) -> bool {
        self.invisible.received_before_from(Seq(0)).next().is_some()
            || self.deduplications.is_some()
    }

    /// A message was given to an AMQP client, which settles it later or has no need to.
    pub(crate) fn handed_to_client(&mut self, seq: Seq, is_settled: bool) {
        self.invisible.forget(seq);
        match &mut self.groups {
            None => {}
            Some(groups) if is_settled => groups.remove_visible(seq),
            Some(groups) => groups.mark_in_flight(seq),
        }
    }

    /// A visible message left the queue for good.
    pub(crate) fn forget_visible(&mut self, seq: Seq) {
        self.invisible.forget(seq);
        if let Some(groups) = &mut self.groups {
            groups.remove_visible(seq);
        }
    }

    /// Sets aside a visible message that cannot be read: it does not stand in the way of the
    /// others. False if it is not there.
    pub(crate) fn set_aside(&mut self, seq: Seq) -> bool {
        let Some(message) = self.ready.remove(seq) else { return false };
        self.forget_visible(seq);
        self.unreadable.push(message);
        true
    }

    /// Returns how many messages were set aside since they cannot be read.
    pub(crate) fn unreadable(&self) -> u64 {
        self.unreadable.len() as u64 + self.ready.unreadable()
    }

    /// The queue is done with a message.
    pub(crate) fn settle(&mut self, entry: &Entry) {
        if entry.is_stored() {
            self.acks.push(*entry);
        }
    }

    /// Empties it of ready messages. The caller balances the segments' accounts.
    pub(crate) fn take_ready(&mut self) -> ReadyMessages {
        let empty = ReadyMessages::new(self.rules.max_priority, QueueIndex::new());
        std::mem::replace(&mut self.ready, empty)
    }

    /// Takes the dead letters out, as a queue that has nothing else: this one goes.
    pub(in crate::queues) fn split_off_dead_letters(&mut self) -> Self {
        let mut letters = Self::new(NewQueue {
            id: self.id,
            name: self.name.clone(),
            vhost: self.vhost,
            vhost_name: self.vhost_name.clone(),
            durable: self.durable,
            auto_delete: self.auto_delete,
            owner: self.owner,
            table: Table::new(),
            rules: self.rules.clone(),
            created_at: self.created_at,
            messages: QueueIndex::new(),
        });
        // Where to is among them, of those that were received too often.
        letters.attributes = self.attributes.take();
        letters.dead_letters = std::mem::take(&mut self.dead_letters);
        letters.is_dead_lettering = self.is_dead_lettering;
        letters.is_reading_dead_letters = self.is_reading_dead_letters;
        letters
    }

    /// Balances the segments' accounts for up to `max` messages or ranges that it still had: it is gone.
    /// Returns for how many; fewer than `max` if there are no more.
    pub(crate) fn release_some(&mut self, store: &mut dyn Store, max: usize) -> usize {
        for released in 0..max {
            // Settled, but the log will not hear of it any more: it goes with the queue.
            if let Some(entry) = self.acks.pop() {
                store.release(&entry);
                continue;
            }
            match self.invisible.pop().or_else(|| self.unreadable.pop()) {
                Some(message) => store.release(&message.entry),
                None => match self.ready.pop_any() {
                    Some(removed) => release(store, &removed),
                    None if self.invisible.forget_one() => {}
                    None => return released,
                },
            }
        }
        max
    }

    /// Returns the queue as the log keeps it.
    pub(crate) fn stored(&self) -> Item {
        Item::Queue(StoredQueue {
            vhost: self.vhost_name.clone(),
            name: self.name.clone(),
            id: self.id,
            auto_delete: self.auto_delete,
            exclusive: false,
            created_at: self.created_at,
            arguments: self.table.clone(),
        })
    }

    /// Returns its attributes as the log keeps them, if it has any.
    pub(crate) fn stored_attributes(&self) -> Option<Item> {
        let attributes = self.attributes.as_deref()?.clone();
        let (vhost, queue) = (self.vhost_name.clone(), self.name.clone());
        Some(Item::Attributes(StoredAttributes { vhost, queue, attributes }))
    }
}

/// Balances a segment's account for what left a queue's index.
pub(crate) fn release(store: &mut dyn Store, removed: &Drained) {
    match removed {
        Drained::Entry(message) => store.release(&message.entry),
        Drained::PagedRange(range) => store.release_paged_range(range),
    }
}
