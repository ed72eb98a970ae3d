//! Asking for one message: basic.get.

use quelea_model::limits::GETS_WAITING_MAX;
use quelea_model::{QueueId, Timestamp};

use crate::Broker;
use crate::access::Operation;
use crate::effect::Effect;
use crate::error::{ChannelGone, GetError, LimitReached};
use crate::ids::ChannelId;
use crate::queue::WaitingGet;

impl Broker {
    /// basic.get. The answer is an effect, [`Effect::Got`](crate::Effect::Got) or
    /// [`Effect::GotEmpty`](crate::Effect::GotEmpty): mostly at once, later if the message has to
    /// be read from the log or the client has too much to read already, and never if the channel
    /// closes before.
    ///
    /// # Errors
    /// [`GetError`]; there is no answer then.
    pub fn get(
        &mut self,
        now: Timestamp,
        channel: ChannelId,
        queue: &str,
        no_ack: bool,
    ) -> Result<(), GetError> {
        let id = self.find_queue(channel, queue, Operation::Read)?;
        let state = self.clients.channels.get(channel.0).ok_or(ChannelGone)?;
        let limit = self.config.unacked_per_channel_max;
        if !no_ack && state.unacked.len() >= limit {
            let what = String::from("another unacknowledged delivery on this channel");
            return Err(LimitReached { what, limit }.into());
        }
        let connection = self.clients.connections.get(state.connection.0).ok_or(ChannelGone)?;
        let limit = self.config.unacked_per_connection_max;
        if !no_ack && connection.unacked >= limit {
            let what = String::from("another unacknowledged delivery on this connection");
            return Err(LimitReached { what, limit }.into());
        }
        let Some(queue) = self.queues.get(&id) else {
            return Ok(());
        };
        if queue.gets.len().max(connection.parked_gets.len()) >= GETS_WAITING_MAX {
            let what = String::from("another get that waits for this queue");
            return Err(LimitReached { what, limit: GETS_WAITING_MAX }.into());
        }
        // Consumers that could already have taken what is there come first.
        if queue.is_touched {
            self.dispatch(id, now);
        }
        if let Some(queue) = self.queues.get_mut(&id) {
            queue.used_at = now;
            queue.gets.push_back(WaitingGet { channel, no_ack });
        }
        self.dispatch(id, now);
        Ok(())
    }

    /// The client has taken what kept a get waiting.
    pub(crate) fn resume_get(&mut self, id: QueueId, get: WaitingGet) {
        if let Some(queue) = self.queues.get_mut(&id) {
            queue.gets.push_back(get);
            self.touch(id);
        } else if let Some(channel) = self.clients.channels.get(get.channel.0) {
            // The queue was deleted in the meantime.
            self.effects.push_back(Effect::GotEmpty {
                connection: channel.connection,
                channel: get.channel,
                channel_number: channel.number,
            });
        }
    }
}
