//! What is done on the core's thread for messages of peers: a batch of them is published, through one
//! connection of the broker for each virtual host.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use quelea_broker::{
    ChannelId, ConnectionId, OpenError, Publish, PublishError, exchange::RouteError,
};
use quelea_node::{Core, InternalClient, LogOnce};
use quelea_store::Ticket;
use tokio::sync::mpsc::UnboundedSender;

use crate::counters::Cause;
use crate::route::Routes;

/// A message as it is published.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing {
    /// The route's number.
    pub(crate) route: usize,
    pub(crate) mailbox: u64,
    /// Wire-shaped.
    pub(crate) properties: Bytes,
    pub(crate) body: Bytes,
}

/// What became of a batch.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) published: u64,
    /// Each with its route, and the broker's words.
    pub(crate) dropped: Vec<Dropped>,
}

/// A message that reached no queue.
#[derive(Debug)]
pub(crate) struct Dropped {
    pub(crate) route: usize,
    pub(crate) cause: Cause,
    pub(crate) reason: String,
}

/// The front's own connections of the broker, by virtual host.
#[derive(Debug)]
pub(crate) struct Publishers {
    user: Arc<str>,
    local: String,
    /// Where the broker's word for them goes.
    effects: UnboundedSender<quelea_broker::Effect>,
    open: HashMap<Arc<str>, (ConnectionId, ChannelId)>,
    log: LogOnce,
}

impl Publishers {
    pub(crate) fn new(
        user: Arc<str>,
        local: String,
        effects: UnboundedSender<quelea_broker::Effect>,
    ) -> Self {
        Self { user, local, effects, open: HashMap::new(), log: LogOnce::default() }
    }

    /// Publishes in order. What was published is safe when the store has reached the ticket. None, and
    /// nothing is published, while the broker has as many connections as it may and none of them
    /// is for a message of these.
    pub(crate) fn publish(
        &mut self,
        core: &mut Core,
        routes: &Routes,
        batch: &[Outgoing],
    ) -> Option<(Outcome, Ticket)> {
        for run in batch.chunk_by(|one, next| one.route == next.route) {
            let vhost = &routes.get(run[0].route).vhost;
            if let Err(error @ OpenError::TooMany { .. }) = self.channel(core, vhost) {
                let reason = error.to_string();
                if self.log.is_new(&reason) {
                    tracing::warn!(reason, "messages of CMQ peers wait for a connection");
                }
                return None;
            }
        }
        self.log.resolved();
        let (mut outcome, mut ticket) = (Outcome::default(), Ticket::NONE);
        for message in batch {
            match self.publish_one(core, routes, message) {
                Ok(promised) => {
                    outcome.published += 1;
                    ticket = ticket.join(promised);
                }
                Err((cause, reason)) => {
                    outcome.dropped.push(Dropped { route: message.route, cause, reason });
                }
            }
        }
        Some((outcome, ticket))
    }

    /// Closes the connection that the broker wants closed; the next message opens another.
    pub(crate) fn close(&mut self, core: &mut Core, connection: ConnectionId) {
        self.open.retain(|_, (open, _)| *open != connection);
        core.detach(connection);
    }

    pub(crate) fn close_all(&mut self, core: &mut Core) {
        for (_, (connection, _)) in self.open.drain() {
            core.detach(connection);
        }
    }

    fn publish_one(
        &mut self,
        core: &mut Core,
        routes: &Routes,
        message: &Outgoing,
    ) -> Result<Ticket, (Cause, String)> {
        let route = routes.get(message.route);
        let channel = self.channel(core, &route.vhost).map_err(open_cause)?;
        let routing_key = route.routing_key.key(message.mailbox);
        let publish = Publish {
            exchange: &route.exchange,
            routing_key: &routing_key,
            properties: &message.properties,
            body: message.body.clone(),
            mandatory: false,
            confirm: true,
        };
        let now = core.now();
        let published = core.broker.publish(now, channel, publish).map_err(publish_cause)?;
        if !published.routed {
            let exchange = &route.exchange;
            let reason = format!("no queue for key '{routing_key}' of exchange '{exchange}'");
            return Err((Cause::Unroutable, reason));
        }
        if published.rejected {
            let reason = format!("a queue for key '{routing_key}' is full and refuses");
            return Err((Cause::QueueFull, reason));
        }
        Ok(published.ticket)
    }

