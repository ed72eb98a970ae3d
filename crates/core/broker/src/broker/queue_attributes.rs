//! Queues as SQS sees them: made, changed, counted and listed without a channel.

use quelea_model::limits::QUEUE_ATTRIBUTES_BYTES_MAX;
use quelea_model::{QueueId, QueueName, Table, Timestamp};
use quelea_store::{Durability, NEVER, QueueIndex, Ticket};

use super::Broker;
use crate::access::Operation;
use crate::error::{CreateQueueError, LimitReached, NoSuchQueueId};
use crate::messaging::Messaging;
use crate::queues::Queues;
use crate::queues::queue::arguments::QueueArguments;
use crate::queues::queue::attributes::QueueAttributes;
use crate::queues::queue::{NewQueue, Queue};
use crate::reply::{QueueBacklog, QueueNames, QueuePermits};
use crate::work::STEPS_PER_NAME;

impl Broker {
    /// Returns the number of a queue.
    #[must_use]
    pub fn queue_id(&self, vhost: &str, name: &str) -> Option<QueueId> {
        self.messaging.queues.find(self.routing.vhost_id(vhost)?, name)
    }

    /// Returns a queue's attributes and the time of its declaration. Exclusive queues are nobody
    /// else's.
    #[must_use]
    pub fn queue_attributes(&self, id: QueueId) -> Option<(QueueAttributes, Timestamp)> {
        let queue = self.messaging.queues.get(id).filter(|queue| !queue.is_exclusive())?;
        Some((queue.attributes.as_deref().cloned().unwrap_or_default(), queue.created_at))
    }

    /// Returns what a user's permissions allow with a queue of that name, whether it exists or not.
    pub fn queue_permits(&mut self, user: &str, vhost: &str, name: &str) -> QueuePermits {
        let mut may = |operation| self.access.accounts.check(user, vhost, operation, name);
        QueuePermits {
            configure: may(Operation::Configure),
            write: may(Operation::Write),
            read: may(Operation::Read),
        }
    }

    /// Returns a number that changes when anything that [`Broker::queue_attributes`] and
    /// [`Broker::queue_permits`] say may have changed.
    #[must_use]
    pub fn queues_epoch(&self) -> u64 {
        let (queues, access) = (self.messaging.queues.epoch(), &self.access);
        queues.wrapping_add(access.keys.epoch()).wrapping_add(access.accounts.epoch())
    }

    /// Makes a durable queue with these attributes.
    ///
    /// # Errors
    /// [`CreateQueueError`].
    pub fn create_queue(
        &mut self,
        now: Timestamp,
        vhost: &str,
        name: &str,
        attributes: QueueAttributes,
    ) -> Result<(QueueId, Ticket), CreateQueueError> {
        let name = QueueName::parse(name)?;
        check_size(&attributes)?;
        let found = self.routing.vhost_id(vhost).and_then(|id| Some((id, self.routing.vhost(id)?)));
        let Some((vhost_id, found)) = found else {
            return Err(CreateQueueError::NoSuchVhost { vhost: vhost.to_owned() });
        };
        if self.messaging.queues.find(vhost_id, name.as_str()).is_some() {
            return Err(CreateQueueError::Exists);
        }
        if self.removals.holds_name(vhost_id, name.as_str()) {
            return Err(CreateQueueError::BeingDeleted);
        }
        self.check_queue_count(vhost_id)?;
        let vhost_name = found.name.clone();
        let table = Table::new();
        let rules = QueueArguments::parse(&table, true, false, self.config.quorum_delivery_limit)
            .map_err(|bad| CreateQueueError::Arguments(bad.problem))?;
        let id = self.messaging.queues.take_id();
        self.churn.queues_created += 1;
        self.add_queue(NewQueue {
            id,
            name,
            vhost: vhost_id,
            vhost_name,
            durable: true,
            auto_delete: false,
            owner: None,
            table,
            rules,
            created_at: now,
            messages: QueueIndex::new(),
        });
        let Messaging { queues, log, .. } = &mut self.messaging;
        log.store.begin_atomic();
        if let Some(queue) = queues.get(id) {
            log.persist(&queue.stored());
        }
        queues.apply_attributes(log, id, attributes);
        queues.persist_attributes(log, id);
        log.store.end_atomic();
        Ok((id, self.messaging.ticket(Durability::Fsync)))
    }

    /// Replaces a queue's attributes.
    ///
    /// # Errors
    /// [`CreateQueueError`].
    pub fn put_queue_attributes(
        &mut self,
        id: QueueId,
        attributes: QueueAttributes,
    ) -> Result<Ticket, CreateQueueError> {
        check_size(&attributes)?;
        let Messaging { queues, log, .. } = &mut self.messaging;
        let queue = queues.get(id).ok_or(NoSuchQueueId { queue: id })?;
        let mut attributes = attributes;
        attributes.settings.fair |= queue.settings().fair;
        queues.apply_attributes(log, id, attributes);
        queues.persist_attributes(log, id);
        queues.wake(id);
        Ok(self.messaging.ticket(Durability::Fsync))
    }

