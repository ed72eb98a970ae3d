//! Moving dead messages on to their dead-letter exchange.
//!
//! The new message and the end of the old one are one atomic group in the log: a crash leaves
//! exactly one of them. Messages whose bodies are not in memory wait until they have been read.

use std::sync::Arc;

use quelea_model::{Message, Properties, PropertyView, QueueId, Table, Timestamp, Value};
use quelea_store::QueuedMessage;

use super::enqueue::MessageOptions;
use super::{Messaging, death};
use crate::queues::queue::dead_letters::{DeadLetter, DeadLetterReason};
use crate::routing::Routing;
use crate::work::{STEPS_PER_DEAD_LETTER, Work};

/// The header that names the queue from which a message was redriven.
pub const REDRIVE_SOURCE_HEADER: &str = "x-redrive-source";

/// The header of a redriven message that says how often it was received before: SQS goes on counting
/// in the dead-letter queue. A redrive policy of that queue counts what happens there only.
pub const REDRIVE_RECEIVES_HEADER: &str = "x-redrive-receives";

/// Queues that one turn moves dead letters of.
const QUEUES_PER_TURN: usize = 256;

/// Dead letters of one queue before the others have their turn.
const DEAD_LETTERS_PER_TURN: usize = 512;

impl Messaging {
    /// Moves dead letters on, until this turn has no more than `kept` steps left. True: there are more that could be
    /// moved at once. Without room in the log they wait, as publishers do: its next job leads here again.
    pub(crate) fn move_dead_letters(
        &mut self,
        routing: &mut Routing,
        work: &mut Work,
        kept: u64,
        now: Timestamp,
    ) -> bool {
        for _ in 0..QUEUES_PER_TURN.min(self.queues.schedule.dead_lettering()) {
            if work.left() <= kept || !self.has_room_for_letters() {
                break;
            }
            if let Some(id) = self.queues.next_dead_lettering() {
                self.move_from(routing, work, kept, id, now);
            }
        }
        self.queues.schedule.dead_lettering() > 0 && self.has_room_for_letters()
    }

    /// Returns whether the log takes another: a letter is appended whole, and what it was frees nothing before that is
    /// written.
    fn has_room_for_letters(&self) -> bool {
        self.log.takes_moved(self.clients.config.store_pending_bytes_max)
    }

    /// A queue that has more of them stands behind the others then.
    fn move_from(
        &mut self,
        routing: &mut Routing,
        work: &mut Work,
        kept: u64,
        id: QueueId,
        now: Timestamp,
    ) {
        let mut has_room = false;
        for _ in 0..DEAD_LETTERS_PER_TURN {
            if work.left() <= kept || !self.has_room_for_letters() {
                break;
            }
            let Some(queue) = self.queues.letter_source_mut(id) else {
                return;
            };
            match queue.dead_letters.front() {
                None => break,
                Some(letter) if letter.message.body.is_none() => {
                    // It comes back here when the body has been read.
                    self.queues.read_dead_letters(&mut self.log, id);
                    break;
                }
                Some(_) => {}
            }
            if let Some(letter) = queue.dead_letters.pop() {
                self.forward(routing, id, letter, now);
                work.spend(self.take_steps());
                has_room = true;
            }
        }
        // It may have been too full to expire or to give out.
        if has_room {
            self.queues.wake(id);
        }
        self.queues.reschedule(id);
    }

    /// Publishes one dead letter and settles the message it was.
    fn forward(&mut self, routing: &mut Routing, id: QueueId, letter: DeadLetter, now: Timestamp) {
        let DeadLetter { message: source, reason } = letter;
        self.steps += STEPS_PER_DEAD_LETTER;
        if reason == DeadLetterReason::Redriven {
            return self.redrive(id, source, now);
        }
        let Some(queue) = self.queues.letter_source(id) else {
            return;
        };
        let (Some(target), Some(body)) = (&queue.rules.dead_letter, &source.body) else {
            return self.settle_source(id, &source);
        };
        if reason == DeadLetterReason::Expired {
            // It was checked when the message came in.
            let ttl_ms = body.property_view().expiration().and_then(|ms| ms.parse().ok());
            if queue.ends_by_retention(ttl_ms) {
                return self.settle_source(id, &source);
            }
        }
        let letter = Arc::new(death::dead_letter(body, &queue.name, reason, target, now));
        let view = letter.property_view();
        let vhost = queue.vhost;
        let mut queues = Vec::new();
        if let Some(router) = routing.router_mut(vhost) {
            // One that takes more steps than a message may, or leads nowhere any more, is dropped.
            if let Ok(route) = router.route(letter.exchange(), letter.routing_key(), view) {
                queues.extend_from_slice(&route.queues);
            }
            self.steps += router.take_steps();
        }
        if reason != DeadLetterReason::Rejected {
            self.drop_cycles(&mut queues, view);
        }
        let options = MessageOptions {
            persistent: view.is_persistent(),
            priority: view.priority().unwrap_or(0),
            ..MessageOptions::default()
        };
        self.log.store.begin_atomic();
        let taken =
            if queues.is_empty() { 0 } else { self.enqueue(now, &queues, &letter, options).taken };
        self.settle_source(id, &source);
        self.log.store.end_atomic();
        self.count_letter(id, taken > 0);
    }

