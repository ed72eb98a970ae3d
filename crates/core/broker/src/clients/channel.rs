//! A channel: its deliveries, its consumers, and what it remembers between two methods.

use std::collections::BTreeSet;
use std::sync::Arc;

use quelea_model::{Resident, VhostName};
use rustc_hash::FxHashMap;

use super::unacked::UnackedDeliveries;
use crate::ids::{ConnectionId, ConsumerId, VhostId};
use crate::report::MessageCounters;
use crate::routing::last_route::LastRoute;

/// A channel's consumer of direct replies.
#[derive(Debug)]
pub(crate) struct ReplyConsumer {
    pub(crate) tag: Arc<str>,
    /// What `reply_to` becomes, and the routing key of the answers.
    pub(crate) key: String,
}

#[derive(Debug)]
pub(crate) struct Channel {
    pub(crate) connection: ConnectionId,
    pub(crate) number: u16,
    pub(crate) user: Arc<str>,
    pub(crate) vhost: VhostId,
    pub(crate) vhost_name: VhostName,
    /// The last delivery's tag.
    pub(crate) last_tag: u64,
    pub(crate) unacked: UnackedDeliveries,
    /// Bytes of bodies that unsettled deliveries keep in memory.
    pub(crate) unacked_resident: Resident,
    /// Unsettled deliveries to consumers, not to gets: what `global_prefetch` bounds.
    pub(crate) unacked_of_consumers: u32,
    /// For consumers to come.
    pub(crate) prefetch: u16,
    pub(crate) global_prefetch: u16,
    /// Being closed: what goes back to its queues must not come to its waiting gets.
    pub(crate) is_closing: bool,
    /// Deliveries up to this tag are on their way back to their queues; 0: none.
    pub(crate) returning_up_to: u64,
    pub(crate) consumers: FxHashMap<Arc<str>, ConsumerId>,
    /// Consumers that wait until this channel may take more, with the time of their last delivery:
    /// the first has waited longest.
    pub(crate) parked: BTreeSet<(u64, ConsumerId)>,
    /// Consumers that have waited, and whom a delivery's credit each is kept for until their queues
    /// have been looked at: others would be quicker time and again.
    pub(crate) called: u32,
    /// The name that an empty queue name stands for.
    pub(crate) last_queue: Option<String>,
    pub(crate) last_route: LastRoute,
    pub(crate) reply_consumer: Option<ReplyConsumer>,
    pub(crate) counters: MessageCounters,
}

impl Channel {
    pub(crate) fn new(
        connection: ConnectionId,
        number: u16,
        user: Arc<str>,
        vhost: VhostId,
        vhost_name: VhostName,
    ) -> Self {
        Self {
            connection,
            number,
            user,
            vhost,
            vhost_name,
            last_tag: 0,
            unacked: UnackedDeliveries::default(),
            unacked_resident: Resident::default(),
            unacked_of_consumers: 0,
            prefetch: 0,
            global_prefetch: 0,
            is_closing: false,
            returning_up_to: 0,
            consumers: FxHashMap::default(),
            parked: BTreeSet::new(),
            called: 0,
            last_queue: None,
            last_route: LastRoute::default(),
            reply_consumer: None,
            counters: MessageCounters::default(),
        }
    }

    /// Returns how many deliveries its consumers may get.
    pub(crate) fn credit(&self, unacked_max: usize) -> u32 {
        let prefetch = match self.global_prefetch {
            0 => u32::MAX,
            prefetch => u32::from(prefetch).saturating_sub(self.unacked_of_consumers),
        };
        let room = unacked_max.saturating_sub(self.unacked.len());
        prefetch.min(u32::try_from(room).unwrap_or(u32::MAX))
    }

    /// Returns whether a consumer may get a delivery: one that was called, or any while nobody else
    /// waits. One that does not acknowledge uses none of the global prefetch up, but waits with the
    /// others while it is used up, as in RabbitMQ.
    pub(crate) fn admits(&self, is_called: bool, no_ack: bool, unacked_max: usize) -> bool {
        if no_ack && self.global_prefetch == 0 {
            return true;
        }
        let credit = self.credit(unacked_max);
        if is_called { credit > 0 } else { credit > self.called && self.parked.is_empty() }
    }

    pub(crate) const fn next_tag(&mut self) -> u64 {
        self.last_tag += 1;
        self.last_tag
    }
}
