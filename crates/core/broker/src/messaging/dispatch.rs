//! Giving messages out: to gets and receives that wait, then to consumers in turn.

use std::collections::VecDeque;
use std::sync::Arc;

use quelea_model::limits::DEAD_LETTERS_WAITING_MAX;
use quelea_model::{Message, Properties, QueueId, Seq, Timestamp, Value};
use quelea_store::{Entry, EntryFlags, NEVER, QueuedMessage};

use super::{
    DISCARDS_AT_ONCE, DISCARDS_BEFORE_DECISION, EFFECTS_WAITING_MAX, Messaging, QUEUES_PER_TURN,
};
use crate::clients::Clients;
use crate::clients::connection::delivery_bytes;
use crate::clients::consumer::ConsumerState;
use crate::clients::unacked::Unacked;
use crate::effect::Effect;
use crate::ids::ConsumerId;
use crate::queues::Memory;
use crate::queues::queue::dead_letters::DeadLetterReason;
use crate::queues::queue::ready_messages::Expired;
use crate::queues::queue::{Choice, Queue, WaitingGet};
use crate::report::MessageCounters;
use crate::sqs::receive::Served;
use crate::work::STEPS_PER_DISCARD;

/// Deliveries from one queue before the others have their turn.
const DELIVERIES_PER_TURN: usize = 512;

/// Messages of one queue that expire before the others have their turn.
const EXPIRIES_PER_TURN: usize = 512;

/// Why a queue's turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    /// Nothing to give, or nobody to give it to.
    Idle,
    /// Its share was used up.
    More,
    /// The next message has to be read first: this one, or the head.
    Absent(Option<Seq>),
}

impl Messaging {
    /// Dispatches queues that have something to do. For about so many steps messages expire, and leave queues that are
    /// too long; others are delivered all the same. True: there are more.
    pub(crate) fn dispatch_runnable(&mut self, now: Timestamp, discard_steps: u64) -> bool {
        let discard_steps_end = self.steps + discard_steps;
        let mut last = Vec::new();
        for _ in 0..QUEUES_PER_TURN.min(self.queues.schedule.runnable()) {
            if self.effects.len() >= EFFECTS_WAITING_MAX {
                break;
            }
            let Some(id) = self.queues.schedule.pop_runnable() else {
                break;
            };
            let Some(queue) = self.queues.get_mut(id) else {
                continue;
            };
            queue.is_runnable = false;
            let is_too_long = queue.is_too_long;
            let steps_before = self.steps;
            let discards = |steps: u64| {
                let left = discard_steps_end.saturating_sub(steps) / STEPS_PER_DISCARD;
                usize::try_from(left).unwrap_or(usize::MAX).min(EXPIRIES_PER_TURN)
            };
            let mut more = self.dispatch_within(id, now, discards(self.steps));
            if is_too_long {
                more |= self.shorten(id, now, discards(self.steps));
            }
            if !more {
                continue;
            }
            if self.steps > steps_before {
                last.push(id);
            } else {
                self.queues.wake(id);
            }
        }
        // Behind those for which nothing was left, so that each has its turn.
        last.into_iter().for_each(|id| self.queues.wake(id));
        self.queues.schedule.runnable() > 0
    }

    /// Delivers what a queue has to those that can take it, and drops what has expired.
    pub(crate) fn dispatch(&mut self, id: QueueId, now: Timestamp) {
        self.dispatch_discarding(id, now, DISCARDS_AT_ONCE);
    }

    /// The same before something is decided by what the queue has: what has expired does not count.
    pub(crate) fn dispatch_before_decision(&mut self, id: QueueId, now: Timestamp) {
        self.dispatch_discarding(id, now, DISCARDS_BEFORE_DECISION);
    }

    /// The same, of expired messages so many at most; the queue goes on with more in its turn.
    fn dispatch_discarding(&mut self, id: QueueId, now: Timestamp, expiries_max: usize) {
        if self.dispatch_within(id, now, expiries_max) {
            self.queues.wake(id);
        }
    }

