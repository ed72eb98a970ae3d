//! Settling deliveries: basic.ack, basic.nack, basic.reject and basic.recover.

use quelea_model::Timestamp;

use super::Broker;
use crate::error::UnknownDeliveryTag;
use crate::ids::ChannelId;
use crate::messaging::Settlement;

/// Deliveries that are settled at once, whatever a turn has left: a consumer that acknowledges by the batch does not
/// wait for the next turn each time.
const SETTLED_AT_ONCE: usize = 256;

impl Broker {
    /// Acknowledges a delivery (basic.ack), with `multiple` all deliveries up to the tag; 0 is then
    /// all of the channel. Very many take some turns, as with [`Broker::nack`].
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
        if multiple {
            return self.settle_up_to(now, channel, tag, Settlement::Acknowledged);
        }
        self.messaging.settle(now, channel, tag, false, Settlement::Acknowledged)
    }

    /// Rejects a delivery (basic.nack), with `multiple` all up to the tag. To settle very many
    /// takes some turns, in which [`Broker::is_returning`] says so: whoever calls for a client has
    /// what it does next on the channel wait for that.
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
        if multiple {
            return self.settle_up_to(now, channel, tag, settlement);
        }
        let settled = self.messaging.settle(now, channel, tag, false, settlement);
        self.work.spend(settlement.steps() + self.messaging.take_steps());
        settled
    }

    /// Settles all deliveries up to a tag, 0 being all that there are now.
    fn settle_up_to(
        &mut self,
        now: Timestamp,
        channel: ChannelId,
        tag: u64,
        settlement: Settlement,
    ) -> Result<(), UnknownDeliveryTag> {
        if let Some(last) = self.last_of_too_many(channel, tag, settlement) {
            self.messaging.check_tag(channel, tag, true)?;
            self.work.spend(self.messaging.begin_settling(channel, last, settlement));
            return Ok(());
        }
        let before = self.unacked(channel);
        let settled = self.messaging.settle(now, channel, tag, true, settlement);
        // Who settles very many has others served before it goes on.
        let count = before.saturating_sub(self.unacked(channel)) as u64;
        self.work.spend(count * settlement.steps() + self.messaging.take_steps());
        settled
    }

    /// Returns the last tag of a channel's deliveries up to a tag, 0 being all, if they are more
    /// than this turn can settle. In a transaction they have to go as one.
    fn last_of_too_many(
        &self,
        channel: ChannelId,
        tag: u64,
        settlement: Settlement,
    ) -> Option<u64> {
        let state = self.messaging.clients.channels.get(channel)?;
        // What is delivered meanwhile is not meant.
        let last = if tag == 0 { state.last_tag } else { tag };
        let count = state.unacked.count_up_to(last);
        let is_too_much =
            count > SETTLED_AT_ONCE && count as u64 * settlement.steps() > self.work.left();
        let may_wait = !state.is_closing && !self.messaging.log.is_in_transaction();
        (is_too_much && may_wait).then_some(last)
    }

    pub(super) fn unacked(&self, channel: ChannelId) -> usize {
        self.messaging.clients.channels.get(channel).map_or(0, |state| state.unacked.len())
    }

    /// Rejects one delivery (basic.reject).
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

    /// Holds what [`Broker::ack`] and the others would settle for a transaction, which settles it
    /// at its end: no tag is known twice, and [`Broker::recover`] leaves it. Returns the last tag
    /// that is held now, which stands for a tag of 0; `None` if there was nothing unsettled.
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
        let settlement = Settlement::Requeued;
        if let Some(last) = self.last_of_too_many(channel, 0, settlement)
            && !self.messaging.holds_any(channel)
        {
            self.work.spend(self.messaging.begin_settling(channel, last, settlement));
            return;
        }
        let before = self.unacked(channel);
        self.messaging.requeue_unheld(now, channel);
        let count = before.saturating_sub(self.unacked(channel)) as u64;
        self.work.spend(count * settlement.steps() + self.messaging.take_steps());
        self.messaging.clients.resume_channel(&mut self.messaging.queues, channel);
    }
}
