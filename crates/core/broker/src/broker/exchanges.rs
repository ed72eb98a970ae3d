//! Declaring and deleting exchanges: permissions, the router, the log.

use quelea_model::{ExchangeName, Timestamp};
use quelea_store::Ticket;

use super::Broker;
use crate::access::Operation;
use crate::argument_bounds::check_arguments;
use crate::error::{
    BeingDeleted, ChannelGone, ExchangeError, InvalidName, MakingRoom, NoSuchExchange, ResourceKind,
};
use crate::ids::ChannelId;
use crate::request::DeclareExchange;
use crate::routing::exchange::{ExchangeKind, ExchangeSpec};
use crate::routing::router::Router;
use crate::topology_changes::TopologyAction;

impl Broker {
    /// Declares an exchange (exchange.declare), passive or not. declare-ok leaves when the ticket
    /// is reached.
    ///
    /// # Errors
    /// [`ExchangeError`]; nothing has changed then.
    pub fn declare_exchange(
        &mut self,
        _now: Timestamp,
        channel: ChannelId,
        request: &DeclareExchange,
    ) -> Result<Ticket, ExchangeError> {
        let state = self.messaging.clients.channel(channel)?;
        let vhost = state.vhost;
        let name = ExchangeName::parse(&request.name).map_err(|e| InvalidName(e.to_string()))?;
        if request.passive {
            let router = self.routing.router(vhost).ok_or(ChannelGone)?;
            if router.exchange(&request.name).is_none() {
                let exchange = request.name.clone();
                return Err(NoSuchExchange { vhost: state.vhost_name.clone(), exchange }.into());
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
        let mut authorize = |operation, name: &str| {
            let (user, vhost) = (&state.user, &state.vhost_name);
            self.access.authorize(user, vhost, operation, ResourceKind::Exchange, name)
        };
        authorize(Operation::Configure, &request.name)?;
        if let Some(alternate) = spec.alternate() {
            authorize(Operation::Read, &request.name)?;
            authorize(Operation::Write, alternate)?;
        }
        check_arguments(&spec.arguments)?;
        if self.removals.holds_exchange_name(vhost, &request.name) {
            let (kind, vhost) = (ResourceKind::Exchange, state.vhost_name.clone());
            return Err(BeingDeleted { kind, vhost, name: request.name.clone() }.into());
        }
        let is_new = |router: &Router| router.exchange(&request.name).is_none();
        let is_new = self.routing.router(vhost).is_some_and(is_new);
        match self.routing.declare_exchange(&mut self.messaging.log, vhost, spec) {
            Ok(written) => {
                if is_new {
                    let action = || TopologyAction::DeclareExchange(request.name.clone());
                    self.note_change(channel, false, action);
                }
                Ok(self.messaging.topology_ticket(written))
            }
            Err(ExchangeError::TooMany { vhost: name, .. }) if self.routing.is_removing(vhost) => {
                Err(MakingRoom { vhost: name }.into())
            }
            Err(error) => Err(error),
        }
    }

    /// Deletes an exchange (exchange.delete). It is gone at once for everybody; its bindings leave
    /// the log over as many turns as that takes. An exchange that is not there is no error, as in
    /// RabbitMQ.
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
        let state = self.messaging.clients.channel(channel)?;
        let (kind, vhost) = (ResourceKind::Exchange, state.vhost);
        self.access.authorize(&state.user, &state.vhost_name, Operation::Configure, kind, name)?;
        let deleted = self.routing.delete_exchange(&mut self.messaging.log, vhost, name, if_unused);
        self.remove_exchanges(vhost);
        match deleted {
            Ok(written) => {
                self.note_change(channel, false, || {
                    TopologyAction::DeleteExchange(name.to_owned())
                });
                Ok(self.messaging.topology_ticket(written))
            }
            Err(ExchangeError::NoSuchExchange(_)) => Ok(Ticket::NONE),
            Err(error) => Err(error),
        }
    }
}
