//! Opening and closing connections and channels, and how much their clients take.

use quelea_model::Timestamp;

use super::Broker;
use crate::clients::connection::Connection;
use crate::effect::{CloseReason, Effect};
use crate::error::{ChannelGone, OpenError};
use crate::ids::{ChannelId, ConnectionId};
use crate::messaging::{ALL_DELIVERIES, Messaging, Settlement};
use crate::request::ConnectionInfo;
use crate::work::STEPS_PER_REQUEUE;

impl Broker {
    /// Opens a virtual host for an authenticated user.
    ///
    /// # Errors
    /// [`OpenError`] if the vhost does not exist, the user has no permissions in it or may only
    /// come from loopback, or there are too many connections.
    pub fn open_connection(
        &mut self,
        now: Timestamp,
        info: ConnectionInfo,
    ) -> Result<ConnectionId, OpenError> {
        let (vhost, user) = (info.vhost.clone(), info.user.clone());
        if !info.loopback && info.user == self.config.loopback_user {
            return Err(OpenError::NotLoopback { user });
        }
        let found =
            self.routing.vhost_id(&vhost).and_then(|id| Some((id, self.routing.vhost(id)?)));
        let Some((id, found)) = found else {
            return Err(OpenError::NoSuchVhost { vhost });
        };
        if !self.access.accounts.may_open(&user, &vhost) {
            return Err(OpenError::Refused { vhost, user });
        }
        let limit = self.config.connections_max;
        if self.messaging.clients.connections.len() >= limit {
            return Err(OpenError::TooMany { vhost, user, limit });
        }
        let connection = Connection::new(info, id, found.name.clone(), now);
        self.churn.connections_opened += 1;
        Ok(self.messaging.clients.connections.insert(connection))
    }

    /// Closes a connection: its channels as by [`Broker::close_channel`]. Its exclusive queues are gone for
    /// clients when this returns; if there are many, what is routed to them is dropped by
    /// [`Broker::run`] only. Closing twice does nothing.
    pub fn close_connection(&mut self, now: Timestamp, connection: ConnectionId) {
        let Some(state) = self.messaging.clients.connections.get_mut(connection) else {
            return;
        };
        let mut channels = std::mem::take(&mut state.channels);
        // All are closed before anything goes back, or one's deliveries would overtake another's.
        channels.retain(|channel| self.begin_closing(now, *channel));
        channels.into_iter().for_each(|channel| self.return_deliveries(now, channel));
        if let Some(state) = self.messaging.clients.connections.remove(connection) {
            self.churn.connections_closed += 1;
            self.remove_ownerless(state.exclusive_queues);
        }
    }

    /// Returns to a connection's output budget what its peer has taken: bytes that were written to
    /// the socket, or deliveries that were not sent at all. `usize::MAX` when nothing waits any
    /// more. Consumers and gets that were held back go on by the next [`Broker::run`].
    pub fn output_drained(&mut self, _now: Timestamp, connection: ConnectionId, bytes: usize) {
        let Messaging { clients, queues, effects, .. } = &mut self.messaging;
        clients.output_drained(queues, effects, connection, bytes);
    }

    /// Asks a connection's session to close it. False: there is none.
    pub fn request_close(&mut self, connection: ConnectionId, reason: CloseReason) -> bool {
        let is_open = self.messaging.clients.connections.contains_key(connection);
        if is_open {
            self.messaging.effects.push_back(Effect::CloseConnection { connection, reason });
        }
        is_open
    }

    /// Opens a channel; its number is only for the effects.
    ///
    /// # Errors
    /// [`ChannelGone`] if the connection is closed.
    pub fn open_channel(
        &mut self,
        connection: ConnectionId,
        number: u16,
    ) -> Result<ChannelId, ChannelGone> {
        let opened = self.messaging.clients.open_channel(connection, number)?;
        self.churn.channels_opened += 1;
        Ok(opened)
    }

    /// Closes a channel: its consumers go, its unsettled deliveries go back to their queues. If there are many
    /// of these that takes some turns, in which [`Broker::is_returning`] says so and those queues give nothing
    /// out. Closing twice does nothing.
    pub fn close_channel(&mut self, now: Timestamp, channel: ChannelId) {
        if self.begin_closing(now, channel) {
            self.return_deliveries(now, channel);
        }
    }

    /// Removes a channel's consumers, and announces its deliveries to their queues. Returns false
    /// if it is closed.
    fn begin_closing(&mut self, now: Timestamp, channel: ChannelId) -> bool {
        let Some(state) = self.messaging.clients.channels.get_mut(channel) else {
            return false;
        };
        if std::mem::replace(&mut state.is_closing, true) {
            return false;
        }
        state.reply_consumer = None;
        self.churn.channels_closed += 1;
        // Consumers first, or what goes back would come to them again.
        let consumers: Vec<_> = state.consumers.values().copied().collect();
        for consumer in consumers {
            self.remove_consumer(consumer, now);
        }
        self.work.spend(self.messaging.announce_deliveries(channel, ALL_DELIVERIES));
        true
    }

    /// A closed channel's deliveries go back, at once if this turn has steps left for all of them.
    fn return_deliveries(&mut self, now: Timestamp, channel: ChannelId) {
        let steps = self.unacked(channel) as u64 * STEPS_PER_REQUEUE;
        // What it has settled before stays settled.
        let state = self.messaging.clients.channels.get(channel);
        let settles = state.is_some_and(|state| state.returning_up_to > 0);
        if settles || steps > self.work.left() {
            return self.messaging.settle_later(channel, ALL_DELIVERIES, Settlement::Requeued);
        }
        self.work.spend(steps);
        self.messaging.return_all(now, channel);
    }

    /// Returns whether deliveries of a channel that was closed, or that settled very many, are still on
    /// their way. Changes with [`Broker::names_freed`].
    #[must_use]
    pub fn is_returning(&self, channel: ChannelId) -> bool {
        let channel = self.messaging.clients.channels.get(channel);
        channel.is_some_and(|channel| channel.is_closing || channel.returning_up_to > 0)
    }

    /// Returns the same as [`Broker::is_returning`], of any of the channels of a connection that
    /// was closed.
    #[must_use]
    pub fn is_returning_of(&self, connection: ConnectionId) -> bool {
        self.messaging.returning.has_any_of(connection)
    }

    /// Goes on with the deliveries of channels that settle them, within this turn's steps; dead letters, and what is
    /// being removed or was purged, get their share of them. True: there are more.
    pub(super) fn go_on_returning(&mut self, now: Timestamp) -> bool {
        let others_wait = !self.removals.is_empty()
            || !self.messaging.purged.is_empty()
            || self.messaging.queues.schedule.dead_lettering() > 0;
        let kept = self.work.kept(others_wait);
        while self.work.left() > kept && !self.messaging.returning.is_empty() {
            let (steps, is_done) = self.messaging.return_some(now, self.work.left() - kept);
            self.work.spend(steps + self.messaging.take_steps());
            if is_done {
                self.removals.note_change();
            }
        }
        !self.messaging.returning.is_empty()
    }

    /// basic.qos. Without `global` it is for consumers of this channel to come, each by itself;
    /// with it, for all of the channel's consumers together, as in RabbitMQ. 0 is unlimited.
    pub fn set_prefetch(&mut self, _now: Timestamp, channel: ChannelId, count: u16, global: bool) {
        if let Some(state) = self.messaging.clients.channels.get_mut(channel) {
            if global {
                state.global_prefetch = count;
            } else {
                state.prefetch = count;
            }
            self.messaging.clients.resume_channel(&mut self.messaging.queues, channel);
        }
    }
}
