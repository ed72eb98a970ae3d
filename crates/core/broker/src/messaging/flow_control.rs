//! Slowing publishers down to the pace of consumers that take as fast as they are given.
//!
//! A queue is crowded while more than [`CROWDED_MESSAGES`] or [`CROWDED_BYTES`] wait in it and somebody
//! consumes from it. Each window of [`WINDOW_MS`] it is counted what its consumers took. If that is as much as only consumers
//! take that do nothing else, they and the publishers compete for the same processors, and the
//! connections that publish into it may publish about seven eighths of what was taken, each its share, in the
//! next window. What is beyond it waits in their sockets. Consumers that are slow by themselves slow
//! nobody down: their queue is there to hold what they have not done yet.
//!
//! A connection waits for the end of the window and no longer, whatever happens to the queue: each may publish one
//! message a window at least, however large. One whose consumers acknowledge does not wait at all: its
//! acknowledgements would stand behind what it publishes, and slow those down by which it is measured.

use quelea_model::{QueueId, Timestamp};

use crate::clients::Clients;
use crate::effect::Effect;
use crate::ids::ConnectionId;
use crate::queues::Queues;
use crate::queues::queue::{Pace, Queue};

/// Ready messages of a queue up to which publishers feel nothing: more than the fastest consumers need
/// so as not to run dry between two windows' ends.
const CROWDED_MESSAGES: usize = 4_096;

/// Bytes of their bodies up to which publishers feel nothing: what the fastest consumers take in a window.
/// More of them would leave the processor's caches, and the memory that messages may take, for the log.
const CROWDED_BYTES: u64 = 8 * 1024 * 1024;

/// A window: long beside a turn of the core, short for a publisher that is held until its end.
const WINDOW_MS: u64 = 10;

/// Crowded queues, and the publishers that are held because of them.
#[derive(Debug, Default)]
pub(crate) struct FlowControl {
    watched: Vec<QueueId>,
    held: Vec<(ConnectionId, QueueId)>,
    window_began: Timestamp,
}

impl FlowControl {
    /// Notes that a queue got a message. Returns whether the publisher is to be slowed down.
    #[inline]
    pub(crate) fn slows(&mut self, queue: &mut Queue, now: Timestamp) -> bool {
        if !is_crowded(queue, CROWDED_MESSAGES, CROWDED_BYTES) {
            return false;
        }
        match &queue.pace {
            Some(pace) => pace.is_slowing,
            None => {
                self.watch(queue, now);
                false
            }
        }
    }

    fn watch(&mut self, queue: &mut Queue, now: Timestamp) {
        if self.watched.is_empty() && self.held.is_empty() {
            self.window_began = now;
        }
        self.watched.push(queue.id);
        queue.pace = Some(Box::new(Pace::new(delivered(queue), now)));
    }

    /// Notes that a connection has published into a queue that slows publishers down: it waits if
    /// its share is used up. Returns whether it does.
    pub(crate) fn spend_share(
        &mut self,
        clients: &mut Clients,
        queues: &mut Queues,
        connection: ConnectionId,
        queue: QueueId,
    ) -> bool {
        let Some(publisher) = clients.connections.get_mut(connection) else { return false };
        if publisher.acknowledging > 0 || publisher.is_held {
            return false;
        }
        publisher.share = publisher.share.saturating_sub(1);
        if publisher.share > 0 {
            return false;
        }
        let Some(pace) = queues.get_mut(queue).and_then(|queue| queue.pace.as_mut()) else {
            return false;
        };
        pace.held += 1;
        publisher.is_held = true;
        self.held.push((connection, queue));
        true
    }

    /// Returns when somebody's wait ends.
    pub(crate) fn deadline(&self) -> Option<Timestamp> {
        (!self.held.is_empty()).then(|| self.window_began.plus_ms(WINDOW_MS))
    }

    /// If the window is over: measures, and lets all go on who waited.
    pub(crate) fn end_window(
        &mut self,
        clients: &mut Clients,
        queues: &mut Queues,
        mut effect: impl FnMut(Effect),
        now: Timestamp,
    ) {
        let is_idle = self.watched.is_empty() && self.held.is_empty();
        if is_idle || now.since_ms(self.window_began) < WINDOW_MS {
            return;
        }
        self.window_began = now;
        self.watched.retain(|id| queues.get_mut(*id).is_some_and(|queue| measure(queue, now)));
        for (connection, queue) in std::mem::take(&mut self.held) {
            let pace = queues.get(queue).and_then(|queue| queue.pace.as_ref());
            if let Some(publisher) = clients.connections.get_mut(connection) {
                publisher.is_held = false;
                publisher.share = pace.map_or(0, |pace| pace.share(WINDOW_MS));
                effect(Effect::PublisherResumed { connection });
            }
        }
    }
}

/// Measures a queue's pace. Returns whether it is still crowded.
fn measure(queue: &mut Queue, now: Timestamp) -> bool {
    let delivered = delivered(queue);
    // Those on standby take nothing.
    let consumers = if queue.rules.single_active_consumer { 1 } else { queue.consumers.len() };
    let is_crowded = is_crowded(queue, CROWDED_MESSAGES / 2, CROWDED_BYTES / 2);
    if let Some(pace) = queue.pace.as_mut().filter(|_| is_crowded) {
        pace.measure(delivered, consumers, now);
        return true;
    }
    queue.pace = None;
    false
}

/// Returns whether more waits in the queue than that, with somebody to take it.
fn is_crowded(queue: &Queue, messages_max: usize, bytes_max: u64) -> bool {
    let ready = &queue.ready;
    !queue.consumers.is_empty() && (ready.len() > messages_max || ready.body_bytes() > bytes_max)
}

const fn delivered(queue: &Queue) -> u64 {
    queue.counters.deliver + queue.counters.deliver_no_ack
}