    fn channel(&mut self, core: &mut Core, vhost: &Arc<str>) -> Result<ChannelId, OpenError> {
        if let Some((_, channel)) = self.open.get(vhost) {
            return Ok(*channel);
        }
        let client = inside(&self.user, vhost, &self.local, "CMQ publisher");
        let (connection, channel) = core.open_internal(client, self.effects.clone())?;
        self.open.insert(Arc::clone(vhost), (connection, channel));
        Ok(channel)
    }
}

/// Returns a client of the front as the broker shows it.
pub(crate) const fn inside<'a>(
    user: &'a str,
    vhost: &'a str,
    local: &'a str,
    name: &'a str,
) -> InternalClient<'a> {
    InternalClient { user, vhost, local, name, protocol: "CMQ 1" }
}

fn open_cause(error: OpenError) -> (Cause, String) {
    let cause = match error {
        OpenError::NoSuchVhost { .. } => Cause::NoVhost,
        _ => Cause::Refused,
    };
    (cause, error.to_string())
}

fn publish_cause(error: PublishError) -> (Cause, String) {
    let cause = match &error {
        PublishError::AccessRefused(_) | PublishError::InternalExchange { .. } => Cause::Refused,
        PublishError::Route(RouteError::NoSuchExchange { .. }) => Cause::NoExchange,
        _ => Cause::Invalid,
    };
    (cause, error.to_string())
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs;

    use quelea_broker::BrokerConfig;
    use quelea_node::{DataDir, Node, NodeConfig};
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;
    use crate::route::{Mailboxes, Route};

    /// Starts a node that takes one connection.
    pub(crate) fn node(directory: &std::path::Path) -> Node {
        let broker = BrokerConfig { connections_max: 1, ..BrokerConfig::default() };
        let config = NodeConfig { broker, ..NodeConfig::of_test(directory.to_owned()) };
        let data = DataDir::lock(&config.data_dir).unwrap();
        Node::start(config, data).unwrap()
    }

    /// Returns a route to an exchange that has no queue.
    pub(crate) fn route(vhost: &str) -> Route {
        Route {
            mailboxes: Mailboxes::ALL,
            vhost: vhost.into(),
            exchange: "amq.fanout".into(),
            routing_key: "any".parse().unwrap(),
            persistent: false,
        }
    }

    pub(crate) fn outgoing(route: usize) -> Outgoing {
        let body = Bytes::from_static(b"hello");
        Outgoing { route, mailbox: 7, properties: Bytes::new(), body }
    }

    #[tokio::test]
    async fn what_finds_no_connection_waits_for_one() {
        let name = format!("quelea-cmq-front-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let node = node(&directory);
        let counts = node.handle().call(|core| {
            let (effects, _effects) = unbounded_channel();
            let other = inside("guest", "/", "here", "another client");
            let (other, _) = core.open_internal(other, effects.clone()).unwrap();
            let routes = Routes::new(Vec::new(), route("/"));
            let batch = [outgoing(0)];
            let mut publishers = Publishers::new("guest".into(), "here".to_owned(), effects);
            let waits = publishers.publish(core, &routes, &batch).is_none();
            core.detach(other);
            let published = publishers.publish(core, &routes, &batch);
            publishers.close_all(core);
            (waits, published.map(|(outcome, _)| outcome.dropped))
        });
        let (waits, dropped) = counts.await.unwrap();
        assert!(waits, "there is no connection for it");
        // Nothing is bound.
        let causes: Vec<_> = dropped.unwrap().iter().map(|dropped| dropped.cause).collect();
        assert_eq!(causes, [Cause::Unroutable]);
        node.handle().call(|core| core.begin_stop()).await.unwrap();
        let _ = node.join();
        fs::remove_dir_all(&directory).unwrap();
    }
}
