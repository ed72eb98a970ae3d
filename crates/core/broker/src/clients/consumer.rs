//! A consumer: a queue's messages flow to a channel under a tag.

use std::sync::Arc;

use quelea_model::{QueueId, Table};

use crate::ids::{ChannelId, ConnectionId};
use crate::queues::queue::consumers::Rank;

/// Whether a consumer may get messages, and what it waits for if not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConsumerState {
    /// It stands in its queue's ring.
    InRing,
    /// Its prefetch is used up.
    ParkedByPrefetch,
    /// Its channel may not take more.
    ParkedByChannel,
    /// Its connection may not take more before something is settled.
    ParkedByConnection,
    /// Its connection's client does not read fast enough.
    ParkedByOutput,
    /// Another one is the single active consumer.
    Standby,
}

#[derive(Debug)]
pub(crate) struct Consumer {
    pub(crate) queue: QueueId,
    pub(crate) channel: ChannelId,
    pub(crate) channel_number: u16,
    pub(crate) connection: ConnectionId,
    pub(crate) tag: Arc<str>,
    pub(crate) no_ack: bool,
    pub(crate) exclusive: bool,
    /// Its place among the queue's consumers.
    pub(crate) rank: Rank,
    pub(crate) priority: i32,
    /// 0 is unlimited.
    pub(crate) prefetch: u16,
    pub(crate) unacked: u32,
    /// Messages that it was given.
    pub(crate) delivered: u64,
    pub(crate) state: ConsumerState,
    /// When it had its last delivery, in deliveries to all consumers; 0 if it had none. Of those who
    /// wait for the same credit the one who has waited longest comes first.
    pub(crate) served_at: u64,
    /// Its channel keeps a delivery's credit for it: [`Channel::called`](super::channel::Channel).
    pub(crate) is_called: bool,
    pub(crate) arguments: Table,
}

impl Consumer {
    /// Returns whether its own prefetch lets it take another delivery.
    pub(crate) fn has_credit(&self) -> bool {
        self.no_ack || self.prefetch == 0 || self.unacked < u32::from(self.prefetch)
    }
}
