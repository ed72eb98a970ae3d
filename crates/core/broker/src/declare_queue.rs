//! Making queues.

use std::collections::VecDeque;

use quelea_model::{QueueId, QueueName, Table, Timestamp};
use quelea_store::{Durability, QueueIndex, Ticket};

use crate::Broker;
use crate::access::Operation;
use crate::argument_bounds::check_arguments;
use crate::error::{
    ChannelGone, DeclareQueueError, Inequivalent, InvalidArgument, InvalidName, LimitReached,
    NoSuchQueue, QueueLocked, ReservedName, ResourceKind,
};
use crate::exchange::RESERVED_PREFIX;
use crate::find_queue::check_lock;
use crate::ids::{ChannelId, ConnectionId};
use crate::memory::QueueMemory;
use crate::queue::{
    HiddenMessages, Queue, QueueArguments, QueueConsumers, ReadyMessages, TransitMessages,
    WaitingReceives, arguments,
};
use crate::read_ahead::ReadAhead;
use crate::reply::QueueDeclared;
use crate::reply_to::{REPLY_KEY_PREFIX, REPLY_TO};
use crate::report::MessageCounters;
use crate::request::DeclareQueue;
use crate::topology::{Item, StoredQueue};
use crate::vhost::VhostId;

/// What a new queue is made of.
pub(crate) struct NewQueue {
    pub(crate) id: QueueId,
    pub(crate) name: QueueName,
    pub(crate) vhost: VhostId,
    pub(crate) durable: bool,
    pub(crate) auto_delete: bool,
    pub(crate) owner: Option<ConnectionId>,
    pub(crate) table: Table,
    pub(crate) rules: QueueArguments,
    pub(crate) created_at: Timestamp,
    pub(crate) messages: QueueIndex,
}

impl Broker {
    /// queue.declare, passive or not.
    ///
    /// # Errors
    /// [`DeclareQueueError`]; nothing has changed then.
    pub fn declare_queue(
        &mut self,
        now: Timestamp,
        channel: ChannelId,
        request: &DeclareQueue,
    ) -> Result<QueueDeclared, DeclareQueueError> {
        if request.name == REPLY_TO || request.name.starts_with(REPLY_KEY_PREFIX) {
            return self.declare_reply_queue(channel, &request.name);
        }
        let name = if request.passive {
            self.queue_name(channel, &request.name)?
        } else if request.name.is_empty() {
            self.random.name("amq.gen-")
        } else {
            request.name.clone()
        };
        let state = self.clients.channels.get(channel.0).ok_or(ChannelGone)?;
        let (vhost, vhost_name) = (state.vhost, state.vhost_name.clone());
        let known = self.vhosts.get(vhost.0).and_then(|v| v.queues.get(name.as_str())).copied();
        let ticket = match known {
            None if request.passive => {
                return Err(NoSuchQueue { vhost: vhost_name, queue: name }.into());
            }
            None => self.declare_new(now, channel, &name, request)?,
            Some(id) => {
                self.redeclare_queue(now, channel, id, request)?;
                Ticket::NONE
            }
        };
        let name = QueueName::parse(&name).map_err(|e| InvalidName(e.to_string()))?;
        if let Some(state) = self.clients.channels.get_mut(channel.0) {
            state.last_queue = Some(name.to_string());
        }
        self.describe_queue(vhost, name, ticket, now)
    }

    fn describe_queue(
        &mut self,
        vhost: VhostId,
        name: QueueName,
        ticket: Ticket,
        now: Timestamp,
    ) -> Result<QueueDeclared, DeclareQueueError> {
        let vhost = self.vhosts.get(vhost.0).ok_or(ChannelGone)?;
        let id = vhost.queues.get(name.as_str()).copied().ok_or(ChannelGone)?;
        if self.queues.get(&id).is_some_and(|queue| queue.is_touched) {
            self.dispatch(id, now);
        }
        let queue = self.queues.get(&id).ok_or(ChannelGone)?;
        Ok(QueueDeclared {
            name,
            messages: u32::try_from(queue.ready.len()).unwrap_or(u32::MAX),
            consumers: queue.consumers.len() as u32,
            ticket,
        })
    }

