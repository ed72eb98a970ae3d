//! From a publisher to queues: what is permitted, where it goes, what is promised.

use std::borrow::Cow;
use std::sync::Arc;

use quelea_model::limits::TTL_MS_MAX;
use quelea_model::properties::PropertyError;
use quelea_model::{Message, Properties, PropertyView, QueueId, Timestamp, without_bcc};
use quelea_store::Ticket;

use super::Broker;
use crate::access::Operation;
use crate::clients::reply_to::{REPLY_KEY_PREFIX, REPLY_TO};
use crate::error::{ChannelGone, NoSuchExchange, PublishError, ResourceKind};
use crate::ids::ChannelId;
use crate::messaging::MessageOptions;
use crate::reply::Published;
use crate::request::Publish;
use crate::routing::exchange::targets::ExchangeKey;
use crate::routing::exchange::{ExchangeKind, RouteError};
use crate::routing::route_cache::Route as FoundRoute;

/// Where a message goes.
enum PublishTarget {
    /// These queues, by way of the exchange, which is counted unless it is gone by now.
    Queues(Option<ExchangeKey>, Arc<[QueueId]>),
    /// The channel that asked for a direct reply; `None` if it is gone.
    Reply(Option<ChannelId>),
}

impl From<FoundRoute> for PublishTarget {
    #[inline]
    fn from(route: FoundRoute) -> Self {
        Self::Queues(Some(route.exchange), route.queues)
    }
}

/// Where a message was found to go that is published later.
#[derive(Clone, Debug)]
pub struct PublishRoute(Route);

#[derive(Clone, Debug)]
enum Route {
    Queues(Arc<[QueueId]>),
    Reply,
}

impl PublishRoute {
    /// Returns how many queues it leads to.
    #[must_use]
    pub fn len(&self) -> usize {
        self.queues().len()
    }

    /// Returns whether it leads to no queue.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queues().is_empty()
    }

    pub(super) fn queues(&self) -> &[QueueId] {
        match &self.0 {
            Route::Queues(queues) => queues,
            Route::Reply => &[],
        }
    }
}

impl Broker {
    /// Takes a message.
    ///
    /// # Errors
    /// [`PublishError`]; the message is then nowhere.
    pub fn publish(
        &mut self,
        now: Timestamp,
        channel: ChannelId,
        publish: Publish<'_>,
    ) -> Result<Published, PublishError> {
        let view = PropertyView::new(publish.properties);
        let has_headers = view.has_headers();
        let target =
            self.publish_target(channel, publish.exchange, publish.routing_key, view, has_headers)?;
        self.publish_to(now, channel, publish, target, has_headers)
    }

    /// Takes a message whose way [`Broker::check_publish`] has found.
    ///
    /// # Errors
    /// As [`Broker::publish`], but for what is wrong with its way.
    pub fn publish_routed(
        &mut self,
        now: Timestamp,
        channel: ChannelId,
        publish: Publish<'_>,
        route: PublishRoute,
    ) -> Result<Published, PublishError> {
        let has_headers = PropertyView::new(publish.properties).has_headers();
        let target = match route.0 {
            Route::Reply => {
                let clients = &self.messaging.clients;
                PublishTarget::Reply(clients.find_reply_consumer(publish.routing_key))
            }
            Route::Queues(queues) => {
                let is_there = |id: &QueueId| self.messaging.queues.get(*id).is_some();
                let all_there = queues.iter().all(is_there);
                let left = || queues.iter().copied().filter(is_there).collect();
                let queues = if all_there { queues } else { left() };
                let vhost = self.messaging.clients.channel(channel)?.vhost;
                let router = self.routing.router(vhost).ok_or(ChannelGone)?;
                PublishTarget::Queues(router.exchange_key(publish.exchange), queues)
            }
        };
        self.publish_to(now, channel, publish, target, has_headers)
    }

    #[inline]
    fn publish_to(
        &mut self,
        now: Timestamp,
        channel: ChannelId,
        publish: Publish<'_>,
        target: PublishTarget,
        has_headers: bool,
    ) -> Result<Published, PublishError> {
        let options = self.message_options(channel, publish.properties)?;
        let properties = self.outgoing_properties(channel, publish.properties, has_headers)?;
        let (from, queues) = match target {
            PublishTarget::Queues(from, queues) => (from, queues),
            PublishTarget::Reply(to) => {
                let key = publish.routing_key;
                let message = Message::new(publish.exchange, key, &properties, publish.body);
                let routed = to.is_some_and(|to| self.messaging.reply(to, message));
                self.count_published(channel, None, usize::from(routed), publish.mandatory);
                return Ok(Published { ticket: Ticket::NONE, routed, rejected: false });
            }
        };
        self.count_published(channel, from, queues.len(), publish.mandatory);
        if queues.is_empty() {
            return Ok(Published { ticket: Ticket::NONE, routed: false, rejected: false });
        }
        let Publish { exchange, routing_key, body, .. } = publish;
        let message = match queues.len() {
            1 => Message::new(exchange, routing_key, &properties, body),
            _ => {
                let bodies = &self.messaging.queues.memory.shared_bodies;
                Message::new_shared(exchange, routing_key, &properties, body, bodies)
            }
        };
        let message = Arc::new(message);
        let enqueued = self.messaging.enqueue(now, &queues, &message, options);
        self.messaging.counters.enqueued += enqueued.taken as u64;
        self.work.spend(self.messaging.take_steps());
        if let Some(queue) = enqueued.slowed_by {
            self.messaging.slow_down(channel, queue);
        }
        let ticket =
            if publish.confirm { self.messaging.ticket(enqueued.durability) } else { Ticket::NONE };
        Ok(Published { ticket, routed: true, rejected: enqueued.rejected })
    }