    /// A message has left its queue. Of one that is gone the log knows that, and only the segment's account is left.
    fn settle_source(&mut self, id: QueueId, source: &QueuedMessage) {
        if self.queues.contains(id) {
            self.log.store.append_acks(id, &[source.entry]);
        } else {
            self.log.store.release(&source.entry);
        }
    }

    fn count_letter(&mut self, id: QueueId, is_moved: bool) {
        let queue = self.queues.letter_source_mut(id).map(|queue| &mut queue.counters);
        for counters in [Some(&mut self.counters), queue].into_iter().flatten() {
            if is_moved {
                counters.dead_lettered += 1;
            } else {
                counters.dead_letters_dropped += 1;
            }
        }
    }

    /// Moves a message that was received too often. It keeps its name and its time.
    fn redrive(&mut self, id: QueueId, source: QueuedMessage, now: Timestamp) {
        let target = self.queues.redrive_target(id);
        let Some(queue) = self.queues.letter_source(id) else {
            return;
        };
        let is_moved = match (target, &source.body) {
            (Some((target, _)), Some(body)) => {
                let letter = redriven(body, queue.name.as_str(), source.entry.delivery_count);
                self.move_message(id, &source, target, &Arc::new(letter), now)
            }
            // The policy was changed, or its queue deleted, while the message waited.
            _ => false,
        };
        if is_moved || !self.queues.contains(id) {
            self.count_letter(id, is_moved);
        }
        if !is_moved {
            // It stays, if its queue does.
            self.queues.put_back(&mut self.log, id, source);
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
        if !self.queues.has_room(to, message.body().len()) {
            return false;
        }
        let options = MessageOptions {
            persistent: true,
            priority: source.entry.priority,
            // Its delay is over, whatever the other queue's is.
            visible_at: Some(now),
            ..MessageOptions::default()
        };
        self.log.store.begin_atomic();
        let is_taken = self.enqueue(now, &[to], message, options).taken > 0;
        if is_taken {
            self.settle_source(from, source);
        }
        self.log.store.end_atomic();
        is_taken
    }

    /// Leaves out the queues that the message came through before by the broker's doing alone.
    fn drop_cycles(&mut self, queues: &mut Vec<QueueId>, view: PropertyView<'_>) {
        let Some(headers) = view.headers() else {
            return;
        };
        let passed = death::queues_passed(&headers);
        self.steps += passed.len() as u64;
        queues.retain(|id| {
            let queue = self.queues.get(*id);
            queue.is_some_and(|queue| !passed.contains(queue.name.as_str()))
        });
    }
}

/// Returns the message with the headers that say from which queue it was redriven, and how often it
/// was received there and before.
fn redriven(message: &Message, queue: &str, receive_count: u16) -> Message {
    with_headers(message, |headers| {
        let before = headers.get(REDRIVE_RECEIVES_HEADER).and_then(Value::as_integer).unwrap_or(0);
        let receives = before.saturating_add(i64::from(receive_count));
        headers.set(REDRIVE_SOURCE_HEADER, Value::text(queue));
        headers.set(REDRIVE_RECEIVES_HEADER, Value::I64(receives));
    })
}

/// Returns the queue that a message was redriven from.
pub(crate) fn source_of(message: &Message) -> Option<Box<str>> {
    let headers = message.property_view().headers()?;
    headers.get(REDRIVE_SOURCE_HEADER)?.as_text().map(Box::from)
}

/// Returns the message as it was before it was redriven.
pub(crate) fn without_source(message: &Arc<Message>) -> Arc<Message> {
    if source_of(message).is_none() {
        return Arc::clone(message);
    }
    Arc::new(with_headers(message, |headers| {
        headers.remove(REDRIVE_SOURCE_HEADER);
        headers.remove(REDRIVE_RECEIVES_HEADER);
    }))
}

fn with_headers(message: &Message, change: impl FnOnce(&mut Table)) -> Message {
    // Properties were checked when they came in.
    let mut properties = Properties::decode(message.properties()).unwrap_or_default();
    // Where it goes its time to live does not count: what is left to end it is the retention.
    properties.expiration = None;
    let mut headers = properties.headers.take().unwrap_or_default();
    change(&mut headers);
    properties.headers = (!headers.is_empty()).then_some(headers);
    Message::new("", message.routing_key(), &properties.to_bytes(), message.body_bytes())
}
