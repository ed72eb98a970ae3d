//! Queues as SQS sees them: made, changed, counted and listed without a channel.

use quelea_model::limits::QUEUE_ATTRIBUTES_BYTES_MAX;
use quelea_model::{QueueId, QueueName, Table, Timestamp, VhostName};
use quelea_store::{Durability, QueueIndex, Ticket};

use crate::Broker;
use crate::access::Operation;
use crate::declare_queue::NewQueue;
use crate::error::{CreateQueueError, LimitReached, NoSuchQueueId};
use crate::queue::{Queue, QueueArguments, QueueAttributes};
use crate::topology::{Item, StoredAttributes, StoredQueue};

/// Names of deleted queues that are remembered; at the limit all are forgotten, and nobody has to
/// wait.
const DELETED_QUEUES_MAX: usize = 65_536;

/// What a user may do with a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueuePermits {
    /// Declare, change, delete.
    pub configure: bool,
    /// Send.
    pub write: bool,
    /// Receive.
    pub read: bool,
}

/// What waits in a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueBacklog {
    /// Ready to be received.
    pub visible: u64,
    /// Received through SQS or delivered over AMQP, and neither deleted nor acknowledged.
    pub in_flight: u64,
    /// Not yet to be received.
    pub delayed: u64,
    /// When the oldest one was sent; `None` if there is none, or it is not known.
    pub oldest_sent_at: Option<Timestamp>,
}

impl Broker {
    /// The number of a queue.
    #[must_use]
    pub fn queue_id(&self, vhost: &str, name: &str) -> Option<QueueId> {
        let vhost = self.vhosts.get(self.vhost_ids.get(vhost)?.0)?;
        vhost.queues.get(name).copied()
    }

    /// A queue's attributes and the time of its declaration. Exclusive queues are nobody else's.
    #[must_use]
    pub fn queue_attributes(&self, id: QueueId) -> Option<(QueueAttributes, Timestamp)> {
        let queue = self.queues.get(&id).filter(|queue| !queue.is_exclusive())?;
        Some((queue.attributes.as_deref().cloned().unwrap_or_default(), queue.created_at))
    }

    /// What a user's permissions allow with a queue of that name, whether it exists or not.
    pub fn queue_permits(&mut self, user: &str, vhost: &str, name: &str) -> QueuePermits {
        let mut may = |operation| self.access.check(user, vhost, operation, name);
        QueuePermits {
            configure: may(Operation::Configure),
            write: may(Operation::Write),
            read: may(Operation::Read),
        }
    }

    /// Changes when anything that [`Broker::queue_attributes`] and [`Broker::queue_permits`] say may
    /// have changed.
    #[must_use]
    pub fn queues_epoch(&self) -> u64 {
        self.queues_epoch.wrapping_add(self.access.epoch())
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
        let vhost_id = *self
            .vhost_ids
            .get(vhost)
            .ok_or_else(|| CreateQueueError::NoSuchVhost { vhost: vhost.to_owned() })?;
        let Some(host) = self.vhosts.get(vhost_id.0) else {
            return Err(CreateQueueError::NoSuchVhost { vhost: vhost.to_owned() });
        };
        if host.queues.contains_key(name.as_str()) {
            return Err(CreateQueueError::Exists);
        }
        let limit = self.config.queues_per_vhost_max;
        if host.queues.len() >= limit {
            let what = format!("another queue in vhost '{vhost}'");
            return Err(LimitReached { what, limit }.into());
        }
        let vhost_name = host.name.clone();
        let id = self.next_queue;
        let arguments = Table::new();
        let rules =
            QueueArguments::parse(&arguments, true, false, self.config.quorum_delivery_limit)
                .map_err(|bad| CreateQueueError::Arguments(bad.problem))?;
        self.next_queue = QueueId(id.0 + 1);
        let stored = StoredQueue {
            vhost: vhost_name,
            name: name.clone(),
            id,
            auto_delete: false,
            exclusive: false,
            created_at: now,
            arguments: arguments.clone(),
        };
        self.add_queue(NewQueue {
            id,
            name,
            vhost: vhost_id,
            durable: true,
            auto_delete: false,
            owner: None,
            table: arguments,
            rules,
            created_at: now,
            messages: QueueIndex::new(),
        });
        self.store.begin_atomic();
        self.persist(&Item::Queue(stored));
        self.apply_attributes(id, attributes);
        self.persist_attributes(id);
        self.store.end_atomic();
        Ok((id, self.ticket(Durability::Fsync)))
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
        if !self.queues.contains_key(&id) {
            return Err(NoSuchQueueId { queue: id }.into());
        }
        let fair = self.queues.get(&id).is_some_and(|queue| queue.settings().fair);
        let mut attributes = attributes;
        attributes.settings.fair |= fair;
        self.apply_attributes(id, attributes);
        self.persist_attributes(id);
        self.touch(id);
        Ok(self.ticket(Durability::Fsync))
    }