    /// Deletes a queue with all that is in it.
    ///
    /// # Errors
    /// [`NoSuchQueueId`].
    pub fn delete_queue_by_id(
        &mut self,
        now: Timestamp,
        id: QueueId,
    ) -> Result<Ticket, NoSuchQueueId> {
        let queue = self.messaging.queues.get(id).ok_or(NoSuchQueueId { queue: id })?;
        self.deleted_queues.note(queue.vhost_name.clone(), queue.name.clone(), now);
        self.remove_queue(id);
        Ok(self.messaging.ticket(Durability::Fsync))
    }

    /// Returns when a queue of that name was last deleted by [`Broker::delete_queue_by_id`], if
    /// that is remembered.
    #[must_use]
    pub fn queue_deleted_at(&self, vhost: &str, name: &str) -> Option<Timestamp> {
        self.deleted_queues.when(vhost, name)
    }

    /// Returns when a queue was last purged by [`Broker::purge_queue_by_id`].
    #[must_use]
    pub fn queue_purged_at(&self, id: QueueId) -> Option<Timestamp> {
        self.messaging.queues.get(id)?.purged_at
    }

    /// Counts what waits in a queue.
    ///
    /// # Errors
    /// [`NoSuchQueueId`].
    pub fn queue_backlog(
        &mut self,
        now: Timestamp,
        id: QueueId,
    ) -> Result<QueueBacklog, NoSuchQueueId> {
        let Messaging { queues, log, .. } = &mut self.messaging;
        queues.make_due_visible(log, id, now);
        let queue = self.messaging.queues.get(id).ok_or(NoSuchQueueId { queue: id })?;
        Ok(QueueBacklog {
            visible: queue.ready.len() as u64,
            in_flight: queue.invisible.in_flight() as u64 + queue.unacked,
            delayed: queue.invisible.delayed() as u64,
            oldest_sent_at: oldest_sent_at(&self.messaging.queues, queue),
        })
    }

    /// Returns the names of a virtual host's queues that are nobody's own, begin with `prefix` and
    /// sort after `after`, in order, and for which `wanted` is true: those that it finds within the
    /// steps of a turn.
    #[must_use]
    pub fn queue_names(
        &mut self,
        vhost: &str,
        prefix: &str,
        after: Option<&str>,
        mut wanted: impl FnMut(&str, &QueueAttributes) -> bool,
    ) -> QueueNames {
        let queues = &self.messaging.queues;
        let mut found = QueueNames::default();
        let Some(vhost) = self.routing.vhost_id(vhost).and_then(|id| queues.in_vhost(id)) else {
            return found;
        };
        let none = QueueAttributes::default();
        let mut left = self.work.per_turn() / STEPS_PER_NAME;
        let begun_with = left;
        for (name, id) in vhost.names_after(prefix, after) {
            let is_wanted = queues.get(id).is_some_and(|queue| {
                let attributes = queue.attributes.as_deref().unwrap_or(&none);
                !queue.is_exclusive() && wanted(name.as_str(), attributes)
            });
            if is_wanted {
                found.names.push(name.clone());
            }
            left -= 1;
            if left == 0 {
                found.go_on_after = Some(name.clone());
                break;
            }
        }
        self.work.spend((begun_with - left) * STEPS_PER_NAME);
        found
    }
}

/// Returns when the oldest message was sent. Its expiry says that exactly, being its sending and the period that the queue
/// gives it. Where a message has a shorter time of its own that is too early, and then it is the time about which its
/// number came, which is known since the start.
fn oldest_sent_at(queues: &Queues, queue: &Queue) -> Option<Timestamp> {
    let invisible = queue.invisible.first().map(|invisible| &invisible.message);
    let seqs = [queue.ready.oldest_seq(), invisible.map(|message| message.entry.seq)];
    let arrived_at = seqs.into_iter().flatten().min().and_then(|seq| queues.arrived_at(seq));
    let expiries = [queue.ready.head_expiry(), invisible.and_then(|message| message.expires_at)];
    let expiry = expiries.into_iter().flatten().filter(|at| *at != NEVER).min();
    let sent_at = queue.lifetime_ms(None).zip(expiry).map(|(lifetime_ms, expiry)| {
        Timestamp::from_millis(expiry.as_millis().saturating_sub(lifetime_ms))
    });
    sent_at.max(arrived_at)
}

fn check_size(attributes: &QueueAttributes) -> Result<(), CreateQueueError> {
    let pairs = attributes.attributes.iter().chain(&attributes.tags);
    let bytes: usize = pairs.map(|(name, value)| name.len() + value.len() + 8).sum();
    if bytes > QUEUE_ATTRIBUTES_BYTES_MAX {
        let what = format!("attributes of {bytes} bytes");
        return Err(LimitReached { what, limit: QUEUE_ATTRIBUTES_BYTES_MAX }.into());
    }
    Ok(())
}
