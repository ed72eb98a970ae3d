//! Opening and closing connections and channels, and how much their clients take.

use std::sync::Arc;

use quelea_model::Timestamp;

use crate::Broker;
use crate::channel::Channel;
use crate::connection::Connection;
use crate::effect::{CloseReason, Effect};
use crate::error::{ChannelGone, OpenError};
use crate::ids::{ChannelId, ConnectionId};
use crate::request::ConnectionInfo;

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
        let Some((name, id)) = self.vhost_ids.get_key_value(vhost.as_str()) else {
            return Err(OpenError::NoSuchVhost { vhost });
        };
        if !self.access.may_open(&user, &vhost) {
            return Err(OpenError::Refused { vhost, user });
        }
        let limit = self.config.connections_max;
        if self.clients.connections.len() >= limit {
            return Err(OpenError::TooMany { vhost, user, limit });
        }
        let connection = Connection::new(info, *id, name.clone(), now);
        Ok(ConnectionId(self.clients.connections.insert(connection)))
    }

    /// Closes a connection: its channels as by [`Broker::close_channel`], and its exclusive queues
    /// are gone when this returns. Closing twice does nothing.
    pub fn close_connection(&mut self, now: Timestamp, connection: ConnectionId) {
        let Some(state) = self.clients.connections.get_mut(connection.0) else {
            return;
        };
        for channel in std::mem::take(&mut state.channels) {
            self.close_channel(now, channel);
        }
        if let Some(state) = self.clients.connections.remove(connection.0) {
            for queue in state.exclusive_queues {
                self.remove_queue(queue);
            }
        }
    }

    /// Gives a connection's output budget back what its peer has taken: bytes that were written to
    /// the socket, or deliveries that were not sent at all. `usize::MAX` when nothing waits any
    /// more. Consumers and gets that were held back go on by the next [`Broker::run`].
    pub fn output_drained(&mut self, _now: Timestamp, connection: ConnectionId, bytes: usize) {
        let Some(state) = self.clients.connections.get_mut(connection.0) else {
            return;
        };
        state.output_waiting = state.output_waiting.saturating_sub(bytes);
        // Not for every few bytes: half a budget makes a good batch.
        if (state.parked.is_empty() && state.parked_gets.is_empty())
            || state.output_waiting > self.config.output_bytes_max / 2
        {
            return;
        }
        for (queue, get) in std::mem::take(&mut state.parked_gets) {
            self.resume_get(queue, get);
        }
        let Some(state) = self.clients.connections.get_mut(connection.0) else {
            return;
        };
        for consumer in std::mem::take(&mut state.parked) {
            self.call_back(consumer);
        }
    }

    /// Asks a connection's session to close it. False: there is none.
    pub fn request_close(&mut self, connection: ConnectionId, reason: CloseReason) -> bool {
        let is_open = self.clients.connections.get(connection.0).is_some();
        if is_open {
            self.effects.push_back(Effect::CloseConnection { connection, reason });
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
        let state = self.clients.connections.get_mut(connection.0).ok_or(ChannelGone)?;
        let user = Arc::clone(&state.user);
        let channel = Channel::new(connection, number, user, state.vhost, state.vhost_name.clone());
        let id = ChannelId(self.clients.channels.insert(channel));
        state.channels.push(id);
        Ok(id)
    }

    /// Closes a channel: its consumers go, its unsettled deliveries go back to their queues.
    /// Closing twice does nothing.
    pub fn close_channel(&mut self, now: Timestamp, channel: ChannelId) {
        let Some(state) = self.clients.channels.get_mut(channel.0) else {
            return;
        };
        state.is_closing = true;
        // Consumers first, or what goes back would come to them again.
        let consumers: Vec<_> = state.consumers.values().copied().collect();
        let connection = state.connection;
        for consumer in consumers {
            self.remove_consumer(consumer, now);
        }
        self.requeue_all(now, channel);
        self.clients.channels.remove(channel.0);
        if let Some(state) = self.clients.connections.get_mut(connection.0) {
            state.channels.retain(|other| *other != channel);
        }
        self.call_back_connection(connection);
    }

    /// basic.qos. Without `global` it is for consumers of this channel to come, each by itself;
    /// with it, for all of the channel's consumers together, as in RabbitMQ. 0 is unlimited.
    pub fn set_prefetch(&mut self, _now: Timestamp, channel: ChannelId, count: u16, global: bool) {
        if let Some(state) = self.clients.channels.get_mut(channel.0) {
            if global {
                state.global_prefetch = count;
            } else {
                state.prefetch = count;
            }
            self.call_back_channel(channel);
        }
    }

    /// channel.flow: stops and resumes deliveries to the channel's consumers.
    pub fn set_flow(&mut self, _now: Timestamp, channel: ChannelId, active: bool) {
        if let Some(state) = self.clients.channels.get_mut(channel.0) {
            state.flow_stopped = !active;
            self.call_back_channel(channel);
        }
    }
}