    /// A queue that stands: the declaration has to say the same.
    fn redeclare_queue(
        &mut self,
        now: Timestamp,
        channel: ChannelId,
        id: QueueId,
        request: &DeclareQueue,
    ) -> Result<(), DeclareQueueError> {
        if !request.passive {
            let name = self.queues.get(&id).map_or_else(String::new, |q| q.name.to_string());
            self.permit_declare(channel, &name, &request.arguments)?;
        }
        let state = self.clients.channels.get(channel.0).ok_or(ChannelGone)?;
        let connection = state.connection;
        let queue = self.queues.get_mut(&id).ok_or(ChannelGone)?;
        check_lock(queue, connection)?;
        if !request.passive {
            if request.exclusive != queue.is_exclusive() {
                let (vhost, queue) = (queue.vhost_name.clone(), queue.name.clone());
                return Err(QueueLocked { vhost, queue }.into());
            }
            check_equivalent(queue, request)?;
            queue.used_at = now;
        }
        Ok(())
    }

    fn declare_new(
        &mut self,
        now: Timestamp,
        channel: ChannelId,
        name: &str,
        request: &DeclareQueue,
    ) -> Result<Ticket, DeclareQueueError> {
        if !request.name.is_empty() && name.starts_with(RESERVED_PREFIX) {
            let (kind, name) = (ResourceKind::Queue, name.to_owned());
            return Err(ReservedName { kind, name }.into());
        }
        let parsed = QueueName::parse(name).map_err(|e| InvalidName(e.to_string()))?;
        self.permit_declare(channel, name, &request.arguments)?;
        check_arguments(&request.arguments)?;
        let rules = self.queue_rules(channel, name, request)?;
        self.check_queue_limits(channel, request.exclusive)?;
        let state = self.clients.channels.get(channel.0).ok_or(ChannelGone)?;
        let (vhost, vhost_name, connection) =
            (state.vhost, state.vhost_name.clone(), state.connection);
        let id = self.next_queue;
        self.next_queue = QueueId(id.0 + 1);
        let owner = request.exclusive.then_some(connection);
        if let Some(connection) = owner.and_then(|c| self.clients.connections.get_mut(c.0)) {
            connection.exclusive_queues.push(id);
        }
        let stored = StoredQueue {
            vhost: vhost_name,
            name: parsed.clone(),
            id,
            auto_delete: request.auto_delete,
            exclusive: false,
            created_at: now,
            arguments: request.arguments.clone(),
        };
        self.add_queue(NewQueue {
            id,
            name: parsed,
            vhost,
            durable: request.durable,
            auto_delete: request.auto_delete,
            owner,
            table: request.arguments.clone(),
            rules,
            created_at: now,
            messages: QueueIndex::new(),
        });
        if !request.durable || owner.is_some() {
            return Ok(Ticket::NONE);
        }
        self.persist(&Item::Queue(stored));
        Ok(self.ticket(Durability::Fsync))
    }

    /// Puts a queue among the others and makes it routable.
    pub(crate) fn add_queue(&mut self, new: NewQueue) {
        let Some(vhost) = self.vhosts.get_mut(new.vhost.0) else {
            return;
        };
        let keeps = new.durable && new.owner.is_none();
        vhost.router.add_queue(&new.name, new.id, keeps);
        vhost.queues.insert(new.name.clone(), new.id);
        let queue = Queue {
            id: new.id,
            name: new.name,
            vhost: new.vhost,
            vhost_name: vhost.name.clone(),
            durable: new.durable,
            auto_delete: new.auto_delete,
            owner: new.owner,
            table: new.table,
            ready: ReadyMessages::new(new.rules.max_priority, new.messages),
            rules: new.rules,
            created_at: new.created_at,
            used_at: new.created_at,
            unacked: 0,
            hidden: HiddenMessages::default(),
            transit: TransitMessages::default(),
            attributes: None,
            groups: None,
            deduplications: None,
            purged_at: None,
            receives: WaitingReceives::default(),
            consumers: QueueConsumers::default(),
            gets: VecDeque::new(),
            acks: Vec::new(),
            is_touched: false,
            is_settling: false,
            is_moving: false,
            read_ahead: ReadAhead::default(),
            is_loading_transit: false,
            unreadable: Vec::new(),
            timer: None,
            counted: QueueMemory::default(),
            counters: MessageCounters::default(),
        };
        let id = queue.id;
        self.queues_epoch += 1;
        self.queues.insert(id, Box::new(queue));
        self.follow_up(id);
    }

