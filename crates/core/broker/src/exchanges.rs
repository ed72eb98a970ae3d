//! Declaring and deleting exchanges: permissions, the router, the log.

use quelea_model::{ExchangeName, Timestamp};
use quelea_store::{Durability, Ticket};

use crate::Broker;
use crate::access::Operation;
use crate::argument_bounds::check_arguments;
use crate::binding::{Binding, Destination, Removed};
use crate::error::{ChannelGone, ExchangeError, InvalidName, NoSuchExchange, ResourceKind};
use crate::exchange::{DeleteExchangeError, ExchangeKind, ExchangeSpec};
use crate::ids::ChannelId;
use crate::request::DeclareExchange;
use crate::topology::{Item, StoredBinding, StoredDestination};
use crate::vhost::VhostId;

impl Broker {
    /// exchange.declare, passive or not. declare-ok leaves when the ticket is reached.
    ///
    /// # Errors
    /// [`ExchangeError`]; nothing has changed then.
    pub fn declare_exchange(
        &mut self,
        _now: Timestamp,
        channel: ChannelId,
        request: &DeclareExchange,
    ) -> Result<Ticket, ExchangeError> {
        let state = self.clients.channels.get(channel.0).ok_or(ChannelGone)?;
        let (user, vhost_id, vhost_name) =
            (state.user.clone(), state.vhost, state.vhost_name.clone());
        let name = ExchangeName::parse(&request.name).map_err(|e| InvalidName(e.to_string()))?;
        let vhost = self.vhosts.get(vhost_id.0).ok_or(ChannelGone)?;
        if request.passive {
            if vhost.router.exchange(&request.name).is_none() {
                let exchange = request.name.clone();
                return Err(NoSuchExchange { vhost: vhost_name, exchange }.into());
            }
            return Ok(Ticket::NONE);
        }
        let kind = ExchangeKind::parse(&request.kind)?;
        let spec = ExchangeSpec {
            name,
            kind,
            durable: request.durable,
            auto_delete: request.auto_delete,
            internal: request.internal,
            arguments: request.arguments.clone(),
        };
        let resource = ResourceKind::Exchange;
        self.permit(&user, &vhost_name, Operation::Configure, resource, &request.name)?;
        if let Some(alternate) = spec.alternate() {
            self.permit(&user, &vhost_name, Operation::Read, resource, &request.name)?;
            self.permit(&user, &vhost_name, Operation::Write, resource, alternate)?;
        }
        check_arguments(&spec.arguments)?;
        let vhost = self.vhosts.get_mut(vhost_id.0).ok_or(ChannelGone)?;
        let is_new = vhost.router.declare(spec.clone())?;
        if !is_new || !spec.durable {
            return Ok(Ticket::NONE);
        }
        self.persist(&Item::Exchange(vhost_name, spec));
        Ok(self.ticket(Durability::Fsync))
    }

    /// exchange.delete. An exchange that is not there is no error, as in RabbitMQ.
    ///
    /// # Errors
    /// [`ExchangeError`]; nothing has changed then.
    pub fn delete_exchange(
        &mut self,
        _now: Timestamp,
        channel: ChannelId,
        name: &str,
        if_unused: bool,
    ) -> Result<Ticket, ExchangeError> {
        let state = self.clients.channels.get(channel.0).ok_or(ChannelGone)?;
        let (user, vhost_id, vhost_name) =
            (state.user.clone(), state.vhost, state.vhost_name.clone());
        self.permit(&user, &vhost_name, Operation::Configure, ResourceKind::Exchange, name)?;
        let vhost = self.vhosts.get_mut(vhost_id.0).ok_or(ChannelGone)?;
        match vhost.router.delete(name, if_unused) {
            Ok(removed) => Ok(self.forget_removed(vhost_id, &removed)),
            Err(DeleteExchangeError::NotFound { .. }) => Ok(Ticket::NONE),
            Err(error) => Err(error.into()),
        }
    }

    /// Deletes from the log what the router has removed.
    pub(crate) fn forget_removed(&mut self, vhost: VhostId, removed: &Removed) -> Ticket {
        let Some(name) = self.vhosts.get(vhost.0).map(|vhost| vhost.name.clone()) else {
            return Ticket::NONE;
        };
        let mut was_durable = false;
        for binding in removed.bindings.iter().filter(|binding| binding.durable) {
            was_durable = true;
            self.unpersist(&Item::Binding(stored(&name, binding)));
        }
        for exchange in removed.exchanges.iter().filter(|exchange| exchange.durable) {
            was_durable = true;
            self.unpersist(&Item::Exchange(name.clone(), exchange.clone()));
        }
        if was_durable { self.ticket(Durability::Fsync) } else { Ticket::NONE }
    }
}

/// A binding as the log keeps it.
pub(crate) fn stored(vhost: &quelea_model::VhostName, binding: &Binding) -> StoredBinding {
    StoredBinding {
        vhost: vhost.clone(),
        source: binding.source.clone(),
        destination: match &binding.destination {
            Destination::Queue(_, name) => StoredDestination::Queue(name.clone()),
            Destination::Exchange(name) => StoredDestination::Exchange(name.clone()),
        },
        key: binding.key.clone(),
        arguments: binding.arguments.clone(),
    }
}
