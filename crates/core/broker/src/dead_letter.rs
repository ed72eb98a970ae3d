//! Moving dead messages on to their dead-letter exchange.
//!
//! The new message and the end of the old one are one atomic group in the log: a crash leaves
//! exactly one of them. Messages whose bodies are not in memory wait until they have been read.

use std::sync::Arc;

use quelea_model::{Message, Properties, PropertyView, QueueId, Timestamp, Value};
use quelea_store::QueuedMessage;

use crate::Broker;
use crate::death::{self, Reason};
use crate::enqueue::Facts;
use crate::grouping::group_of;
use crate::queue::groups::NO_GROUP;
use crate::queue::{Overflow, Transit};

/// The header that names the queue from which a message was redriven.
pub const REDRIVE_SOURCE_HEADER: &str = "x-redrive-source";

/// Queues that one call of [`Broker::run`] moves dead letters of.
const QUEUES_PER_RUN: usize = 256;

/// Dead letters of one queue before the others have their turn.
const DEAD_LETTERS_PER_TURN: usize = 512;

impl Broker {
    /// Moves dead letters on. True: there are more that could be moved at once.
    pub(crate) fn move_dead_letters(&mut self, now: Timestamp) -> bool {
        for _ in 0..QUEUES_PER_RUN.min(self.moving.len()) {
            let Some(id) = self.moving.pop_front() else {
                break;
            };
            if let Some(queue) = self.queues.get_mut(&id) {
                queue.is_moving = false;
                self.move_from(id, now);
            }
        }
        !self.moving.is_empty()
    }

    fn move_from(&mut self, id: QueueId, now: Timestamp) {
        let mut has_room = false;
        for _ in 0..DEAD_LETTERS_PER_TURN {
            let Some(queue) = self.queues.get_mut(&id) else {
                return;
            };
            match queue.transit.front() {
                None => break,
                Some(transit) if transit.message.body.is_none() => {
                    // It comes back here when the body has been read.
                    self.read_transit(id);
                    break;
                }
                Some(_) => {}
            }
            if let Some(transit) = queue.transit.pop() {
                self.forward(id, transit, now);
                has_room = true;
            }
        }
        // It may have been too full to expire or to give out.
        if has_room {
            self.touch(id);
        }
        self.follow_up(id);
    }

    /// Publishes one dead letter and settles the message it was.
    fn forward(&mut self, id: QueueId, transit: Transit, now: Timestamp) {
        let Transit { message: source, reason } = transit;
        if reason == Reason::Redriven {
            return self.redrive(id, source, now);
        }
        let Some(queue) = self.queues.get_mut(&id) else {
            return;
        };
        let (Some(target), Some(body)) = (&queue.rules.dead_letter, &source.body) else {
            queue.settle(&source.entry);
            return;
        };
        let letter = Arc::new(death::dead_letter(body, &queue.name, reason, target, now));
        let view = letter.property_view();
        let vhost = queue.vhost;
        let mut queues = Vec::new();
        if let Some(vhost) = self.vhosts.get_mut(vhost.0)
            && let Ok(route) = vhost.router.route(letter.exchange(), letter.routing_key(), view)
        {
            queues.extend_from_slice(&route.queues);
        }
        if reason != Reason::Rejected {
            self.drop_cycles(&mut queues, view);
        }
        let facts = Facts {
            persistent: view.is_persistent(),
            priority: view.priority().unwrap_or(0),
            ..Facts::default()
        };
        self.store.begin_atomic();
        let taken =
            if queues.is_empty() { 0 } else { self.enqueue(now, &queues, &letter, facts).taken };
        if source.entry.is_stored() {
            self.store.append_acks(id, &[source.entry]);
        }
        self.store.end_atomic();
        let queue = self.queues.get_mut(&id).map(|queue| &mut queue.counters);
        for counters in [Some(&mut self.counters), queue].into_iter().flatten() {
            if taken > 0 {
                counters.dead_lettered += 1;
            } else {
                counters.dead_letters_dropped += 1;
            }
        }
    }

