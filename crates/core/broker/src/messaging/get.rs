//! Asking for one message: basic.get.

use quelea_model::limits::GETS_WAITING_MAX;
use quelea_model::{QueueId, Timestamp};

use super::Messaging;
use crate::error::{GetError, LimitReached};
use crate::ids::ChannelId;
use crate::queues::queue::WaitingGet;

impl Messaging {
    /// Gets a message of a queue that the channel may read.
    ///
    /// # Errors
    /// [`GetError`]; there is no answer then.
    pub(crate) fn get(
        &mut self,
        now: Timestamp,
        channel: ChannelId,
        id: QueueId,
        no_ack: bool,
    ) -> Result<(), GetError> {
        let config = &self.clients.config;
        let state = self.clients.channel(channel)?;
        let limit = config.unacked_per_channel_max;
        if !no_ack && state.unacked.len() >= limit {
            let what = String::from("another unacknowledged delivery on this channel");
            return Err(LimitReached { what, limit }.into());
        }
        let connection = self.clients.connection_of(state)?;
        let limit = config.unacked_per_connection_max;
        if !no_ack && connection.unacked >= limit {
            let what = String::from("another unacknowledged delivery on this connection");
            return Err(LimitReached { what, limit }.into());
        }
        let Some(queue) = self.queues.get(id) else {
            return Ok(());
        };
        if queue.gets.len().max(connection.parked_gets.len()) >= GETS_WAITING_MAX {
            let what = String::from("another get that waits for this queue");
            return Err(LimitReached { what, limit: GETS_WAITING_MAX }.into());
        }
        // Consumers that could already have taken what is there come first.
        if queue.is_runnable {
            self.dispatch(id, now);
        }
        if let Some(queue) = self.queues.get_mut(id) {
            queue.used_at = now;
            queue.gets.push_back(WaitingGet { channel, no_ack });
        }
        self.dispatch(id, now);
        Ok(())
    }
}
