//! The deliveries of channels that are closed, or that return very many at once, go back to their queues, over as
//! many turns as it takes.
//!
//! While they do, a queue gives out nothing: what is back must not be overtaken by what stands behind what
//! still comes. So all of these deliveries are announced to their queues at once, which is
//! quick, and before any queue is looked at: the next consumer in line may be active already.

use std::collections::VecDeque;

use quelea_model::{QueueId, Timestamp};
use rustc_hash::FxHashMap;

use super::{Messaging, Settlement};
use crate::ids::{ChannelId, ConnectionId};
use crate::work::STEPS_PER_REQUEUE;

/// Channels whose deliveries, or the first of them, are on their way back; most are closed but for that. Bounded by
/// the channels there were: each is here at most twice, since it may be closed while it returns some.
#[derive(Debug, Default)]
pub(crate) struct ReturningChannels {
    channels: VecDeque<(ChannelId, ConnectionId)>,
    /// How many of them a connection had.
    by_connection: FxHashMap<ConnectionId, usize>,
}

impl ReturningChannels {
    pub(crate) fn is_empty(&self) -> bool {
        self.channels.is_empty()
    }

    /// Whether any of them was this connection's.
    pub(crate) fn has_any_of(&self, connection: ConnectionId) -> bool {
        self.by_connection.contains_key(&connection)
    }

    fn push(&mut self, id: ChannelId, connection: ConnectionId) {
        self.channels.push_back((id, connection));
        *self.by_connection.entry(connection).or_default() += 1;
    }

    fn first(&self) -> Option<ChannelId> {
        self.channels.front().map(|(id, _)| *id)
    }

    fn remove_first(&mut self) {
        self.remove_at(0);
    }

    fn remove(&mut self, id: ChannelId) {
        if let Some(at) = self.channels.iter().position(|(other, _)| *other == id) {
            self.remove_at(at);
        }
    }

    fn remove_at(&mut self, at: usize) {
        let Some((_, connection)) = self.channels.remove(at) else { return };
        if let Some(count) = self.by_connection.get_mut(&connection) {
            *count -= 1;
            if *count == 0 {
                self.by_connection.remove(&connection);
            }
        }
    }
}

impl Messaging {
    /// Has the queues wait for a channel's deliveries up to a tag, all of which are to go back now. Returns how many
    /// they are.
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

    /// What was announced of a channel goes back when there is time, after others'.
    pub(crate) fn return_later(&mut self, id: ChannelId, last: u64) {
        if let Some(channel) = self.clients.channels.get_mut(id) {
            channel.returning_up_to = last;
            self.returning.push(id, channel.connection);
        }
    }

    /// A channel's deliveries up to a tag go back when there is time, after others'. Returns how many they are.
    pub(crate) fn begin_returning(&mut self, id: ChannelId, last: u64) -> u64 {
        let announced = self.announce_deliveries(id, last);
        self.return_later(id, last);
        announced
    }

    /// What an open channel returns is back at once: whatever it does next comes behind that. Sessions wait instead.
    pub(crate) fn finish_returning(&mut self, now: Timestamp, id: ChannelId) {
        let Some(state) = self.clients.channels.get(id) else { return };
        if state.returning_up_to > 0 && !state.is_closing {
            self.return_up_to(now, id, u64::MAX);
            self.returning.remove(id);
            self.end_returning(id);
        }
    }

    /// A closed channel is gone with the last of its deliveries, and an open one may get more.
    fn end_returning(&mut self, id: ChannelId) {
        match self.clients.channels.get_mut(id) {
            Some(state) if !state.is_closing => {
                state.returning_up_to = 0;
                self.clients.resume_channel(&mut self.queues, id);
            }
            _ => self.clients.remove_channel(&mut self.queues, id),
        }
    }

    /// What was announced of a channel goes back at once, and the channel is gone.
    pub(crate) fn return_all(&mut self, now: Timestamp, id: ChannelId) {
        if let Some(state) = self.clients.channels.get_mut(id) {
            state.returning_up_to = u64::MAX;
        }
        self.return_up_to(now, id, u64::MAX);
        self.clients.remove_channel(&mut self.queues, id);
    }

    /// Goes on with the first channel for about so many steps. Returns those that it took, and whether
    /// it returns nothing more: if it was closed it is gone then.
    pub(crate) fn return_some(&mut self, now: Timestamp, steps: u64) -> (u64, bool) {
        let Some(id) = self.returning.first() else { return (0, false) };
        let max = (steps / STEPS_PER_REQUEUE).max(1);
        let returned = self.return_up_to(now, id, max);
        let is_done = returned < max;
        if is_done {
            self.returning.remove_first();
            self.end_returning(id);
        }
        (returned * STEPS_PER_REQUEUE + u64::from(is_done), is_done)
    }

    /// What was announced goes back. Returns how many that were: fewer than `max` if there are no more.
    fn return_up_to(&mut self, now: Timestamp, id: ChannelId, max: u64) -> u64 {
        let mut returned = 0;
        while returned < max
            && let Some(state) = self.clients.channels.get_mut(id)
            && let Some(unacked) = state.unacked.take_up_to(state.returning_up_to)
        {
            returned += 1;
            let queue = unacked.queue;
            self.settle_one(now, id, unacked, Settlement::Requeued);
            let Some(state) = self.queues.get_mut(queue) else { continue };
            state.returning -= 1;
            if state.returning == 0 {
                self.after_settling(now, queue, Settlement::Requeued);
            }
        }
        returned
    }
}