    /// Dispatches the same way, with so many expired messages at most. True: there is more to do.
    fn dispatch_within(&mut self, id: QueueId, now: Timestamp, expiries_max: usize) -> bool {
        self.queues.make_due_visible(&mut self.log, id, now);
        let mut expiries_left = expiries_max;
        let ended = self.deliver_ready(id, now, &mut expiries_left);
        self.steps += (expiries_max - expiries_left) as u64 * STEPS_PER_DISCARD;
        self.uncall_waiting(id, ended);
        let wants_more = self.queues.get(id).is_some_and(|queue| queue.read_ahead.is_low());
        match ended {
            Ended::Idle | Ended::More => {}
            Ended::Absent(Some(seq)) => self.queues.read_one(&mut self.log, id, seq),
            Ended::Absent(None) => self.queues.read_head(&mut self.log, id, now),
        }
        if wants_more {
            self.queues.read_head(&mut self.log, id, now);
        }
        self.queues.reschedule(id);
        ended == Ended::More
    }

    fn deliver_ready(&mut self, id: QueueId, now: Timestamp, expiries_left: &mut usize) -> Ended {
        // A message whose time is this very moment may still be delivered (RabbitMQ: a TTL of 0
        // expires unless it can be delivered at once), so expired ones go strictly first.
        let Some(mut dispatch) = self.dispatcher(id, now, expiries_left) else {
            return Ended::Idle;
        };
        dispatch.queue.end_deduplications(now);
        if dispatch.queue.returning > 0 {
            return Ended::Idle;
        }
        let ended = dispatch.expire(|at| at < now);
        if ended != Ended::Idle {
            return ended;
        }
        if !dispatch.queue.receives.is_empty()
            && let Served::Absent(seq) = self.serve_receives(id, now)
        {
            return Ended::Absent(seq);
        }
        let Some(mut dispatch) = self.dispatcher(id, now, expiries_left) else {
            return Ended::Idle;
        };
        match dispatch.deliver_ready() {
            Ended::More => Ended::More,
            ended => worse(ended, dispatch.expire(|at| at <= now)),
        }
    }

    /// Credit that was kept for this queue's consumers goes to others, unless the queue goes on at once.
    fn uncall_waiting(&mut self, id: QueueId, ended: Ended) {
        let Self { clients, queues, .. } = self;
        if let Some(queue) = queues.get_mut(id).filter(|queue| !queue.consumers.called.is_empty()) {
            let mut called = std::mem::take(&mut queue.consumers.called);
            if ended == Ended::More {
                called.retain(|id| clients.consumers.get(*id).is_some_and(|c| c.is_called));
                queue.consumers.called = called;
            } else {
                called.into_iter().for_each(|id| clients.uncall(id));
            }
        }
        clients.call_others(queues);
    }

    fn dispatcher<'a>(
        &'a mut self,
        id: QueueId,
        now: Timestamp,
        expiries_left: &'a mut usize,
    ) -> Option<Dispatch<'a>> {
        let maybe_delivered_below = self.queues.maybe_delivered_below();
        let (queue, memory) = self.queues.with_memory(id)?;
        Some(Dispatch {
            queue,
            clients: &mut self.clients,
            effects: &mut self.effects,
            memory,
            counters: &mut self.counters,
            maybe_delivered_below,
            expiries_left,
            now,
        })
    }
}

fn worse(a: Ended, b: Ended) -> Ended {
    if a == Ended::Idle { b } else { a }
}

struct Dispatch<'a> {
    queue: &'a mut Queue,
    clients: &'a mut Clients,
    effects: &'a mut VecDeque<Effect>,
    memory: &'a mut Memory,
    counters: &'a mut MessageCounters,
    maybe_delivered_below: Seq,
    /// How many more messages may expire now.
    expiries_left: &'a mut usize,
    now: Timestamp,
}

