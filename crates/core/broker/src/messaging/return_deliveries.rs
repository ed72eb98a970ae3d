//! The deliveries of channels that are closed go back to their queues, and those that a client settles by one method
//! are settled, over as many turns as it takes.
//!
//! While deliveries come back, a queue gives out nothing: what is back must not be overtaken by what stands behind what
//! still comes. So all of these deliveries are announced to their queues at once, which is
//! quick, and before any queue is looked at: the next consumer in line may be active already.

use std::collections::VecDeque;

use quelea_model::{QueueId, Timestamp};
use rustc_hash::FxHashMap;

use super::{Messaging, Settlement};
use crate::ids::{ChannelId, ConnectionId};

/// In place of the last tag, of a channel that is closed: all that it has. No delivery has this tag.
pub(crate) const ALL_DELIVERIES: u64 = u64::MAX;

/// Deliveries of a channel that are settled bit by bit.
#[derive(Clone, Copy, Debug)]
struct Returning {
    channel: ChannelId,
    connection: ConnectionId,
    /// The last one's tag.
    last: u64,
    settlement: Settlement,
}

/// Channels whose deliveries, or the first of them, are on their way; most are closed but for that. Bounded by
/// the channels there were: each is here at most twice, since it may be closed while it settles some.
#[derive(Debug, Default)]
pub(crate) struct ReturningChannels {
    channels: VecDeque<Returning>,
    /// How many of them a connection had.
    by_connection: FxHashMap<ConnectionId, usize>,
}

impl ReturningChannels {
    pub(crate) fn is_empty(&self) -> bool {
        self.channels.is_empty()
    }

    /// Returns whether any of the channels was this connection's.
    pub(crate) fn has_any_of(&self, connection: ConnectionId) -> bool {
        self.by_connection.contains_key(&connection)
    }

    fn push(&mut self, returning: Returning) {
        self.channels.push_back(returning);
        *self.by_connection.entry(returning.connection).or_default() += 1;
    }

    fn first(&self) -> Option<Returning> {
        self.channels.front().copied()
    }

    fn remove_first(&mut self) {
        self.remove_at(0);
    }

    /// Takes out what is first of a channel.
    fn remove(&mut self, id: ChannelId) -> Option<Returning> {
        let at = self.channels.iter().position(|returning| returning.channel == id)?;
        self.remove_at(at)
    }

    fn remove_at(&mut self, at: usize) -> Option<Returning> {
        let returning = self.channels.remove(at)?;
        if let Some(count) = self.by_connection.get_mut(&returning.connection) {
            *count -= 1;
            if *count == 0 {
                self.by_connection.remove(&returning.connection);
            }
        }
        Some(returning)
    }
}

impl Messaging {
    /// Lets the queues wait for a channel's deliveries up to a tag, all of which are to go back
    /// now. Returns how many they are.
    pub(crate) fn announce_deliveries(&mut self, id: ChannelId, last: u64) -> u64 {
        let Some(channel) = self.clients.channels.get_mut(id) else { return 0 };
        let mut run: Option<(QueueId, u64)> = None;
        let mut announced = 0;
        let queues = &mut self.queues;
        let mut announce = |(queue, count)| {
            announced += count;
            if let Some(queue) = queues.get_mut(queue) {
                queue.returning += count;
            }
        };
        // Those before it are announced already.
        let unannounced = channel.unacked.after_mut(channel.returning_up_to);
        for (_, unacked) in unannounced.take_while(|(tag, _)| *tag <= last) {
            match &mut run {
                Some((queue, count)) if *queue == unacked.queue => *count += 1,
                _ => run.replace((unacked.queue, 1)).into_iter().for_each(&mut announce),
            }
        }
        run.into_iter().for_each(announce);
        announced
    }

    /// A channel's deliveries up to a tag, those announced that are to go back, are settled when there is time, after
    /// others'.
    pub(crate) fn settle_later(&mut self, id: ChannelId, last: u64, settlement: Settlement) {
        if let Some(channel) = self.clients.channels.get_mut(id) {
            channel.returning_up_to = last;
            let connection = channel.connection;
            self.returning.push(Returning { channel: id, connection, last, settlement });
        }
    }