    /// Configure on the queue; with a dead-letter exchange also read on the queue and write on it.
    fn permit_declare(
        &mut self,
        channel: ChannelId,
        name: &str,
        arguments: &Table,
    ) -> Result<(), DeclareQueueError> {
        let state = self.clients.channels.get(channel.0).ok_or(ChannelGone)?;
        let (user, vhost) = (state.user.clone(), state.vhost_name.clone());
        self.permit(&user, &vhost, Operation::Configure, ResourceKind::Queue, name)?;
        let exchange = arguments.get("x-dead-letter-exchange").and_then(|value| value.as_text());
        if let Some(exchange) = exchange {
            self.permit(&user, &vhost, Operation::Read, ResourceKind::Queue, name)?;
            self.permit(&user, &vhost, Operation::Write, ResourceKind::Exchange, exchange)?;
        }
        Ok(())
    }

    fn queue_rules(
        &self,
        channel: ChannelId,
        name: &str,
        request: &DeclareQueue,
    ) -> Result<QueueArguments, DeclareQueueError> {
        let state = self.clients.channels.get(channel.0).ok_or(ChannelGone)?;
        let limit = self.config.quorum_delivery_limit;
        let rules =
            QueueArguments::parse(&request.arguments, request.durable, request.exclusive, limit);
        rules.map_err(|bad| {
            DeclareQueueError::from(InvalidArgument {
                kind: ResourceKind::Queue,
                vhost: state.vhost_name.clone(),
                name: name.to_owned(),
                argument: bad.argument.to_owned(),
                problem: bad.problem,
            })
        })
    }

    fn check_queue_limits(
        &self,
        channel: ChannelId,
        exclusive: bool,
    ) -> Result<(), DeclareQueueError> {
        let state = self.clients.channels.get(channel.0).ok_or(ChannelGone)?;
        let vhost = self.vhosts.get(state.vhost.0).ok_or(ChannelGone)?;
        let limit = self.config.queues_per_vhost_max;
        if vhost.queues.len() >= limit {
            let what = format!("another queue in vhost '{}'", vhost.name);
            return Err(LimitReached { what, limit }.into());
        }
        let connection = self.clients.connections.get(state.connection.0).ok_or(ChannelGone)?;
        let limit = self.config.exclusive_queues_per_connection_max;
        if exclusive && connection.exclusive_queues.len() >= limit {
            let what = String::from("another exclusive queue of this connection");
            return Err(LimitReached { what, limit }.into());
        }
        Ok(())
    }

    /// The queue of direct replies does not exist, but declaring it works, as in RabbitMQ.
    fn declare_reply_queue(
        &mut self,
        channel: ChannelId,
        name: &str,
    ) -> Result<QueueDeclared, DeclareQueueError> {
        let state = self.clients.channels.get_mut(channel.0).ok_or(ChannelGone)?;
        let vhost = state.vhost_name.clone();
        if name != REPLY_TO && self.find_reply_consumer(name).is_none() {
            return Err(NoSuchQueue { vhost, queue: name.to_owned() }.into());
        }
        let name = QueueName::parse(name).map_err(|e| InvalidName(e.to_string()))?;
        Ok(QueueDeclared { name, messages: 0, consumers: 1, ticket: Ticket::NONE })
    }
}

/// Compares in RabbitMQ's order.
fn check_equivalent(queue: &Queue, request: &DeclareQueue) -> Result<(), Inequivalent> {
    let differs = |field: &str, received: String, current: String| {
        Err(Inequivalent {
            kind: ResourceKind::Queue,
            vhost: queue.vhost_name.clone(),
            name: queue.name.to_string(),
            field: field.to_owned(),
            received,
            current,
        })
    };
    let flags = [
        ("durable", request.durable, queue.durable),
        ("auto_delete", request.auto_delete, queue.auto_delete),
    ];
    for (field, received, current) in flags {
        if received != current {
            return differs(field, format!("'{received}'"), format!("'{current}'"));
        }
    }
    match arguments::difference(&request.arguments, &queue.table) {
        Some((field, received, current)) => differs(field, received, current),
        None => Ok(()),
    }
}
