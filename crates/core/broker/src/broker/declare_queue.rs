//! Making queues.

use quelea_model::{QueueId, QueueName, Table, Timestamp};
use quelea_store::{QueueIndex, Ticket};

use super::Broker;
use super::find_queue::check_lock;
use crate::access::Operation;
use crate::argument_bounds::check_arguments;
use crate::clients::reply_to::{REPLY_KEY_PREFIX, REPLY_TO};
use crate::error::{
    BeingDeleted, ChannelGone, DeclareQueueError, Inequivalent, InvalidArgument, InvalidName,
    LimitReached, MakingRoom, NoSuchQueue, QueueLocked, ReservedName, ResourceError, ResourceKind,
};
use crate::ids::{ChannelId, VhostId};
use crate::messaging::Messaging;
use crate::queues::queue::arguments::{self, QueueArguments};
use crate::queues::queue::{NewQueue, Queue};
use crate::reply::QueueDeclared;
use crate::request::DeclareQueue;
use crate::routing::exchange::RESERVED_PREFIX;
use crate::topology_changes::TopologyAction;

/// What the names begin with that the broker makes up.
const MADE_UP_PREFIX: &str = "amq.gen-";

impl Broker {
    /// Declares a queue (queue.declare), passive or not.
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
            self.random.name(MADE_UP_PREFIX)
        } else {
            request.name.clone()
        };
        let state = self.messaging.clients.channel(channel)?;
        let (vhost, vhost_name) = (state.vhost, state.vhost_name.clone());
        let known = self.find_live_queue(vhost, &name);
        let ticket = match known {
            None if request.passive => {
                let error = NoSuchQueue { vhost: vhost_name, queue: name };
                return Err(ResourceError::from(error).into());
            }
            None => self.declare_new(now, channel, &name, request)?,
            Some(id) => {
                self.redeclare_queue(now, channel, id, request)?;
                Ticket::NONE
            }
        };
        self.churn.queues_declared += u64::from(!request.passive);
        let name = QueueName::parse(&name).map_err(|e| InvalidName(e.to_string()))?;
        if let Some(state) = self.messaging.clients.channels.get_mut(channel) {
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
        let id = self.messaging.queues.find(vhost, name.as_str()).ok_or(ChannelGone)?;
        if self.messaging.queues.get(id).is_some_and(|queue| queue.is_runnable) {
            self.messaging.dispatch_before_decision(id, now);
            self.work.spend(self.messaging.take_steps());
        }
        let queue = self.messaging.queues.get(id).ok_or(ChannelGone)?;
        Ok(QueueDeclared {
            name,
            messages: u32::try_from(queue.ready.len()).unwrap_or(u32::MAX),
            consumers: queue.consumers.len() as u32,
            ticket,
        })
    }

    /// Declares a queue again that stands: the declaration has to say the same.
    fn redeclare_queue(
        &mut self,
        now: Timestamp,
        channel: ChannelId,
        id: QueueId,
        request: &DeclareQueue,
    ) -> Result<(), DeclareQueueError> {
        if !request.passive {
            let name =
                self.messaging.queues.get(id).map_or_else(String::new, |q| q.name.to_string());
            self.permit_declare(channel, &name, &request.arguments)?;
        }
        let state = self.messaging.clients.channel(channel)?;
        let connection = state.connection;
        let queue = self.messaging.queues.get_mut(id).ok_or(ChannelGone)?;
        check_lock(queue, connection).map_err(ResourceError::from)?;
        if !request.passive {
            if request.exclusive != queue.is_exclusive() {
                let (vhost, queue) = (queue.vhost_name.clone(), queue.name.clone());
                return Err(ResourceError::from(QueueLocked { vhost, queue }).into());
            }
            check_equivalent(queue, request)?;
        }
        queue.used_at = now;
        Ok(())
    }

    fn declare_new(
        &mut self,
        now: Timestamp,
        channel: ChannelId,
        name: &str,
        request: &DeclareQueue,
    ) -> Result<Ticket, DeclareQueueError> {
        let is_made_up =
            request.name.is_empty() || request.is_imported && name.starts_with(MADE_UP_PREFIX);
        if !is_made_up && name.starts_with(RESERVED_PREFIX) {
            let (kind, name) = (ResourceKind::Queue, name.to_owned());
            return Err(ReservedName { kind, name }.into());
        }
        let parsed = QueueName::parse(name).map_err(|e| InvalidName(e.to_string()))?;
        self.permit_declare(channel, name, &request.arguments)?;
        if self.is_queue_being_deleted(channel, name) {
            let vhost = self.messaging.clients.channel(channel)?.vhost_name.clone();
            let (kind, name) = (ResourceKind::Queue, name.to_owned());
            return Err(BeingDeleted { kind, vhost, name }.into());
        }
        check_arguments(&request.arguments)?;
        let rules = self.queue_rules(channel, name, request)?;
        self.check_queue_limits(channel, request.exclusive)?;
        let Messaging { clients, queues, .. } = &mut self.messaging;
        let state = clients.channel(channel)?;
        let (vhost, vhost_name, connection) =
            (state.vhost, state.vhost_name.clone(), state.connection);
        let id = queues.take_id();
        let owner = request.exclusive.then_some(connection);
        if let Some(connection) = owner.and_then(|owner| clients.connections.get_mut(owner)) {
            connection.exclusive_queues.push(id);
        }
        self.churn.queues_created += 1;
        self.add_queue(NewQueue {
            id,
            name: parsed,
            vhost,
            vhost_name,
            durable: request.durable,
            auto_delete: request.auto_delete,
            owner,
            table: request.arguments.clone(),
            rules,
            created_at: now,
            messages: QueueIndex::new(),
        });
        let queue = self.messaging.queues.get(id).filter(|queue| queue.keeps_messages());
        let written = queue.map(|queue| self.messaging.log.persist(&queue.stored())).is_some();
        let action = || TopologyAction::DeclareQueue(name.to_owned());
        self.note_change(channel, request.exclusive, action);
        Ok(self.messaging.topology_ticket(written))
    }

    /// Puts a queue among the others and makes it routable.
    pub(super) fn add_queue(&mut self, new: NewQueue) {
        let Some(router) = self.routing.router_mut(new.vhost) else {
            return;
        };
        router.add_queue(&new.name, new.id, new.durable && new.owner.is_none());
        self.messaging.queues.add(new);
    }

    /// Checks the permissions of a declaration: configure on the queue; with a dead-letter exchange
    /// also read on the queue and write on the exchange.
    pub(super) fn permit_declare(
        &mut self,
        channel: ChannelId,
        name: &str,
        arguments: &Table,
    ) -> Result<(), ResourceError> {
        let state = self.messaging.clients.channel(channel)?;
        let mut authorize = |operation, kind, name: &str| {
            self.access.authorize(&state.user, &state.vhost_name, operation, kind, name)
        };
        authorize(Operation::Configure, ResourceKind::Queue, name)?;
        let exchange = arguments.get("x-dead-letter-exchange").and_then(|value| value.as_text());
        if let Some(exchange) = exchange {
            authorize(Operation::Read, ResourceKind::Queue, name)?;
            authorize(Operation::Write, ResourceKind::Exchange, exchange)?;
        }
        Ok(())
    }

    fn queue_rules(
        &self,
        channel: ChannelId,
        name: &str,
        request: &DeclareQueue,
    ) -> Result<QueueArguments, DeclareQueueError> {
        let state = self.messaging.clients.channel(channel)?;
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
        let state = self.messaging.clients.channel(channel)?;
        match self.check_queue_count(state.vhost) {
            // Those of connections that are closed count until their turn comes.
            Err(_) if self.removals.has_ownerless() => {
                return Err(MakingRoom { vhost: state.vhost_name.clone() }.into());
            }
            checked => checked?,
        }
        let connection = self.messaging.clients.connection_of(state)?;
        let limit = self.config.exclusive_queues_per_connection_max;
        if exclusive && connection.exclusive_queues.len() >= limit {
            let what = String::from("another exclusive queue of this connection");
            return Err(LimitReached { what, limit }.into());
        }
        Ok(())
    }

    /// Checks whether a virtual host may have another queue.
    pub(super) fn check_queue_count(&self, vhost: VhostId) -> Result<(), LimitReached> {
        let limit = self.config.queues_per_vhost_max;
        let count = self.messaging.queues.in_vhost(vhost).map_or(0, |queues| queues.by_name.len());
        if count < limit {
            return Ok(());
        }
        let name = self.routing.vhost(vhost).map_or("", |vhost| vhost.name.as_str());
        Err(LimitReached { what: format!("another queue in vhost '{name}'"), limit })
    }

    /// Declares the queue of direct replies: it does not exist, but declaring it works, as in
    /// RabbitMQ.
    fn declare_reply_queue(
        &mut self,
        channel: ChannelId,
        name: &str,
    ) -> Result<QueueDeclared, DeclareQueueError> {
        let state = self.messaging.clients.channel_mut(channel)?;
        let vhost = state.vhost_name.clone();
        if name != REPLY_TO && self.messaging.clients.find_reply_consumer(name).is_none() {
            let error = NoSuchQueue { vhost, queue: name.to_owned() };
            return Err(ResourceError::from(error).into());
        }
        let name = QueueName::parse(name).map_err(|e| InvalidName(e.to_string()))?;
        Ok(QueueDeclared { name, messages: 0, consumers: 1, ticket: Ticket::NONE })
    }
}

/// Compares a declaration with the queue that stands, in RabbitMQ's order.
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