    /// Settles deliveries as [`Messaging::settle_later`] does, with the announcement. Returns the
    /// steps that this took.
    pub(crate) fn begin_settling(
        &mut self,
        id: ChannelId,
        last: u64,
        settlement: Settlement,
    ) -> u64 {
        let returns = settlement == Settlement::Requeued;
        let announced = if returns { self.announce_deliveries(id, last) } else { 0 };
        self.settle_later(id, last, settlement);
        announced
    }

    /// What an open channel settles bit by bit is settled at once: whatever it does next comes behind that. Sessions
    /// wait instead.
    pub(crate) fn finish_returning(&mut self, now: Timestamp, id: ChannelId) {
        let Some(state) = self.clients.channels.get(id) else { return };
        if state.returning_up_to > 0 && !state.is_closing {
            while let Some(returning) = self.returning.remove(id) {
                self.settle_some(now, returning, u64::MAX);
                self.end_returning(returning);
            }
        }
    }

    /// A closed channel is gone with the last of its deliveries, and an open one may get more.
    fn end_returning(&mut self, returning: Returning) {
        let id = returning.channel;
        match self.clients.channels.get_mut(id) {
            // It was closed while it settled some: the others follow.
            Some(state) if state.is_closing && returning.last != ALL_DELIVERIES => {}
            Some(state) if !state.is_closing => {
                state.returning_up_to = 0;
                self.clients.resume_channel(&mut self.queues, id);
            }
            _ => self.clients.remove_channel(&mut self.queues, id),
        }
    }

    /// What was announced of a channel goes back at once, and the channel is gone.
    pub(crate) fn return_all(&mut self, now: Timestamp, id: ChannelId) {
        if let Some(state) = self.clients.channels.get(id) {
            let (connection, settlement) = (state.connection, Settlement::Requeued);
            let all = Returning { channel: id, connection, last: ALL_DELIVERIES, settlement };
            self.settle_some(now, all, u64::MAX);
        }
        self.clients.remove_channel(&mut self.queues, id);
    }

    /// Goes on with the first channel for about so many steps. Returns those that it took, and whether
    /// it settles nothing more: if it was closed it is gone then.
    pub(crate) fn return_some(&mut self, now: Timestamp, steps: u64) -> (u64, bool) {
        let Some(first) = self.returning.first() else { return (0, false) };
        let steps_each = first.settlement.steps();
        let max = (steps / steps_each).max(1);
        let settled = self.settle_some(now, first, max);
        let is_done = settled < max;
        if is_done {
            self.returning.remove_first();
            self.end_returning(first);
        }
        (settled * steps_each + u64::from(is_done), is_done)
    }

    /// Settles deliveries. Returns how many that were: fewer than `max` if there are no more.
    fn settle_some(&mut self, now: Timestamp, returning: Returning, max: u64) -> u64 {
        let Returning { channel: id, last, settlement, .. } = returning;
        let mut settled = 0;
        let mut before: Option<QueueId> = None;
        while settled < max
            && let Some(state) = self.clients.channels.get_mut(id)
            && let Some(unacked) = state.unacked.take_up_to(last)
        {
            settled += 1;
            let queue = unacked.queue;
            self.settle_one(now, id, unacked, settlement);
            if settlement == Settlement::Requeued {
                self.note_returned(now, queue);
            } else if let Some(before) = before.replace(queue).filter(|before| *before != queue) {
                self.after_settling(now, before, settlement);
            }
        }
        if let Some(queue) = before {
            self.after_settling(now, queue, settlement);
        }
        settled
    }

    /// One of those that a queue waits for is back.
    fn note_returned(&mut self, now: Timestamp, queue: QueueId) {
        let Some(state) = self.queues.get_mut(queue) else { return };
        state.returning -= 1;
        if state.returning == 0 {
            self.after_settling(now, queue, Settlement::Requeued);
        }
    }
}
