//! Binding queues and exchanges to exchanges: permissions, the router, the log.

use quelea_model::{ExchangeName, Timestamp};
use quelea_store::Ticket;

use super::Broker;
use super::find_queue::FindQueueError;
use crate::access::Operation;
use crate::argument_bounds::check_arguments;
use crate::error::{BindingError, ChannelGone, ResourceKind};
use crate::ids::ChannelId;
use crate::request::{ExchangeBinding, QueueBinding};
use crate::routing::BindRequest;
use crate::routing::binding::{BindError, Destination};
use crate::routing::exchange::ExchangeKind;

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
        let name = self.messaging.queues.get(id).ok_or(ChannelGone)?.name.clone();
        let key = binding_key(request, name.as_str()).to_owned();
        self.permit_source(channel, &request.exchange, &key)?;
        let destination = Destination::Queue(id, name);
        let (source, arguments) = (request.exchange.as_str(), &request.arguments);
        self.bind(channel, &BindRequest { source, destination, key: &key, arguments })
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
        let name = self.messaging.queues.get(id).ok_or(ChannelGone)?.name.clone();
        let key = binding_key(request, name.as_str()).to_owned();
        self.permit_source(channel, &request.exchange, &key)?;
        let destination = Destination::Queue(id, name);
        let (source, arguments) = (request.exchange.as_str(), &request.arguments);
        self.unbind(channel, &BindRequest { source, destination, key: &key, arguments })
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
        self.bind(channel, &BindRequest { source, destination, key, arguments })
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
        self.unbind(channel, &BindRequest { source, destination, key, arguments })
    }

    fn exchange_destination(
        &mut self,
        channel: ChannelId,
        request: &ExchangeBinding,
    ) -> Result<Destination, BindingError> {
        let state = self.messaging.clients.channel(channel)?;
        let (kind, destination) = (ResourceKind::Exchange, request.destination.as_str());
        let vhost = &state.vhost_name;
        self.access.authorize(&state.user, vhost, Operation::Write, kind, destination)?;
        self.permit_source(channel, &request.source, &request.routing_key)?;
        match ExchangeName::parse(destination) {
            Ok(name) => Ok(Destination::Exchange(name)),
            // What is not a name names nothing.
            Err(_) => {
                let vhost = self.messaging.clients.channel(channel)?.vhost_name.clone();
                Err(BindError::NoSuchExchange { exchange: Box::from(destination), vhost }.into())
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
        let clients = &self.messaging.clients;
        let state = clients.channel(channel)?;
        let (user, vhost, operation) = (&state.user, &state.vhost_name, Operation::Read);
        self.access.authorize(user, vhost, operation, ResourceKind::Exchange, source)?;
        let router = self.routing.router(state.vhost).ok_or(ChannelGone)?;
        if router.exchange(source).is_some_and(|spec| spec.kind == ExchangeKind::Topic) {
            let client_id = clients.client_id(state);
            self.access.authorize_topic(user, vhost, operation, source, key, client_id)?;
        }
        Ok(())
    }

    fn bind(
        &mut self,
        channel: ChannelId,
        request: &BindRequest<'_>,
    ) -> Result<Ticket, BindingError> {
        check_arguments(request.arguments)?;
        let vhost = self.messaging.clients.channel(channel)?.vhost;
        let written = self.routing.bind(&mut self.messaging.log, vhost, request)?;
        Ok(self.messaging.topology_ticket(written))
    }

    fn unbind(
        &mut self,
        channel: ChannelId,
        request: &BindRequest<'_>,
    ) -> Result<Ticket, BindingError> {
        let vhost = self.messaging.clients.channel(channel)?.vhost;
        let written = self.routing.unbind(&mut self.messaging.log, vhost, request)?;
        Ok(self.messaging.topology_ticket(written))
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