    /// Counts a publish, and what became of it. What is counted is where the message's way has led anyway.
    #[inline]
    fn count_published(
        &mut self,
        channel: ChannelId,
        exchange: Option<ExchangeKey>,
        queues: usize,
        mandatory: bool,
    ) {
        let Self { messaging, routing, .. } = self;
        let mut channel = messaging.clients.channels.get_mut(channel);
        if let (Some(channel), Some(exchange)) = (&channel, exchange)
            && let Some(router) = routing.router_mut(channel.vhost)
        {
            router.count_publish(exchange, queues);
        }
        let of_channel = channel.as_mut().map(|channel| &mut channel.counters);
        for counters in [Some(&mut messaging.counters), of_channel].into_iter().flatten() {
            counters.publish += 1;
            match (queues, mandatory) {
                (1.., _) => {}
                (0, true) => counters.return_unroutable += 1,
                (0, false) => counters.drop_unroutable += 1,
            }
        }
    }

    /// Checks everything that [`Broker::publish`] would refuse, without publishing: for a
    /// transaction, whose messages are published at its end. Returns where the message would go.
    ///
    /// # Errors
    /// As `publish`.
    pub fn check_publish(
        &mut self,
        channel: ChannelId,
        exchange: &str,
        routing_key: &str,
        properties: &[u8],
    ) -> Result<PublishRoute, PublishError> {
        let view = PropertyView::new(properties);
        let has_headers = view.has_headers();
        let target = self.publish_target(channel, exchange, routing_key, view, has_headers)?;
        self.check_properties(channel, properties)?;
        Ok(PublishRoute(match target {
            PublishTarget::Queues(_, queues) => Route::Queues(queues),
            PublishTarget::Reply(_) => Route::Reply,
        }))
    }

    /// Checks a message's properties for what [`Broker::publish`] would refuse.
    pub(super) fn check_properties(
        &self,
        channel: ChannelId,
        properties: &[u8],
    ) -> Result<(), PublishError> {
        self.message_options(channel, properties)?;
        let has_headers = PropertyView::new(properties).has_headers();
        self.outgoing_properties(channel, properties, has_headers)?;
        Ok(())
    }

    /// Returns the queues of a message. Mostly those of the channel's last one: then this is a
    /// comparison.
    #[inline]
    fn publish_target(
        &mut self,
        channel: ChannelId,
        exchange: &str,
        routing_key: &str,
        view: PropertyView<'_>,
        has_headers: bool,
    ) -> Result<PublishTarget, PublishError> {
        let state = self.messaging.clients.channel(channel)?;
        let router = self.routing.router_mut(state.vhost).ok_or(ChannelGone)?;
        let epochs = (router.epoch(), self.access.accounts.epoch());
        let known = state.last_route.find(exchange, routing_key, epochs.0, epochs.1);
        match known {
            Some(route) if !has_headers => return Ok(route.clone().into()),
            // Permitted, but the headers may say something about the way.
            Some(_) => {
                let route = router.route(exchange, routing_key, view)?;
                self.work.spend(router.take_steps());
                return Ok(route.into());
            }
            None => {}
        }
        self.permit_publish(channel, exchange, routing_key)?;
        if exchange.is_empty() && routing_key.starts_with(REPLY_KEY_PREFIX) {
            let consumer = self.messaging.clients.find_reply_consumer(routing_key);
            return Ok(PublishTarget::Reply(consumer));
        }
        let state = self.messaging.clients.channel_mut(channel)?;
        let router = self.routing.router_mut(state.vhost).ok_or(ChannelGone)?;
        let route = router.route(exchange, routing_key, view)?;
        self.work.spend(router.take_steps());
        if !has_headers {
            state.last_route.remember(exchange, routing_key, epochs.0, epochs.1, route.clone());
        }
        Ok(route.into())
    }