impl Dispatch<'_> {
    /// Drops expired messages from the head.
    fn expire(&mut self, is_expired: impl Fn(Timestamp) -> bool) -> Ended {
        loop {
            if self.queue.dead_letters.len() >= DEAD_LETTERS_WAITING_MAX {
                return Ended::Idle;
            }
            if *self.expiries_left == 0 {
                let is_left = self.queue.ready.next_expiry().is_some_and(&is_expired);
                return if is_left { Ended::More } else { Ended::Idle };
            }
            match self.queue.ready.pop_expired(&is_expired) {
                Expired::Nothing => return Ended::Idle,
                Expired::Absent => return Ended::Absent(None),
                Expired::Message(message) => {
                    *self.expiries_left -= 1;
                    self.counters.expired += 1;
                    self.queue.discard(message, DeadLetterReason::Expired);
                }
            }
        }
    }

    fn deliver_ready(&mut self) -> Ended {
        for _ in 0..DELIVERIES_PER_TURN {
            if self.queue.dead_letters.len() >= DEAD_LETTERS_WAITING_MAX {
                return Ended::Idle;
            }
            let waiting = self.next_get();
            let consumer = if waiting.is_some() { None } else { self.next_consumer() };
            if waiting.is_none() && consumer.is_none() {
                return Ended::Idle;
            }
            match (self.queue.choose(None, None), waiting) {
                (Choice::Absent(seq), _) => return Ended::Absent(seq),
                (Choice::Nothing, None) => return Ended::Idle,
                (Choice::Nothing, Some(get)) => self.answer_empty(get),
                (choice @ (Choice::Front | Choice::This(_)), waiting) => {
                    let Some(message) = self.queue.take(choice) else {
                        return Ended::Absent(None);
                    };
                    self.queue.read_ahead.given_out();
                    match (waiting, consumer) {
                        (Some(get), _) => self.answer(get, message),
                        (None, Some(consumer)) => self.deliver(consumer, message),
                        (None, None) => {}
                    }
                }
            }
            // What comes next may have expired while it waited behind this one.
            let now = self.now;
            match self.expire(|at| at < now) {
                Ended::Idle => {}
                ended => return ended,
            }
        }
        Ended::More
    }

    /// Finds the get whose turn it is. Those whose client has too much to read are set aside,
    /// unless their answer is that there is nothing.
    fn next_get(&mut self) -> Option<WaitingGet> {
        while let Some(get) = self.queue.gets.front().copied() {
            let channel = self.clients.channels.get(get.channel);
            let connection = channel.and_then(|c| self.clients.connections.get_mut(c.connection));
            let max = self.clients.config.output_bytes_max;
            match connection.filter(|c| c.output_waiting >= max) {
                Some(connection) if !self.queue.ready.is_empty() => {
                    connection.parked_gets.push((self.queue.id, get));
                    self.queue.gets.pop_front();
                }
                _ => return Some(get),
            }
        }
        None
    }

    /// Finds the consumer whose turn it is. Those who cannot take a message are parked.
    fn next_consumer(&mut self) -> Option<ConsumerId> {
        while let Some(id) = self.queue.consumers.next() {
            let Some(reason) = self.reason_to_park(id) else {
                return Some(id);
            };
            self.queue.consumers.park();
            self.clients.uncall(id);
            let Some(consumer) = self.clients.consumers.get_mut(id) else {
                continue;
            };
            consumer.state = reason;
            match reason {
                ConsumerState::ParkedByChannel => {
                    if let Some(channel) = self.clients.channels.get_mut(consumer.channel) {
                        channel.parked.insert((consumer.served_at, id));
                    }
                    self.clients.to_call_others.push(consumer.channel);
                }
                ConsumerState::ParkedByConnection => {
                    if let Some(c) = self.clients.connections.get_mut(consumer.connection) {
                        c.parked_by_unacked.insert(id);
                    }
                }
                ConsumerState::ParkedByOutput => {
                    if let Some(c) = self.clients.connections.get_mut(consumer.connection) {
                        c.parked.insert(id);
                    }
                }
                ConsumerState::ParkedByPrefetch
                | ConsumerState::InRing
                | ConsumerState::Standby => {}
            }
        }
        None
    }

    fn reason_to_park(&self, id: ConsumerId) -> Option<ConsumerState> {
        // A consumer leaves the ring when it, its channel or its connection goes.
        let Some(consumer) = self.clients.consumers.get(id) else {
            return Some(ConsumerState::Standby);
        };
        if !consumer.has_credit() {
            return Some(ConsumerState::ParkedByPrefetch);
        }
        let channel = self.clients.channels.get(consumer.channel);
        let unacked_max = self.clients.config.unacked_per_channel_max;
        let may_take = channel.is_some_and(|channel| {
            channel.admits(consumer.is_called, consumer.no_ack, unacked_max)
        });
        if !may_take {
            return Some(ConsumerState::ParkedByChannel);
        }
        let connection = self.clients.connections.get(consumer.connection);
        let unacked_max = self.clients.config.unacked_per_connection_max;
        if !consumer.no_ack && connection.is_some_and(|c| c.unacked >= unacked_max) {
            return Some(ConsumerState::ParkedByConnection);
        }
        let is_reading =
            connection.is_some_and(|c| c.output_waiting < self.clients.config.output_bytes_max);
        (!is_reading).then_some(ConsumerState::ParkedByOutput)
    }

    fn deliver(&mut self, id: ConsumerId, mut message: QueuedMessage) {
        self.queue.consumers.rotate();
        let Some(consumer) = self.clients.consumers.get_mut(id) else {
            return self.queue.ready.insert(message);
        };
        let (Some(channel), Some(connection)) = (
            self.clients.channels.get_mut(consumer.channel),
            self.clients.connections.get_mut(consumer.connection),
        ) else {
            return self.queue.ready.insert(message);
        };
        let Some(body) = outgoing(self.queue, &mut message) else {
            return self.queue.ready.insert(message);
        };
        self.clients.deliveries += 1;
        consumer.served_at = self.clients.deliveries;
        consumer.delivered += 1;
        if consumer.is_called {
            consumer.is_called = false;
            channel.called -= 1;
            // It has used up no credit if it does not acknowledge.
            self.clients.to_call_others.push(consumer.channel);
        }
        let delivery_tag = channel.next_tag();
        let redelivered = was_delivered(&message.entry, self.maybe_delivered_below);
        connection.output_waiting += delivery_bytes(&body, &consumer.tag);
        if let Some(pace) = &mut self.queue.pace {
            pace.taken_bytes += body.body().len() as u64;
        }
        for counters in [&mut self.queue.counters, &mut channel.counters, self.counters] {
            if consumer.no_ack {
                counters.deliver_no_ack += 1;
            } else {
                counters.deliver += 1;
            }
            counters.redeliver += u64::from(redelivered);
        }
        self.queue.handed_to_client(message.entry.seq, consumer.no_ack);
        if consumer.no_ack {
            self.queue.settle(&message.entry);
        } else {
            consumer.unacked += 1;
            channel.unacked_of_consumers += 1;
            connection.unacked += 1;
            self.queue.unacked += 1;
            let unacked = unacked(self.queue.id, Some(id), message);
            self.memory.delivered(&mut channel.unacked_resident, unacked.body.as_deref());
            channel.unacked.push(delivery_tag, unacked);
        }
        self.effects.push_back(Effect::Deliver {
            connection: consumer.connection,
            channel: consumer.channel,
            channel_number: consumer.channel_number,
            consumer_tag: Arc::clone(&consumer.tag),
            delivery_tag,
            redelivered,
            message: body,
        });
    }

    fn answer_empty(&mut self, get: WaitingGet) {
        self.queue.gets.pop_front();
        let Some(channel) = self.clients.channels.get_mut(get.channel) else {
            return;
        };
        for counters in [&mut self.queue.counters, &mut channel.counters, self.counters] {
            counters.get_empty += 1;
        }
        self.effects.push_back(Effect::GotEmpty {
            connection: channel.connection,
            channel: get.channel,
            channel_number: channel.number,
        });
    }

    fn answer(&mut self, get: WaitingGet, mut message: QueuedMessage) {
        self.queue.gets.pop_front();
        // `message_count` of basic.get-ok leaves out what has expired behind it, as in RabbitMQ.
        let now = self.now;
        self.expire(|at| at < now);
        let connection = match self.clients.channels.get(get.channel) {
            Some(channel) if !channel.is_closing => channel.connection,
            // The client is gone.
            _ => return self.queue.ready.insert(message),
        };
        let (Some(channel), Some(connection), Some(body)) = (
            self.clients.channels.get_mut(get.channel),
            self.clients.connections.get_mut(connection),
            outgoing(self.queue, &mut message),
        ) else {
            return self.queue.ready.insert(message);
        };
        let delivery_tag = channel.next_tag();
        let redelivered = was_delivered(&message.entry, self.maybe_delivered_below);
        connection.output_waiting += delivery_bytes(&body, "");
        for counters in [&mut self.queue.counters, &mut channel.counters, self.counters] {
            if get.no_ack {
                counters.get_no_ack += 1;
            } else {
                counters.get += 1;
            }
            counters.redeliver += u64::from(redelivered);
        }
        self.queue.handed_to_client(message.entry.seq, get.no_ack);
        if get.no_ack {
            self.queue.settle(&message.entry);
        } else {
            connection.unacked += 1;
            self.queue.unacked += 1;
            let unacked = unacked(self.queue.id, None, message);
            self.memory.delivered(&mut channel.unacked_resident, unacked.body.as_deref());
            channel.unacked.push(delivery_tag, unacked);
        }
        self.effects.push_back(Effect::Got {
            connection: channel.connection,
            channel: get.channel,
            channel_number: channel.number,
            delivery_tag,
            redelivered,
            message_count: u32::try_from(self.queue.ready.len()).unwrap_or(u32::MAX),
            message: body,
        });
    }
}