    /// Takes attributes, and acts on what they change.
    pub(crate) fn apply_attributes(&mut self, id: QueueId, attributes: QueueAttributes) {
        self.queues_epoch += 1;
        if let Some(queue) = self.queues.get_mut(&id) {
            if let Some(durability) = attributes.settings.durability {
                queue.rules.durability = durability;
            }
            queue.attributes = Some(Box::new(attributes));
        }
        self.regroup(id);
    }

    /// Writes a queue's attributes, if the queue survives a restart.
    pub(crate) fn persist_attributes(&mut self, id: QueueId) {
        self.queues_epoch += 1;
        let Some(queue) = self.queues.get(&id).filter(|queue| queue.keeps_messages()) else {
            return;
        };
        if let Some(item) = stored_attributes(queue) {
            self.persist(&item);
        }
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
        let queue = self.queues.get(&id).ok_or(NoSuchQueueId { queue: id })?;
        let name = (queue.vhost_name.clone(), queue.name.clone());
        if self.deleted_queues.len() >= DELETED_QUEUES_MAX {
            self.deleted_queues.clear();
        }
        self.deleted_queues.insert(name, now);
        self.remove_queue(id);
        Ok(self.ticket(Durability::Fsync))
    }

    /// When a queue of that name was last deleted by [`Broker::delete_queue_by_id`], if that is
    /// remembered.
    #[must_use]
    pub fn queue_deleted_at(&self, vhost: &str, name: &str) -> Option<Timestamp> {
        let name = (VhostName::parse(vhost).ok()?, QueueName::parse(name).ok()?);
        self.deleted_queues.get(&name).copied()
    }

    /// The virtual host of a queue.
    #[must_use]
    pub fn queue_vhost(&self, id: QueueId) -> Option<&VhostName> {
        self.queues.get(&id).map(|queue| &queue.vhost_name)
    }

    /// The virtual host and the name of a queue.
    #[must_use]
    pub fn queue_name_of(&self, id: QueueId) -> Option<(&VhostName, &QueueName)> {
        self.queues.get(&id).map(|queue| (&queue.vhost_name, &queue.name))
    }

    /// Whether it is a FIFO queue.
    #[must_use]
    pub fn queue_is_fifo(&self, id: QueueId) -> bool {
        self.queues.get(&id).is_some_and(|queue| queue.settings().fifo.is_some())
    }

    /// When a queue was last purged by [`Broker::purge_queue_by_id`].
    #[must_use]
    pub fn queue_purged_at(&self, id: QueueId) -> Option<Timestamp> {
        self.queues.get(&id)?.purged_at
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
        self.show_due(id, now);
        let queue = self.queues.get(&id).ok_or(NoSuchQueueId { queue: id })?;
        Ok(QueueBacklog {
            visible: queue.ready.len() as u64,
            in_flight: queue.hidden.in_flight() as u64 + queue.unacked,
            delayed: queue.hidden.delayed() as u64,
            oldest_sent_at: oldest_sent_at(queue),
        })
    }

    /// Names of a virtual host's queues that begin with `prefix` and sort after `after`, sorted, at
    /// most `max`. Costs time in proportion to the number of queues.
    #[must_use]
    pub fn queue_names(
        &self,
        vhost: &str,
        after: Option<&str>,
        max: usize,
        mut wanted: impl FnMut(&str, &QueueAttributes) -> bool,
    ) -> Vec<QueueName> {
        let Some(vhost) = self.vhost_ids.get(vhost).and_then(|id| self.vhosts.get(id.0)) else {
            return Vec::new();
        };
        let none = QueueAttributes::default();
        let mut names: Vec<&QueueName> = vhost
            .queues
            .iter()
            .filter(|(name, id)| {
                let queue = self.queues.get(id);
                after.is_none_or(|after| name.as_str() > after)
                    && queue.is_some_and(|queue| {
                        let attributes = queue.attributes.as_deref().unwrap_or(&none);
                        !queue.is_exclusive() && wanted(name.as_str(), attributes)
                    })
            })
            .map(|(name, _)| name)
            .collect();
        names.sort_unstable();
        names.truncate(max);
        names.into_iter().cloned().collect()
    }
}

/// A queue's attributes as they are written, if it has any.
pub(crate) fn stored_attributes(queue: &Queue) -> Option<Item> {
    let attributes = queue.attributes.as_deref()?.clone();
    let (vhost, name) = (queue.vhost_name.clone(), queue.name.clone());
    Some(Item::Attributes(StoredAttributes { vhost, queue: name, attributes }))
}

/// The retention period tells it: a message's expiry is its sending and that.
fn oldest_sent_at(queue: &Queue) -> Option<Timestamp> {
    let retention_ms = queue.settings().retention_ms?;
    let hidden = queue.hidden.first().and_then(|hidden| hidden.message.expires_at);
    let expiry = [queue.ready.head_expiry(), hidden].into_iter().flatten().min()?;
    Some(Timestamp::from_millis(expiry.as_millis().saturating_sub(retention_ms)))
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