    /// Moves a message that was received too often. It keeps its name and its time.
    fn redrive(&mut self, id: QueueId, source: QueuedMessage, now: Timestamp) {
        let Some(queue) = self.queues.get_mut(&id) else {
            return;
        };
        let target = queue.settings().redrive.as_ref().and_then(|redrive| {
            self.vhosts.get(queue.vhost.0)?.queues.get(&*redrive.target).copied()
        });
        let (Some(target), Some(body)) = (target, source.body.clone()) else {
            // The policy was changed, or its queue deleted, while the message waited: it stays.
            return self.put_back(id, source);
        };
        let letter = Arc::new(with_source(&body, queue.name.as_str()));
        if !self.move_message(id, &source, target, &letter, now) {
            return self.put_back(id, source);
        }
        self.counters.dead_lettered += 1;
        if let Some(queue) = self.queues.get_mut(&id) {
            queue.counters.dead_lettered += 1;
        }
    }

    /// Puts a message into another queue and takes it out of this one, both or neither. False if the
    /// other queue is full: then it is nowhere but in the caller's hands.
    pub(crate) fn move_message(
        &mut self,
        from: QueueId,
        source: &QueuedMessage,
        to: QueueId,
        message: &Arc<Message>,
        now: Timestamp,
    ) -> bool {
        if !self.has_room(to, message.body().len()) {
            return false;
        }
        let facts = Facts {
            persistent: true,
            priority: source.entry.priority,
            // Its delay is over, whatever the other queue's is.
            visible_at: Some(now),
            ..Facts::default()
        };
        self.store.begin_atomic();
        let is_taken = self.enqueue(now, &[to], message, facts).taken > 0;
        if is_taken && source.entry.is_stored() {
            self.store.append_acks(from, &[source.entry]);
        }
        self.store.end_atomic();
        is_taken
    }

    /// Whether a queue takes one more message of that size without refusing it.
    pub(crate) fn has_room(&self, id: QueueId, body_bytes: usize) -> bool {
        self.queues.get(&id).is_some_and(|queue| {
            queue.rules.overflow == Overflow::DropHead || !queue.would_overflow(body_bytes)
        })
    }

    /// A message that was taken to be moved stays in its queue.
    pub(crate) fn put_back(&mut self, id: QueueId, message: QueuedMessage) {
        let Some(queue) = self.queues.get_mut(&id) else {
            return self.store.release(&message.entry);
        };
        let entry = &message.entry;
        if let Some(groups) = &mut queue.groups
            && !groups.knows(entry.seq)
        {
            groups.add_visible(entry.seq, message.body.as_deref().map_or(NO_GROUP, group_of));
        }
        // The checkpoint has passed the visible messages, and may have passed those that move.
        if self.store.checkpoint_under_way() && entry.is_durable() && entry.is_stored() {
            self.store.append_requeue(id, entry, message.expires_at);
        }
        queue.ready.insert(message);
        self.touch(id);
    }

    /// Leaves out the queues that the message came through before by the broker's doing alone.
    fn drop_cycles(&self, queues: &mut Vec<QueueId>, view: PropertyView<'_>) {
        let Some(headers) = view.headers() else {
            return;
        };
        queues.retain(|id| {
            let queue = self.queues.get(id);
            queue.is_some_and(|queue| !death::is_cycle(&headers, queue.name.as_str()))
        });
    }
}

/// The message with the header that says from which queue it was redriven.
fn with_source(message: &Message, queue: &str) -> Message {
    // Properties were checked when they came in.
    let mut properties = Properties::decode(message.properties()).unwrap_or_default();
    let mut headers = properties.headers.take().unwrap_or_default();
    headers.set(REDRIVE_SOURCE_HEADER, Value::text(queue));
    properties.headers = Some(headers);
    Message::new("", message.routing_key(), &properties.to_bytes(), message.body_bytes())
}

/// The queue that a message was redriven from.
pub(crate) fn source_of(message: &Message) -> Option<Box<str>> {
    let headers = message.property_view().headers()?;
    headers.get(REDRIVE_SOURCE_HEADER)?.as_text().map(Box::from)
}

/// The message as it was before it was redriven.
pub(crate) fn without_source(message: &Arc<Message>) -> Arc<Message> {
    if source_of(message).is_none() {
        return Arc::clone(message);
    }
    // Properties were checked when they came in.
    let mut properties = Properties::decode(message.properties()).unwrap_or_default();
    let mut headers = properties.headers.take().unwrap_or_default();
    headers.remove(REDRIVE_SOURCE_HEADER);
    properties.headers = (!headers.is_empty()).then_some(headers);
    let body = message.body_bytes();
    Arc::new(Message::new("", message.routing_key(), &properties.to_bytes(), body))
}