/// Returns whether the message was, or may have been, delivered before.
pub(super) fn was_delivered(entry: &Entry, maybe_below: Seq) -> bool {
    entry.flags.has(EntryFlags::REDELIVERED) || entry.seq < maybe_below
}

/// Takes out the message as it goes out. What stays has the body only if the log does not have it.
fn outgoing(queue: &Queue, message: &mut QueuedMessage) -> Option<Arc<Message>> {
    let body = if message.entry.is_stored() {
        message.body.take()?
    } else {
        Arc::clone(message.body.as_ref()?)
    };
    if message.entry.delivery_count > 0 && queue.rules.counts_deliveries() {
        return Some(Arc::new(with_delivery_count(&body, message.entry.delivery_count)));
    }
    Some(body)
}

fn unacked(queue: QueueId, consumer: Option<ConsumerId>, message: QueuedMessage) -> Unacked {
    Unacked {
        queue,
        consumer,
        entry: message.entry,
        expires_at: message.expires_at.unwrap_or(NEVER),
        body: message.body,
        is_held: false,
    }
}

/// Adds `x-delivery-count`, as RabbitMQ's quorum queues do.
fn with_delivery_count(message: &Message, count: u16) -> Message {
    let mut properties = Properties::decode(message.properties()).unwrap_or_default();
    let mut headers = properties.headers.take().unwrap_or_default();
    headers.set("x-delivery-count", Value::I64(i64::from(count)));
    properties.headers = Some(headers);
    Message::new(
        message.exchange(),
        message.routing_key(),
        &properties.to_bytes(),
        message.body_bytes(),
    )
}
