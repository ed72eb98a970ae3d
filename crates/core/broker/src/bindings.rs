//! Binding queues and exchanges to exchanges: permissions, the router, the log.

use quelea_model::{ExchangeName, Table, Timestamp};
use quelea_store::{Durability, Ticket};

use crate::Broker;
use crate::access::Operation;
use crate::argument_bounds::check_arguments;
use crate::binding::{BindError, Destination};
use crate::error::{BindingError, ChannelGone, ResourceKind};
use crate::exchange::ExchangeKind;
use crate::exchanges::stored;
use crate::find_queue::FindQueueError;
use crate::ids::ChannelId;
use crate::request::{ExchangeBinding, QueueBinding};
use crate::topology::Item;

/// What is asked of the router.
struct Edge<'a> {
    source: &'a str,
    destination: Destination,
    key: &'a str,
    arguments: &'a Table,
}

impl Broker {
    /// queue.bind. bind-ok leaves when the ticket is reached.
    ///
    /// # Errors
    /// [`BindingError`]; nothing has changed then.
    pub fn bind_queue(
        &mut self,
        _now: Timestamp,
        channel: ChannelId,
        request: &QueueBinding,
    ) -> Result<Ticket, BindingError> {
        let id = self.find_queue(channel, &request.queue, Operation::Write)?;
        let name = self.queues.get(&id).ok_or(ChannelGone)?.name.clone();
        let key = binding_key(request, name.as_str()).to_owned();
        self.permit_source(channel, &request.exchange, &key)?;
        let destination = Destination::Queue(id, name);
        let (source, arguments) = (request.exchange.as_str(), &request.arguments);
        self.bind(channel, &Edge { source, destination, key: &key, arguments })
    }

    /// queue.unbind. A binding, exchange or queue that is not there is no error, as in RabbitMQ.
    ///
    /// # Errors
    /// [`BindingError`]; nothing has changed then.
    pub fn unbind_queue(
        &mut self,
        _now: Timestamp,
        channel: ChannelId,
        request: &QueueBinding,
    ) -> Result<Ticket, BindingError> {
        let id = match self.find_queue(channel, &request.queue, Operation::Write) {
            Ok(id) => id,
            Err(FindQueueError::NoSuchQueue(_)) => return Ok(Ticket::NONE),
            Err(error) => return Err(error.into()),
        };
        let name = self.queues.get(&id).ok_or(ChannelGone)?.name.clone();
        let key = binding_key(request, name.as_str()).to_owned();
        self.permit_source(channel, &request.exchange, &key)?;
        let destination = Destination::Queue(id, name);
        let (source, arguments) = (request.exchange.as_str(), &request.arguments);
        self.unbind(channel, &Edge { source, destination, key: &key, arguments })
    }

    /// exchange.bind. bind-ok leaves when the ticket is reached.
    ///
    /// # Errors
    /// [`BindingError`]; nothing has changed then.
    pub fn bind_exchange(
        &mut self,
        _now: Timestamp,
        channel: ChannelId,
        request: &ExchangeBinding,
    ) -> Result<Ticket, BindingError> {
        let destination = self.exchange_destination(channel, request)?;
        let source = request.source.as_str();
        let (key, arguments) = (request.routing_key.as_str(), &request.arguments);
        self.bind(channel, &Edge { source, destination, key, arguments })
    }

    /// exchange.unbind. A binding or exchange that is not there is no error, as in RabbitMQ.
    ///
    /// # Errors
    /// [`BindingError`]; nothing has changed then.
    pub fn unbind_exchange(
        &mut self,
        _now: Timestamp,
        channel: ChannelId,
        request: &ExchangeBinding,
    ) -> Result<Ticket, BindingError> {
        let destination = self.exchange_destination(channel, request)?;
        let source = request.source.as_str();
        let (key, arguments) = (request.routing_key.as_str(), &request.arguments);
        self.unbind(channel, &Edge { source, destination, key, arguments })
    }

    fn exchange_destination(
        &mut self,
        channel: ChannelId,
        request: &ExchangeBinding,
    ) -> Result<Destination, BindingError> {
        let state = self.clients.channels.get(channel.0).ok_or(ChannelGone)?;
        let (user, vhost) = (state.user.clone(), state.vhost_name.clone());
        let resource = ResourceKind::Exchange;
        self.permit(&user, &vhost, Operation::Write, resource, &request.destination)?;
        self.permit_source(channel, &request.source, &request.routing_key)?;
        match ExchangeName::parse(&request.destination) {
            Ok(name) => Ok(Destination::Exchange(name)),
            // What is not a name names nothing.
            Err(_) => {
                let exchange = Box::from(request.destination.as_str());
                Err(BindError::NoSuchExchange { exchange, vhost }.into())
            }
        }
    }

    /// Read on the exchange that messages come from, and on the topic if it is a topic exchange.
    fn permit_source(
        &mut self,
        channel: ChannelId,
        source: &str,
        key: &str,
    ) -> Result<(), BindingError> {
        let state = self.clients.channels.get(channel.0).ok_or(ChannelGone)?;
        let (user, vhost_id, vhost) = (state.user.clone(), state.vhost, state.vhost_name.clone());
        self.permit(&user, &vhost, Operation::Read, ResourceKind::Exchange, source)?;
        let router = &self.vhosts.get(vhost_id.0).ok_or(ChannelGone)?.router;
        if router.exchange(source).is_some_and(|spec| spec.kind == ExchangeKind::Topic) {
            self.permit_topic(channel, &user, &vhost, Operation::Read, source, key)?;
        }
        Ok(())
    }

    fn bind(&mut self, channel: ChannelId, edge: &Edge<'_>) -> Result<Ticket, BindingError> {
        check_arguments(edge.arguments)?;
        let state = self.clients.channels.get(channel.0).ok_or(ChannelGone)?;
        let vhost = self.vhosts.get_mut(state.vhost.0).ok_or(ChannelGone)?;
        let new = vhost.router.bind(edge.source, &edge.destination, edge.key, edge.arguments)?;
        let Some(binding) = new.filter(|binding| binding.durable) else {
            return Ok(Ticket::NONE);
        };
        let item = Item::Binding(stored(&vhost.name, &binding));
        self.persist(&item);
        Ok(self.ticket(Durability::Fsync))
    }

    fn unbind(&mut self, channel: ChannelId, edge: &Edge<'_>) -> Result<Ticket, BindingError> {
        let state = self.clients.channels.get(channel.0).ok_or(ChannelGone)?;
        let vhost_id = state.vhost;
        let vhost = self.vhosts.get_mut(vhost_id.0).ok_or(ChannelGone)?;
        let removed =
            vhost.router.unbind(edge.source, &edge.destination, edge.key, edge.arguments)?;
        Ok(self.forget_removed(vhost_id, &removed))
    }
}

/// An empty key together with an empty queue name stands for the queue's name (AMQP 0-9-1,
/// queue.bind, routing-key).
fn binding_key<'a>(request: &'a QueueBinding, queue: &'a str) -> &'a str {
    if request.queue.is_empty() && request.routing_key.is_empty() {
        queue
    } else {
        &request.routing_key
    }
}
