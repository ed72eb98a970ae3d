//! Binding queues and exchanges to exchanges: permissions, the router, the log.

use std::borrow::Cow;

use quelea_model::{ExchangeName, QueueId, Timestamp};
use quelea_store::Ticket;

use super::Broker;
use crate::access::Operation;
use crate::argument_bounds::check_arguments;
use crate::error::{
    BindingError, ChannelGone, MakingRoom, NoSuchExchange, ResourceError, ResourceKind,
};
use crate::ids::ChannelId;
use crate::request::{ExchangeBinding, QueueBinding};
use crate::routing::BindRequest;
use crate::routing::binding::Destination;
use crate::routing::exchange::ExchangeKind;
use crate::routing::router::Router;
use crate::topology_changes::TopologyAction;

impl Broker {
    /// Binds a queue to an exchange (queue.bind). bind-ok leaves when the ticket is reached.
    ///
    /// # Errors
    /// [`BindingError`]; nothing has changed then.
    pub fn bind_queue(
        &mut self,
        _now: Timestamp,
        channel: ChannelId,
        request: &QueueBinding,
    ) -> Result<Ticket, BindingError> {
        let (queue, request) = self.queue_bind_request(channel, request)?;
        // What is not there is said before whose the queue is, as in RabbitMQ.
        if self.router_of(channel)?.exchange(request.source).is_some() {
            self.check_lock(channel, queue)?;
        }
        self.bind(channel, &request)
    }

    /// Removes a binding of a queue (queue.unbind). A binding, exchange or queue that is not there
    /// is no error, as in RabbitMQ.
    ///
    /// # Errors
    /// [`BindingError`]; nothing has changed then.
    pub fn unbind_queue(
        &mut self,
        _now: Timestamp,
        channel: ChannelId,
        request: &QueueBinding,
    ) -> Result<Ticket, BindingError> {
        let (queue, request) = match self.queue_bind_request(channel, request) {
            Ok(found) => found,
            Err(ResourceError::NoSuchQueue(_)) => return Ok(Ticket::NONE),
            Err(error) => return Err(error.into()),
        };
        let BindRequest { source, key, arguments, .. } = &request;
        if self.router_of(channel)?.is_bound(source, queue, key, arguments) {
            self.check_lock(channel, queue)?;
        }
        self.unbind(channel, &request)
    }

    /// Binds an exchange to another one (exchange.bind). bind-ok leaves when the ticket is reached.
    ///
    /// # Errors
    /// [`BindingError`]; nothing has changed then.
    pub fn bind_exchange(
        &mut self,
        _now: Timestamp,
        channel: ChannelId,
        request: &ExchangeBinding,
    ) -> Result<Ticket, BindingError> {
        let request = self.exchange_bind_request(channel, request)?;
        self.bind(channel, &request)
    }

    /// Removes a binding of an exchange (exchange.unbind). A binding or exchange that is not there
    /// is no error, as in RabbitMQ.
    ///
    /// # Errors
    /// [`BindingError`]; nothing has changed then.
    pub fn unbind_exchange(
        &mut self,
        _now: Timestamp,
        channel: ChannelId,
        request: &ExchangeBinding,
    ) -> Result<Ticket, BindingError> {
        let request = self.exchange_bind_request(channel, request)?;
        self.unbind(channel, &request)
    }

    /// Checks the permissions for what [`QueueBinding`] asks for, of whichever connection's queue,
    /// and returns that. An empty key together with an empty queue name stands for the queue's name
    /// (AMQP 0-9-1, queue.bind, routing-key).
    fn queue_bind_request<'a>(
        &mut self,
        channel: ChannelId,
        request: &'a QueueBinding,
    ) -> Result<(QueueId, BindRequest<'a>), ResourceError> {
        let id = self.find_permitted_queue(channel, &request.queue, Operation::Write)?;
        let name = self.messaging.queues.get(id).ok_or(ChannelGone)?.name.clone();
        let key = match request.queue.is_empty() && request.routing_key.is_empty() {
            true => Cow::Owned(name.to_string()),
            false => Cow::Borrowed(request.routing_key.as_str()),
        };
        self.permit_source(channel, &request.exchange, &key)?;
        let destination = Destination::Queue(id, name);
        let (source, arguments) = (request.exchange.as_str(), &request.arguments);
        Ok((id, BindRequest { source, destination, key, arguments }))
    }

    /// Checks the permissions for what [`ExchangeBinding`] asks for, and returns that.
    fn exchange_bind_request<'a>(
        &mut self,
        channel: ChannelId,
        request: &'a ExchangeBinding,
    ) -> Result<BindRequest<'a>, ResourceError> {
        let state = self.messaging.clients.channel(channel)?;
        let (kind, destination) = (ResourceKind::Exchange, request.destination.as_str());
        let vhost = state.vhost_name.clone();
        self.access.authorize(&state.user, &vhost, Operation::Write, kind, destination)?;
        let (source, key) = (request.source.as_str(), request.routing_key.as_str());
        self.permit_source(channel, source, key)?;
        // What is not a name names nothing.
        let destination = ExchangeName::parse(destination)
            .map_err(|_| NoSuchExchange { vhost, exchange: destination.to_owned() })?;
        let (destination, key) = (Destination::Exchange(destination), Cow::Borrowed(key));
        Ok(BindRequest { source, destination, key, arguments: &request.arguments })
    }

    /// Checks the permission to read on the exchange that messages come from, and on the topic if
    /// it is a topic exchange.
    fn permit_source(
        &mut self,
        channel: ChannelId,
        source: &str,
        key: &str,
    ) -> Result<(), ResourceError> {
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

    fn router_of(&self, channel: ChannelId) -> Result<&Router, ChannelGone> {
        self.routing.router(self.messaging.clients.channel(channel)?.vhost).ok_or(ChannelGone)
    }

    fn bind(
        &mut self,
        channel: ChannelId,
        request: &BindRequest<'_>,
    ) -> Result<Ticket, BindingError> {
        check_arguments(request.arguments)?;
        let vhost = self.messaging.clients.channel(channel)?.vhost;
        match self.routing.bind(&mut self.messaging.log, vhost, request) {
            Ok(changed) => {
                if changed.is_any {
                    self.note_binding_change(channel, request, TopologyAction::Bind);
                }
                Ok(self.messaging.topology_ticket(changed.is_written))
            }
            // What is being removed counts until it is gone, or there would be no limit to it.
            Err(
                BindingError::TooMany { vhost: name }
                | BindingError::Topic { vhost: name, .. }
                | BindingError::HeadersSteps { vhost: name, .. },
            ) if self.routing.is_removing(vhost) => Err(MakingRoom { vhost: name }.into()),
            Err(error) => Err(error),
        }
    }

    fn unbind(
        &mut self,
        channel: ChannelId,
        request: &BindRequest<'_>,
    ) -> Result<Ticket, BindingError> {
        let vhost = self.messaging.clients.channel(channel)?.vhost;
        let changed = self.routing.unbind(&mut self.messaging.log, vhost, request)?;
        if changed.is_any {
            self.note_binding_change(channel, request, TopologyAction::Unbind);
        }
        self.remove_exchanges(vhost);
        Ok(self.messaging.topology_ticket(changed.is_written))
    }
}
