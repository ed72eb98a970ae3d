//! Settling deliveries: basic.ack, basic.nack, basic.reject and basic.recover.

use quelea_model::Timestamp;

use super::Broker;
use crate::error::UnknownDeliveryTag;
use crate::ids::ChannelId;
use crate::messaging::Settlement;
use crate::work::STEPS_PER_REQUEUE;

impl Broker {
    /// basic.ack. With `multiple` all deliveries up to the tag; 0 is then all of the channel.
    ///
    /// Nobody is promised anything: the log has it at the end of the turn, and syncs soon after.
    ///
    /// # Errors
    /// [`UnknownDeliveryTag`] (406) if no unsettled delivery has the tag; nothing is settled then.
    pub fn ack(
        &mut self,
        now: Timestamp,
        channel: ChannelId,
        tag: u64,
        multiple: bool,
    ) -> Result<(), UnknownDeliveryTag> {
        self.messaging.finish_returning(now, channel);
        self.messaging.settle(now, channel, tag, multiple, Settlement::Acknowledged)
    }

    /// basic.nack. To return very many with `multiple` takes some turns, in which [`Broker::is_returning`] says so:
    /// whoever calls for a client has what it does next on the channel wait for that.
    ///
    /// # Errors
    /// As [`Broker::ack`].
    pub fn nack(
        &mut self,
        now: Timestamp,
        channel: ChannelId,
        tag: u64,
        multiple: bool,
        requeue: bool,
    ) -> Result<(), UnknownDeliveryTag> {
        self.messaging.finish_returning(now, channel);
        let settlement = if requeue { Settlement::Requeued } else { Settlement::Discarded };
        if multiple && requeue && self.is_too_much(channel, tag) {
            self.messaging.check_tag(channel, tag, multiple)?;
            let last = if tag == 0 { u64::MAX } else { tag };
            self.work.spend(self.messaging.begin_returning(channel, last));
            return Ok(());
        }
        let before = if multiple { self.unacked(channel) } else { 1 };
        let settled = self.messaging.settle(now, channel, tag, multiple, settlement);
        let after = if multiple { self.unacked(channel) } else { 0 };
        // Who returns very many has others served before it goes on.
        self.work.spend(before.saturating_sub(after) as u64 * STEPS_PER_REQUEUE);
        settled
    }

    /// Whether a channel's deliveries up to a tag, 0 being all, are more than this turn can return. In a transaction
    /// they have to go as one.
    fn is_too_much(&self, channel: ChannelId, tag: u64) -> bool {
        let Some(state) = self.messaging.clients.channels.get(channel) else { return false };
        let count = if tag == 0 { state.unacked.len() } else { state.unacked.count_up_to(tag) };
        let steps = count as u64 * STEPS_PER_REQUEUE;
        steps > self.work.left() && !state.is_closing && !self.messaging.log.is_in_transaction()
    }

    pub(super) fn unacked(&self, channel: ChannelId) -> usize {
        self.messaging.clients.channels.get(channel).map_or(0, |state| state.unacked.len())
    }

    /// basic.reject.
    ///
    /// # Errors
    /// As [`Broker::ack`].
    pub fn reject(
        &mut self,
        now: Timestamp,
        channel: ChannelId,
        tag: u64,
        requeue: bool,
    ) -> Result<(), UnknownDeliveryTag> {
        self.nack(now, channel, tag, false, requeue)
    }

    /// What [`Broker::ack`] and the others would settle is held for a transaction, which settles it at
    /// its end: no tag is known twice, and [`Broker::recover`] leaves it. Returns the last tag that is
    /// held now, which stands for a tag of 0; `None` if there was nothing unsettled.
    ///
    /// # Errors
    /// [`UnknownDeliveryTag`] (406) if no unsettled delivery has the tag; nothing is held then.
    pub fn hold(
        &mut self,
        now: Timestamp,
        channel: ChannelId,
        tag: u64,
        multiple: bool,
    ) -> Result<Option<u64>, UnknownDeliveryTag> {
        self.messaging.finish_returning(now, channel);
        self.messaging.check_tag(channel, tag, multiple)?;
        let Some(state) = self.messaging.clients.channels.get_mut(channel) else {
            return Ok(None);
        };
        let last = if tag == 0 { state.unacked.last_unheld() } else { Some(tag) };
        if let Some(last) = last {
            state.unacked.hold(last, multiple);
        }
        Ok(last)
    }

    /// What was held for a transaction is unsettled as before.
    pub fn release_held(&mut self, channel: ChannelId) {
        if let Some(state) = self.messaging.clients.channels.get_mut(channel) {
            state.unacked.release();
        }
    }

    /// basic.recover: everything unsettled goes back to its queue, and from there to whoever's
    /// turn it is, over some turns as with [`Broker::nack`]. RabbitMQ refuses `requeue: false` (540); here it does the same as `true`, which
    /// the specification leaves to the server (AMQP 0-9-1, basic.recover).
    pub fn recover(&mut self, now: Timestamp, channel: ChannelId, _requeue: bool) {
        self.messaging.finish_returning(now, channel);
        if self.is_too_much(channel, 0) && !self.messaging.holds_any(channel) {
            self.work.spend(self.messaging.begin_returning(channel, u64::MAX));
            return;
        }
        let before = self.unacked(channel);
        self.messaging.requeue_unheld(now, channel);
        let after = self.unacked(channel);
        self.work.spend(before.saturating_sub(after) as u64 * STEPS_PER_REQUEUE);
        self.messaging.clients.resume_channel(&mut self.messaging.queues, channel);
    }
}