    /// Checks in RabbitMQ's order: the permission, the exchange's existence, internal, the topic.
    fn permit_publish(
        &mut self,
        channel: ChannelId,
        exchange: &str,
        routing_key: &str,
    ) -> Result<(), PublishError> {
        let clients = &self.messaging.clients;
        let state = clients.channel(channel)?;
        let (user, vhost, operation) = (&state.user, &state.vhost_name, Operation::Write);
        self.access.authorize(user, vhost, operation, ResourceKind::Exchange, exchange)?;
        let router = self.routing.router(state.vhost).ok_or(ChannelGone)?;
        let Some(spec) = router.exchange(exchange) else {
            let (exchange, vhost) = (exchange.to_owned(), vhost.clone());
            return Err(RouteError::from(NoSuchExchange { vhost, exchange }).into());
        };
        if spec.internal {
            let vhost = vhost.clone();
            return Err(PublishError::InternalExchange { vhost, exchange: exchange.to_owned() });
        }
        if spec.kind == ExchangeKind::Topic {
            let client_id = clients.client_id(state);
            let access = &mut self.access;
            access.authorize_topic(user, vhost, operation, exchange, routing_key, client_id)?;
        }
        Ok(())
    }

    /// Checks what the properties say about the message's life, and returns that.
    #[inline]
    fn message_options(
        &self,
        channel: ChannelId,
        properties: &[u8],
    ) -> Result<MessageOptions, PublishError> {
        match properties {
            // The common shapes of a fast publisher: nothing, or a delivery mode alone.
            [0, 0] => return Ok(MessageOptions::default()),
            [0x10, 0, mode] => {
                return Ok(MessageOptions { persistent: *mode == 2, ..MessageOptions::default() });
            }
            _ => {}
        }
        let view = PropertyView::new(properties);
        if let Some(user_id) = view.user_id() {
            self.check_user_id(channel, user_id)?;
        }
        Ok(MessageOptions {
            persistent: view.is_persistent(),
            priority: view.priority().unwrap_or(0),
            ttl_ms: view.expiration().map(parse_expiration).transpose()?,
            ..MessageOptions::default()
        })
    }

    fn check_user_id(&self, channel: ChannelId, user_id: &str) -> Result<(), PublishError> {
        let user = &self.messaging.clients.channel(channel)?.user;
        if **user == *user_id {
            return Ok(());
        }
        let account = self.access.accounts.user(user);
        if account.is_some_and(|user| user.tags.iter().any(|tag| &**tag == "impersonator")) {
            return Ok(());
        }
        Err(PublishError::WrongUserId { user_id: user_id.to_owned(), user: user.to_string() })
    }

    /// Returns the properties as receivers see them: without `BCC`, and with the direct reply
    /// address in place of its short form.
    #[inline]
    fn outgoing_properties<'a>(
        &self,
        channel: ChannelId,
        properties: &'a [u8],
        has_headers: bool,
    ) -> Result<Cow<'a, [u8]>, PublishError> {
        if let [0, 0] | [0x10, 0, _] = properties {
            return Ok(Cow::Borrowed(properties));
        }
        let invalid = |e: PropertyError| PublishError::InvalidProperties(e.to_string());
        let wants_reply = PropertyView::new(properties).reply_to() == Some(REPLY_TO);
        if !wants_reply && !has_headers {
            return Ok(Cow::Borrowed(properties));
        }
        let seen = without_bcc(properties).map_err(invalid)?;
        if !wants_reply {
            return Ok(seen);
        }
        let mut decoded = Properties::decode(&seen).map_err(invalid)?;
        let state = self.messaging.clients.channel(channel)?;
        let consumer = state.reply_consumer.as_ref().ok_or(PublishError::NoReplyConsumer)?;
        decoded.reply_to = Some(Box::from(consumer.key.as_str()));
        Ok(Cow::Owned(decoded.to_bytes().to_vec()))
    }
}

/// Parses a non-negative integer, as text.
fn parse_expiration(expiration: &str) -> Result<u64, PublishError> {
    let invalid = |problem| {
        Err(PublishError::InvalidExpiration { expiration: expiration.to_owned(), problem })
    };
    if expiration.is_empty() || !expiration.bytes().all(|byte| byte.is_ascii_digit()) {
        return invalid("a non-negative integer is expected");
    }
    match expiration.parse() {
        Ok(ms) if ms <= TTL_MS_MAX => Ok(ms),
        _ => invalid("the limit is 315360000000 ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expiration_is_a_number_of_milliseconds_as_text() {
        for (text, ms) in [("0", 0), ("1500", 1500), ("315360000000", TTL_MS_MAX)] {
            assert_eq!(parse_expiration(text), Ok(ms));
        }
        for text in ["", "-1", "+1", "1.5", "abc", "315360000001", "99999999999999999999999", " 1"]
        {
            assert!(parse_expiration(text).is_err(), "{text:?}");
        }
    }
}
